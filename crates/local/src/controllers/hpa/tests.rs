use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    autoscaling::{
        v1::Scale,
        v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerBehavior},
    },
    core::v1::Pod,
};
use serde_json::{Value, json};

use super::{
    decide::{Decision, Rescale, Seen, decide, without_scale},
    limits::{History, Range, limit},
    load::Sample,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn autoscaler(spec: Value) -> HorizontalPodAutoscaler {
    let mut spec = spec;
    for (key, value) in [
        ("maxReplicas", json!(10)),
        ("scaleTargetRef", json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"})),
        ("metrics", cpu(json!({"type": "Utilization", "averageUtilization": 50}))),
    ] {
        if spec.get(key).is_none() {
            spec[key] = value;
        }
    }
    serde_json::from_value(json!({"metadata": {"name": "h"}, "spec": spec})).unwrap()
}

fn cpu(target: Value) -> Value {
    json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}])
}

fn scale(replicas: i32) -> Scale {
    let status = json!({"replicas": replicas, "selector": "app=a"});
    serde_json::from_value(json!({"spec": {"replicas": replicas}, "status": status})).unwrap()
}

/// Ready since long ago, with a request of one core.
fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {
            "phase": "Running", "startTime": at(-9000).to_string(),
            "conditions": [{"type": "Ready", "status": "True",
                "lastTransitionTime": at(-8990).to_string()}],
        },
    })
}

struct Case {
    pods: Vec<Value>,
    used: BTreeMap<String, Sample>,
    autoscaler: HorizontalPodAutoscaler,
    replicas: i32,
}

impl Case {
    /// Pods with these thousandths of a core each.
    fn of(autoscaler: HorizontalPodAutoscaler, used: &[i64]) -> Self {
        let names = (0..used.len()).map(|index| format!("p{index}"));
        let sample = |milli: &i64| Sample {
            milli: *milli,
            at: at(0),
            window: SignedDuration::from_secs(15),
        };
        Self {
            pods: names.clone().map(|name| pod(&name)).collect(),
            used: names.zip(used.iter().map(sample)).collect(),
            autoscaler,
            replicas: i32::try_from(used.len()).unwrap(),
        }
    }

    fn decide_with(&self, history: &mut History, now: Timestamp) -> Decision {
        let pods: Vec<Arc<Pod>> = self
            .pods
            .iter()
            .map(|pod| Arc::new(serde_json::from_value(pod.clone()).unwrap()))
            .collect();
        let seen = Seen {
            autoscaler: &self.autoscaler,
            scale: &scale(self.replicas),
            pods: &pods,
            samples: &self.used,
            now,
        };
        decide(&seen, history)
    }

    fn decide(&self) -> Decision {
        self.decide_with(&mut History::default(), at(0))
    }

    fn wanted(&self) -> i32 {
        self.decide().rescale.map_or(self.replicas, |rescale| rescale.to)
    }
}

fn told(decision: &Decision) -> Vec<(&str, &str, &str)> {
    let conditions = decision.status.conditions.iter().flatten();
    conditions
        .map(|one| (&*one.type_, &*one.status, one.reason.as_deref().unwrap_or_default()))
        .collect()
}

#[test]
fn a_number_out_of_range_is_corrected_whatever_is_measured() {
    let external = json!([{"type": "External", "external": {"metric": {"name": "q"},
        "target": {"type": "Value", "value": "1"}}}]);
    for (min, max, current, to, reason) in [
        (2, 10, 1, 2, "Current number of replicas below Spec.MinReplicas"),
        (1, 3, 5, 3, "Current number of replicas above Spec.MaxReplicas"),
    ] {
        let spec = json!({"minReplicas": min, "maxReplicas": max, "metrics": external});
        let mut case = Case::of(autoscaler(spec), &[]);
        case.replicas = current;
        let mut history = History::default();
        let mut decision = case.decide_with(&mut history, at(0));
        let rescale = decision.rescale.clone().unwrap();
        assert_eq!(rescale, Rescale { from: current, to, reason: reason.into() });
        decision.rescaled(&rescale, &mut history, at(1));
        assert_eq!(told(&decision), [("AbleToScale", "True", "SucceededRescale")]);
        assert_eq!(decision.status.desired_replicas, to);
        assert_eq!(decision.status.current_replicas, Some(current));
        assert_eq!(decision.status.last_scale_time.unwrap().0, at(1));
    }
}

