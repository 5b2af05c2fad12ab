//! How many replicas the use of the processor asks for.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        autoscaling::v2::{MetricTarget, MetricValueStatus},
        core::v1::{Container, Pod},
    },
    apimachinery::pkg::api::resource::Quantity,
};

use crate::builtin::quantity;

/// What a pod has used of the processor of late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// In thousandths of a core.
    pub milli: i64,
    /// The end of the time in which it was measured.
    pub at: Timestamp,
    /// Its length.
    pub window: SignedDuration,
}

/// How far the use may be from the target before anything is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerance {
    pub(super) up: f64,
    pub(super) down: f64,
}

impl Tolerance {
    fn allows(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    pub(super) current: MetricValueStatus,
    /// What is measured, for the reason of a change.
    pub(super) metric: &'static str,
}

/// The pods behind a target and what they use.
pub(super) struct Load<'a> {
    /// What the target asks for at present.
    pub(super) replicas: i32,
    pub(super) pods: &'a [Arc<Pod>],
    /// By the pods' uids.
    pub(super) samples: &'a BTreeMap<String, Sample>,
    pub(super) tolerance: Tolerance,
    pub(super) now: Timestamp,
}

/// While a pod is this young, what it uses may still be the work of starting.
const STARTING: SignedDuration = SignedDuration::from_mins(5);
/// A pod that stopped being ready within this time of its start has never been ready.
const FIRST_READINESS: SignedDuration = SignedDuration::from_secs(30);

/// What each pod counts for, in thousandths of a core.
type Values = BTreeMap<String, i64>;

struct Groups {
    measured: Values,
    unready: Vec<String>,
    missing: Vec<String>,
}

/// Whether the target speaks of a share of the requests or of an amount.
enum Target {
    Share { percent: i32, requests: Values },
    Amount(i64),
}

struct Measure {
    ratio: f64,
    percent: Option<i32>,
    average: i64,
}

pub(super) fn propose(load: &Load<'_>, target: &MetricTarget) -> Result<Proposal, String> {
    let target = read(target, load)?;
    if load.pods.is_empty() {
        return Err("no pods returned by selector while calculating replica count".into());
    }
    let Groups { mut measured, unready, missing } = groups(load);
    let first = target.measure(&measured)?;
    let replicas = if missing.is_empty() && (unready.is_empty() || first.ratio <= 1.0) {
        if load.tolerance.allows(first.ratio) {
            load.replicas
        } else {
            rounded_up(first.ratio * measured.len() as f64)
        }
    } else {
        // Who is not heard counts against the change: as busy when there are to be fewer, as idle
        // when there are to be more.
        for uid in &missing {
            measured.insert(uid.clone(), target.assumed(uid, first.ratio));
        }
        if first.ratio > 1.0 {
            measured.extend(unready.into_iter().map(|uid| (uid, 0)));
        }
        let again = target.measure(&measured)?.ratio;
        second_thought(load, first.ratio, again, measured.len())
    };
    let (current, metric) = first.shown();
    Ok(Proposal { replicas, current, metric })
}

/// With the assumptions the change may be too small, or the other way round: then there is none.
fn second_thought(load: &Load<'_>, first: f64, again: f64, pods: usize) -> i32 {
    let turned = (first < 1.0 && again > 1.0) || (first > 1.0 && again < 1.0);
    let replicas = rounded_up(again * pods as f64);
    let against =
        (again < 1.0 && replicas > load.replicas) || (again > 1.0 && replicas < load.replicas);
    if load.tolerance.allows(again) || turned || against { load.replicas } else { replicas }
}

impl Target {
    fn measure(&self, values: &Values) -> Result<Measure, String> {
        if values.is_empty() {
            return Err("did not receive metrics for targeted pods (pods might be unready)".into());
        }
        let total: i128 = values.values().map(|value| i128::from(*value)).sum();
        let average = narrow(total / values.len() as i128);
        match self {
            Target::Amount(amount) => {
                Ok(Measure { ratio: average as f64 / *amount as f64, percent: None, average })
            }
            Target::Share { percent, requests } => {
                let asked = values.keys().filter_map(|uid| requests.get(uid));
                let asked: i128 = asked.map(|value| i128::from(*value)).sum();
                if asked == 0 {
                    return Err("no metrics returned matched known pods".into());
                }
                let used = i32::try_from(total * 100 / asked).unwrap_or(i32::MAX);
                let ratio = f64::from(used) / f64::from(*percent);
                Ok(Measure { ratio, percent: Some(used), average })
            }
        }
    }

