//! How fast the number of replicas may change.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::{
    HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerBehavior,
};

/// What was recommended and done before, in the order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) recommendations: Vec<(Timestamp, i32)>,
    /// By how much the number was changed.
    pub(super) changes: Vec<(Timestamp, i32)>,
}

impl History {
    /// The first thing that is known of a target is its present number.
    pub(super) fn begin(&mut self, replicas: i32, now: Timestamp) {
        if self.recommendations.is_empty() {
            self.recommendations.push((now, replicas));
        }
    }

    fn since(&self, seconds: i32, now: Timestamp) -> impl Iterator<Item = i32> {
        let start = before(now, seconds);
        let young = self.recommendations.iter().filter(move |(time, _)| *time > start);
        young.map(|(_, replicas)| *replicas)
    }

    /// The number at the start of a period that ends now.
    fn at_start(&self, replicas: i32, seconds: i32, now: Timestamp) -> i32 {
        let start = before(now, seconds);
        let young = self.changes.iter().filter(|(time, _)| *time > start);
        young.fold(replicas, |replicas, (_, change)| replicas.saturating_sub(*change))
    }

    fn forget(&mut self, now: Timestamp) {
        self.recommendations.retain(|(time, _)| *time >= before(now, LONGEST));
        self.changes.retain(|(time, _)| *time >= before(now, LONGEST));
    }
}

/// No window or period may be longer.
const LONGEST: i32 = 3600;
const DOWN_WINDOW: i32 = 300;

fn before(now: Timestamp, seconds: i32) -> Timestamp {
    now.checked_sub(SignedDuration::from_secs(seconds.into())).unwrap_or(Timestamp::MIN)
}

/// A condition's status, reason and message.
pub(super) type Told = (bool, &'static str, &'static str);

/// The number that may be set, with what AbleToScale and ScalingLimited have to say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limited {
    pub(super) replicas: i32,
    pub(super) able: Told,
    pub(super) limited: Told,
}

pub(super) struct Range {
    pub(super) current: i32,
    pub(super) min: i32,
    pub(super) max: i32,
}

/// Remembers the recommendation and says what of it may be followed.
pub(super) fn limit(
    range: &Range,
    wanted: i32,
    behavior: Option<&HorizontalPodAutoscalerBehavior>,
    history: &mut History,
    now: Timestamp,
) -> Limited {
    history.forget(now);
    let rules = Rules::of(behavior);
    let stable = rules.stabilised(range.current, wanted, history, now);
    history.recommendations.push((now, wanted));
    let (highest, lowest) = rules.bounds(range, history, now);
    let (replicas, limited) = bounded(range, stable, highest, lowest);
    let able = match (stable == wanted, wanted >= range.current && behavior.is_some()) {
        (true, _) => (true, "ReadyForNewScale", "recommended size matches current size"),
        (false, true) => (
            true,
            "ScaleUpStabilized",
            "recent recommendations were lower than current one, applying the lowest recent \
             recommendation",
        ),
        (false, false) => (
            true,
            "ScaleDownStabilized",
            "recent recommendations were higher than current one, applying the highest recent \
             recommendation",
        ),
    };
    Limited { replicas, able, limited }
}

fn bounded(range: &Range, stable: i32, highest: i32, lowest: i32) -> (i32, Told) {
    const FASTER_UP: &str =
        "the desired replica count is increasing faster than the maximum scale rate";
    const FASTER_DOWN: &str =
        "the desired replica count is decreasing faster than the maximum scale rate";
    const MANY: &str = "the desired replica count is more than the maximum replica count";
    const FEW: &str = "the desired replica count is less than the minimum replica count";
    let ceiling = range.max.min(highest);
    let floor = range.min.max(lowest);
    if (stable > range.current && stable > ceiling) || stable > range.max {
        let fast = range.max > highest;
        let (reason, message) =
            if fast { ("ScaleUpLimit", FASTER_UP) } else { ("TooManyReplicas", MANY) };
        return (ceiling, (true, reason, message));
    }
    if (stable < range.current && stable < floor) || stable < range.min {
        let fast = range.min < lowest;
        let (reason, message) =
            if fast { ("ScaleDownLimit", FASTER_DOWN) } else { ("TooFewReplicas", FEW) };
        return (floor, (true, reason, message));
    }
    let message = "the desired count is within the acceptable range";
    (stable, (false, "DesiredWithinRange", message))
}