#[test]
fn nothing_is_scaled_from_zero() {
    let mut case = Case::of(autoscaler(json!({})), &[]);
    case.replicas = 0;
    let decision = case.decide();
    assert_eq!(decision.rescale, None);
    assert_eq!(
        told(&decision),
        [
            ("AbleToScale", "True", "SucceededGetScale"),
            ("ScalingActive", "False", "ScalingDisabled")
        ]
    );
}

#[test]
fn the_ratio_of_use_to_target_decides_beyond_a_tenth() {
    for (used, want) in [
        (&[500, 500][..], 2),
        (&[540, 540], 2),
        (&[460, 460], 2),
        (&[560, 560], 3),
        (&[1000, 1000], 4),
        (&[0, 1000], 2),
        (&[2000, 2000, 2000, 2000], 8),
    ] {
        let case = Case::of(autoscaler(json!({})), used);
        assert_eq!(case.wanted(), want, "{used:?}");
    }
    let spec = json!({"metrics": cpu(json!({"type": "AverageValue", "averageValue": "250m"}))});
    assert_eq!(Case::of(autoscaler(spec), &[500, 500]).wanted(), 4);
}

#[test]
fn less_use_asks_for_fewer_only_after_five_quiet_minutes() {
    let case = Case::of(autoscaler(json!({})), &[100, 100, 100, 100]);
    let mut history = History::default();
    for second in (0..=300).step_by(15) {
        let decision = case.decide_with(&mut history, at(second));
        let want = (second == 300).then_some(1);
        assert_eq!(decision.rescale.map(|rescale| rescale.to), want, "{second}");
        if want.is_none() {
            assert_eq!(
                decision.status.conditions.unwrap()[0].reason.as_deref(),
                Some("ScaleDownStabilized")
            );
        }
    }
}

#[test]
fn what_was_measured_is_in_the_status() {
    let decision = Case::of(autoscaler(json!({})), &[1000, 500]).decide();
    let metrics = serde_json::to_value(decision.status.current_metrics.as_ref().unwrap()).unwrap();
    assert_eq!(
        metrics,
        json!([{"type": "Resource", "resource": {"name": "cpu", "current": {
            "averageUtilization": 75, "averageValue": "750m"}}}])
    );
    assert_eq!(
        told(&decision),
        [
            ("AbleToScale", "True", "ReadyForNewScale"),
            ("ScalingActive", "True", "ValidMetricFound"),
            ("ScalingLimited", "False", "DesiredWithinRange"),
        ]
    );
    assert_eq!(
        decision.rescale.unwrap().reason,
        "cpu resource utilization (percentage of request) above target"
    );
}

#[test]
fn who_is_not_heard_counts_against_the_change() {
    let mut up = Case::of(autoscaler(json!({})), &[1000, 1000, 1000]);
    up.used.remove("p2");
    // Two at 100 % and one assumed idle: 66 %, so four instead of six.
    assert_eq!(up.wanted(), 4);
    let mut pending = Case::of(autoscaler(json!({})), &[1000, 1000, 1000]);
    pending.pods[2]["status"]["phase"] = json!("Pending");
    assert_eq!(pending.wanted(), 4);
    let mut leaving = Case::of(autoscaler(json!({})), &[1000, 1000, 0]);
    leaving.pods[2]["metadata"]["deletionTimestamp"] = json!(at(0).to_string());
    assert_eq!(leaving.wanted(), 4);
    let mut history = History::default();
    let mut down = Case::of(autoscaler(json!({})), &[100, 100, 100]);
    down.used.remove("p2");
    // The third is assumed busy: 40 %, so three stay.
    history.recommendations.push((at(-1000), 0));
    assert_eq!(down.decide_with(&mut history, at(0)).rescale, None);
}