    fn assumed(&self, uid: &str, ratio: f64) -> i64 {
        if ratio >= 1.0 {
            return 0;
        }
        match self {
            Target::Amount(amount) => *amount,
            Target::Share { percent, requests } => {
                let request = i128::from(requests.get(uid).copied().unwrap_or_default());
                narrow(request * i128::from((*percent).max(100)) / 100)
            }
        }
    }
}

impl Measure {
    fn shown(&self) -> (MetricValueStatus, &'static str) {
        let average = match self.average {
            whole if whole % 1000 == 0 => (whole / 1000).to_string(),
            milli => format!("{milli}m"),
        };
        let current = MetricValueStatus {
            average_utilization: self.percent,
            average_value: Some(Quantity(average)),
            value: None,
        };
        match self.percent {
            Some(_) => (current, "cpu resource utilization (percentage of request)"),
            None => (current, "cpu resource"),
        }
    }
}

fn read(target: &MetricTarget, load: &Load<'_>) -> Result<Target, String> {
    if let Some(Quantity(text)) = &target.average_value {
        let amount = milli(text).ok_or_else(|| format!("the target {text:?} is no quantity"))?;
        return Ok(Target::Amount(amount));
    }
    let Some(percent) = target.average_utilization else {
        return Err(
            "invalid resource metric source: neither an average utilization target nor an \
            average value (usage) target was set"
                .into(),
        );
    };
    let requests = load.pods.iter().map(|pod| Ok((uid(pod), request(pod)?)));
    Ok(Target::Share { percent, requests: requests.collect::<Result<_, String>>()? })
}

fn groups(load: &Load<'_>) -> Groups {
    let mut groups = Groups { measured: Values::new(), unready: Vec::new(), missing: Vec::new() };
    for pod in load.pods {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if pod.metadata.deletion_timestamp.is_some() || phase == Some("Failed") {
            continue;
        }
        match load.samples.get(&uid(pod)) {
            _ if matches!(phase, None | Some("Pending")) => groups.unready.push(uid(pod)),
            None => groups.missing.push(uid(pod)),
            Some(sample) if !counts(pod, sample, load.now) => groups.unready.push(uid(pod)),
            Some(sample) => drop(groups.measured.insert(uid(pod), sample.milli)),
        }
    }
    groups
}

/// Whether the sample tells of work rather than of starting.
fn counts(pod: &Pod, sample: &Sample, now: Timestamp) -> bool {
    let Some(status) = &pod.status else { return false };
    let mut conditions = status.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready");
    let (Some(ready), Some(start)) = (ready, &status.start_time) else { return false };
    let since = ready.last_transition_time.as_ref().map_or(start.0, |time| time.0);
    if later(start.0, STARTING) > now {
        ready.status != "False" && sample.at >= later(since, sample.window)
    } else {
        ready.status != "False" || later(start.0, FIRST_READINESS) <= since
    }
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// What all containers of the pod that run at the same time ask for.
fn request(pod: &Pod) -> Result<i64, String> {
    let spec = pod.spec.as_ref();
    let own = spec.and_then(|spec| spec.resources.as_ref()?.requests.as_ref()?.get("cpu"));
    if let Some(Quantity(text)) = own {
        return Ok(milli(text).unwrap_or_default());
    }
    let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let sidecars = init.iter().filter(|one| one.restart_policy.as_deref() == Some("Always"));
    let containers = spec.into_iter().flat_map(|spec| &spec.containers);
    let requests = containers.chain(sidecars).map(|container| {
        container_request(container).ok_or_else(|| {
            let pod = pod.metadata.name.as_deref().unwrap_or_default();
            format!("missing request for cpu in container {} of Pod {pod}", container.name)
        })
    });
    requests.sum()
}

fn container_request(container: &Container) -> Option<i64> {
    let Quantity(text) = container.resources.as_ref()?.requests.as_ref()?.get("cpu")?;
    milli(text)
}

fn milli(text: &str) -> Option<i64> {
    let nano = quantity::Quantity::parse(text).ok()?.to_milli().nano();
    Some(narrow(nano / 1_000_000))
}

fn narrow(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Beyond the limits of the type it is cut, and no number is none.
fn rounded_up(replicas: f64) -> i32 {
    replicas.ceil() as i32
}

fn uid(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap_or_default()
}
