//! What a ReplicaSet says of itself.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus},
    core::v1::Pod,
};
use kube::ResourceExt;

use crate::controllers::{
    pods::{is_ready, wait_for_available},
    stamp,
};

const FAILURE: &str = "ReplicaFailure";

pub(super) fn replicas(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

pub(super) fn min_ready_seconds(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
}

/// With these active pods, after an attempt to change their number that failed or did not.
pub(super) fn next(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    terminating: usize,
    failure: Option<String>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let old = set.status.clone().unwrap_or_default();
    let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref()?.metadata.as_ref());
    let labels = template.and_then(|meta| meta.labels.clone()).unwrap_or_default();
    let is_labelled =
        |pod: &Pod| labels.iter().all(|(key, value)| pod.labels().get(key) == Some(value));
    let is_available = |pod: &Pod| {
        wait_for_available(pod, min_ready_seconds(set), now).is_some_and(|wait| wait.is_zero())
    };
    let number = |test: &dyn Fn(&Pod) -> bool| shown(active.iter().filter(|pod| test(pod)).count());
    ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: number(&is_labelled),
        ready_replicas: number(&is_ready),
        available_replicas: number(&is_available),
        terminating_replicas: Some(count(terminating)),
        observed_generation: set.metadata.generation,
        conditions: conditions(set, active.len(), old.conditions, failure, now),
    }
}

fn conditions(
    set: &ReplicaSet,
    active: usize,
    known: Option<Vec<ReplicaSetCondition>>,
    failure: Option<String>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    let mut all = known.unwrap_or_default();
    let is_known = all.iter().any(|condition| condition.type_ == FAILURE);
    match failure {
        // The first failure is kept: the next ones are its repetitions as a rule.
        Some(message) if !is_known => {
            let missing = count(active) < replicas(set);
            all.push(ReplicaSetCondition {
                type_: FAILURE.into(),
                status: "True".into(),
                reason: Some(if missing { "FailedCreate" } else { "FailedDelete" }.into()),
                message: Some(message),
                last_transition_time: Some(stamp(now)),
            });
        }
        Some(_) => {}
        None => all.retain(|condition| condition.type_ != FAILURE),
    }
    if all.is_empty() { None } else { Some(all) }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Zero is left out.
fn shown(number: usize) -> Option<i32> {
    Some(count(number)).filter(|number| *number != 0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    const NOW: &str = "2026-01-01T00:01:00Z";

    fn set(spec: Value) -> ReplicaSet {
        let mut body = json!({
            "metadata": {"generation": 3},
            "spec": {"replicas": 2, "selector": {},
                "template": {"metadata": {"labels": {"a": "b", "c": "d"}}}},
        });
        json_patch::merge(&mut body, &json!({"spec": spec}));
        from_value(body).unwrap()
    }

    fn pod(labels: Value, ready_at: &str) -> Arc<Pod> {
        let status = if ready_at.is_empty() { "False" } else { "True" };
        let at = if ready_at.is_empty() { NOW } else { ready_at };
        let ready = json!({"type": "Ready", "status": status, "lastTransitionTime": at});
        let body = json!({"metadata": {"labels": labels}, "status": {"conditions": [ready]}});
        Arc::new(from_value(body).unwrap())
    }

    #[test]
    fn pods_are_counted_by_what_they_are() {
        let (all, some) = (json!({"a": "b", "c": "d", "e": "f"}), json!({"a": "b"}));
        let pods = [
            pod(all.clone(), "2026-01-01T00:00:50Z"),
            pod(all, "2026-01-01T00:00:55Z"),
            pod(some, ""),
        ];
        let set = set(json!({"minReadySeconds": 10}));
        let status = next(&set, &pods, 0, None, NOW.parse().unwrap());
        let want = json!({"replicas": 3, "fullyLabeledReplicas": 2, "readyReplicas": 2,
            "availableReplicas": 1, "terminatingReplicas": 0, "observedGeneration": 3});
        assert_eq!(serde_json::to_value(status).unwrap(), want);
    }

    #[test]
    fn the_first_failure_stays_until_it_is_over() {
        let now: Timestamp = NOW.parse().unwrap();
        let set = set(json!({}));
        let failed = next(&set, &[], 0, Some("no".into()), now);
        let want = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
            "message": "no", "lastTransitionTime": NOW}]);
        assert_eq!(json!(failed.conditions), want);
        let set = ReplicaSet { status: Some(failed.clone()), ..set };
        assert_eq!(next(&set, &[], 0, Some("still no".into()), now).conditions, failed.conditions);
        assert_eq!(next(&set, &[], 0, None, now).conditions, None);
    }
}