/// The rules of one direction, with all that may be left out filled in.
struct Direction {
    window: i32,
    select: Select,
    policies: Vec<HPAScalingPolicy>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Select {
    Most,
    Least,
    None,
}

impl Direction {
    fn of(rules: Option<&HPAScalingRules>, window: i32, policies: &[(&str, i32)]) -> Self {
        let own = rules.and_then(|rules| rules.policies.clone());
        let usual = policies.iter().map(|(kind, value)| HPAScalingPolicy {
            type_: (*kind).to_owned(),
            value: *value,
            period_seconds: 15,
        });
        Self {
            window: rules.and_then(|rules| rules.stabilization_window_seconds).unwrap_or(window),
            select: match rules.and_then(|rules| rules.select_policy.as_deref()) {
                Some("Disabled") => Select::None,
                Some("Min") => Select::Least,
                _ => Select::Most,
            },
            policies: own.filter(|own| !own.is_empty()).unwrap_or_else(|| usual.collect()),
        }
    }
}

/// `None`: nobody has said how fast it may go.
struct Rules {
    up: Option<Direction>,
    down: Option<Direction>,
}

impl Rules {
    fn of(behavior: Option<&HorizontalPodAutoscalerBehavior>) -> Self {
        let Some(behavior) = behavior else { return Self { up: None, down: None } };
        let up = &[("Pods", 4), ("Percent", 100)];
        let down = &[("Percent", 100)];
        Self {
            up: Some(Direction::of(behavior.scale_up.as_ref(), 0, up)),
            down: Some(Direction::of(behavior.scale_down.as_ref(), DOWN_WINDOW, down)),
        }
    }

    /// Up follows the least, down the most that was recommended within its window.
    fn stabilised(&self, current: i32, wanted: i32, history: &History, now: Timestamp) -> i32 {
        let window = self.down.as_ref().map_or(DOWN_WINDOW, |down| down.window);
        let most = history.since(window, now).fold(wanted, i32::max);
        let Some(up) = &self.up else { return most };
        let least = history.since(up.window, now).fold(wanted, i32::min);
        current.max(least).min(most)
    }

    /// The highest and the lowest number that may be reached now.
    fn bounds(&self, range: &Range, history: &History, now: Timestamp) -> (i32, i32) {
        let highest = match &self.up {
            None => range.current.saturating_mul(2).max(4),
            Some(up) => {
                let reached =
                    up.reach(range.current, history, now, |start, policy| match &*policy.type_ {
                        "Percent" => (start * (1.0 + f64::from(policy.value) / 100.0)).ceil(),
                        _ => start + f64::from(policy.value),
                    });
                pick(up.select, reached.iter().max(), reached.iter().min(), range.current)
            }
        };
        let lowest = match &self.down {
            None => i32::MIN,
            Some(down) => {
                let reached =
                    down.reach(range.current, history, now, |start, policy| match &*policy.type_ {
                        "Percent" => (start * (1.0 - f64::from(policy.value) / 100.0)).trunc(),
                        _ => start - f64::from(policy.value),
                    });
                pick(down.select, reached.iter().min(), reached.iter().max(), range.current)
            }
        };
        // What was done before may have used up all that is allowed, but is not taken back.
        (highest.max(range.current), lowest.min(range.current))
    }
}

fn pick(select: Select, most: Option<&i32>, least: Option<&i32>, current: i32) -> i32 {
    let picked = match select {
        Select::None => None,
        Select::Most => most,
        Select::Least => least,
    };
    picked.copied().unwrap_or(current)
}

impl Direction {
    /// The numbers that the policies allow.
    fn reach(
        &self,
        current: i32,
        history: &History,
        now: Timestamp,
        step: impl Fn(f64, &HPAScalingPolicy) -> f64,
    ) -> Vec<i32> {
        let reached = self.policies.iter().map(|policy| {
            let start = history.at_start(current, policy.period_seconds, now);
            step(f64::from(start), policy) as i32
        });
        reached.collect()
    }
}