#[test]
fn a_pod_that_is_starting_does_not_count_yet() {
    let mut case = Case::of(autoscaler(json!({})), &[500, 2000]);
    case.pods[1]["status"]["startTime"] = json!(at(-60).to_string());
    case.pods[1]["status"]["conditions"][0]["lastTransitionTime"] = json!(at(-5).to_string());
    assert_eq!(case.wanted(), 2, "measured before it was ready");
    case.pods[1]["status"]["conditions"][0]["lastTransitionTime"] = json!(at(-20).to_string());
    assert_eq!(case.wanted(), 4, "measured after it was ready, cut to the speed limit");
    case.pods[1]["status"]["conditions"][0]["status"] = json!("False");
    assert_eq!(case.wanted(), 2, "not ready");
}

#[test]
fn what_cannot_be_measured_is_told_once() {
    let pods = json!([{"type": "Pods", "pods": {"metric": {"name": "q"},
        "target": {"type": "AverageValue", "averageValue": "1"}}}]);
    let memory = json!([{"type": "Resource", "resource": {"name": "memory",
        "target": {"type": "Utilization", "averageUtilization": 50}}}]);
    let external = json!([{"type": "External", "external": {"metric": {"name": "q"},
        "target": {"type": "Value", "value": "1"}}}]);
    for metrics in [pods, memory, external] {
        let mut case = Case::of(autoscaler(json!({"metrics": metrics})), &[1000, 1000]);
        let decision = case.decide();
        assert_eq!(decision.rescale, None);
        assert_eq!(
            told(&decision)[1],
            ("ScalingActive", "False", "FailedGetResourceMetric"),
            "{metrics}"
        );
        let reasons: Vec<_> = decision.warnings.iter().map(|(reason, _)| *reason).collect();
        assert_eq!(reasons, ["FailedGetResourceMetric", "FailedComputeMetricsReplicas"]);
        case.autoscaler.status = Some(decision.status.clone());
        let again = case.decide();
        assert_eq!(again, Decision { warnings: vec![], ..decision }, "nothing new is nothing");
    }
}

#[test]
fn missing_samples_requests_or_pods_are_failures() {
    let mut silent = Case::of(autoscaler(json!({})), &[1000]);
    silent.used.clear();
    let mut unasked = Case::of(autoscaler(json!({})), &[1000]);
    unasked.pods[0]["spec"]["containers"][0]["resources"] = json!({});
    let mut alone = Case::of(autoscaler(json!({})), &[1000]);
    alone.pods.clear();
    for (case, want) in [
        (silent, "did not receive metrics"),
        (unasked, "missing request for cpu in container c of Pod p0"),
        (alone, "no pods returned by selector"),
    ] {
        let decision = case.decide();
        assert_eq!(decision.rescale, None, "{want}");
        assert_eq!(told(&decision)[1].2, "FailedGetResourceMetric");
        assert!(decision.warnings[0].1.contains(want), "{:?}", decision.warnings);
    }
}

#[test]
fn one_metric_that_fails_does_not_keep_another_from_asking_for_more() {
    let mut metrics = cpu(json!({"type": "Utilization", "averageUtilization": 50}));
    metrics.as_array_mut().unwrap().push(json!({"type": "External", "external": {
        "metric": {"name": "q"}, "target": {"type": "Value", "value": "1"}}}));
    let spec = json!({"metrics": metrics});
    assert_eq!(Case::of(autoscaler(spec.clone()), &[1000, 1000]).wanted(), 4);
    let down = Case::of(autoscaler(spec), &[10, 10]).decide();
    assert_eq!((down.rescale.is_none(), told(&down)[1].2), (true, "FailedGetResourceMetric"));
}

#[test]
fn a_target_that_does_not_answer_is_told_once() {
    let mut autoscaler = autoscaler(json!({}));
    let first = without_scale(&autoscaler, "not found", at(0));
    assert_eq!(told(&first), [("AbleToScale", "False", "FailedGetScale")]);
    assert_eq!(first.warnings.len(), 1);
    autoscaler.status = Some(first.status.clone());
    let second = without_scale(&autoscaler, "not found", at(15));
    assert_eq!((second.status, second.warnings.len()), (first.status, 0));
}

#[test]
fn a_scale_that_cannot_be_set_is_told_once() {
    let case = Case::of(autoscaler(json!({})), &[1000]);
    let mut decision = case.decide();
    let rescale = decision.rescale.clone().unwrap();
    decision.not_rescaled(&rescale, "no", at(0));
    decision.not_rescaled(&rescale, "no", at(0));
    assert_eq!(told(&decision)[0], ("AbleToScale", "False", "FailedUpdateScale"));
    assert_eq!(decision.warnings.len(), 1);
}

#[test]
fn without_rules_it_goes_up_to_double_or_four_and_stays_in_range() {
    for (current, wanted, want, reason) in [
        (1, 9, 4, "ScaleUpLimit"),
        (3, 9, 6, "ScaleUpLimit"),
        (6, 40, 10, "TooManyReplicas"),
        (4, 5, 5, "DesiredWithinRange"),
        (4, 0, 2, "TooFewReplicas"),
        (4, 4, 4, "DesiredWithinRange"),
    ] {
        let range = Range { current, min: 2.min(current), max: 10 };
        let mut history = History::default();
        let limited = limit(&range, wanted, None, &mut history, at(0));
        assert_eq!((limited.replicas, limited.limited.1), (want, reason), "{current} {wanted}");
    }
}

#[test]
fn rules_limit_the_speed_within_their_periods() {
    let slow = json!({"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]},
        "scaleDown": {"stabilizationWindowSeconds": 0, "policies": [
            {"type": "Percent", "value": 50, "periodSeconds": 60},
            {"type": "Pods", "value": 1, "periodSeconds": 60}]}});
    let mut least = slow.clone();
    least["scaleDown"]["selectPolicy"] = json!("Min");
    let mut never = slow.clone();
    never["scaleDown"]["selectPolicy"] = json!("Disabled");
    for (name, rules, current, wanted, earlier, want) in [
        ("two more", &slow, 4, 9, None, 6),
        ("used up", &slow, 6, 9, Some((-30, 2)), 6),
        ("half used", &slow, 5, 9, Some((-30, 1)), 6),
        ("long ago", &slow, 6, 9, Some((-61, 2)), 8),
        ("half fewer", &slow, 8, 1, None, 4),
        ("one fewer", &least, 8, 1, None, 7),
        ("none fewer", &never, 8, 1, None, 8),
        ("fewer after more", &slow, 8, 1, Some((-30, 4)), 2),
    ] {
        let behavior: HorizontalPodAutoscalerBehavior =
            serde_json::from_value(rules.clone()).unwrap();
        let mut history = History::default();
        history.changes.extend(earlier.map(|(time, change)| (at(time), change)));
        let range = Range { current, min: 1, max: 10 };
        let limited = limit(&range, wanted, Some(&behavior), &mut history, at(0));
        assert_eq!(limited.replicas, want, "{name}");
    }
}

#[test]
fn a_window_for_more_waits_for_all_of_it_to_agree() {
    let rules = json!({"scaleUp": {"stabilizationWindowSeconds": 60}});
    let behavior: HorizontalPodAutoscalerBehavior = serde_json::from_value(rules).unwrap();
    let range = Range { current: 2, min: 1, max: 10 };
    let mut history = History::default();
    history.begin(2, at(0));
    let mut at_time = |second| limit(&range, 4, Some(&behavior), &mut history, at(second));
    assert_eq!(at_time(0).able.1, "ScaleUpStabilized");
    assert_eq!(at_time(30).replicas, 2);
    assert_eq!(at_time(61).replicas, 4);
}
