use serde_json::{Value, json};

use super::*;
use crate::error::Category::{Infrastructure, InvalidSpec, MissingDownstream, ResourceExhaustion};
use crate::health::tests::{brief, message, object};

/// Two replicas wanted, generation 2 seen.
fn deployment_with(status: Value) -> Deployment {
    let mut value = json!({
        "metadata": {"generation": 2},
        "spec": {"replicas": 2, "selector": {}, "template": {}},
        "status": {"observedGeneration": 2},
    });
    let target = value["status"].as_object_mut().unwrap();
    target.extend(status.as_object().unwrap().clone());
    object(value)
}

fn inspect(status: Value, pods: Option<Inspection>) -> Inspection {
    deployment(Some(&deployment_with(status)), pods)
}

fn rolled_out() -> Value {
    json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2})
}

#[test]
fn a_deployment_goes_from_missing_to_available() {
    let missing = (State::Progressing, "DeploymentNotFound".into(), Some(MissingDownstream));
    assert_eq!(brief(deployment(None, None)), missing);
    for (status, state, reason) in [
        (json!({"observedGeneration": 1}), State::Progressing, "RolloutPending"),
        (json!({"replicas": 1, "updatedReplicas": 1}), State::Progressing, "RollingOut"),
        (json!({"replicas": 2, "updatedReplicas": 2}), State::Starting, "WaitingForPods"),
        (rolled_out(), State::Ready, "DeploymentAvailable"),
        // Available are the old pods; the new one has yet to prove itself.
        (
            json!({"replicas": 3, "updatedReplicas": 2, "availableReplicas": 2}),
            State::Progressing,
            "RollingOut",
        ),
    ] {
        assert_eq!(brief(inspect(status.clone(), None)), (state, reason.into(), None), "{status}");
    }
}

#[test]
fn a_rollout_says_what_it_waits_for() {
    for (total, updated, want) in [
        (2, 0, "0 of 2 pods are up to date"),
        (3, 1, "1 of 2 pods are up to date"),
        (3, 2, "1 old pod still runs"),
        (4, 2, "2 old pods still run"),
    ] {
        let status = json!({"replicas": total, "updatedReplicas": updated, "availableReplicas": 2});
        assert_eq!(message(inspect(status, None)), want, "{updated} of {total}");
    }
}

#[test]
fn refused_pods_are_explained_by_the_deployment() {
    for (message, category) in [
        ("pods \"x\" is forbidden: exceeded quota: gpus", ResourceExhaustion),
        ("Internal error: failed calling webhook", Infrastructure),
        ("violates PodSecurity", InvalidSpec),
    ] {
        let failure = json!({"conditions": [
            {"type": "ReplicaFailure", "status": "True", "message": message},
        ]});
        let got = brief(inspect(failure, None));
        assert_eq!(got, (State::Degraded, "ReplicaFailure".into(), Some(category)));
    }
}

#[test]
fn a_stalled_rollout_is_refined_by_its_pods() {
    let stalled = json!({"replicas": 2, "conditions": [{
        "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
        "message": "timed out",
    }]});
    let waiting = Inspection::of(State::Pending, "FailedScheduling", "no node fits");
    let crash = Inspection::failed(Error::invalid_spec("CrashLoopBackOff", "exit code 1"));
    for (pods, reason, text) in [
        (None, "RolloutStalled", "timed out"),
        (Some(waiting), "RolloutStalled", "timed out: no node fits"),
        (Some(crash), "CrashLoopBackOff", "exit code 1"),
    ] {
        let got = inspect(stalled.clone(), pods);
        assert_eq!(message(got.clone()), text);
        let (state, got_reason, _) = brief(got);
        assert_eq!((state, got_reason.as_str()), (State::Degraded, reason));
    }
}

#[test]
fn failing_pods_are_the_reason_for_waiting_but_do_not_undo_availability() {
    let crash = || Inspection::failed(Error::auth("ImagePullAuthFailure", "denied"));
    for (status, reason) in [
        (json!({"replicas": 1, "updatedReplicas": 1}), "ImagePullAuthFailure"),
        (json!({"replicas": 2, "updatedReplicas": 2}), "ImagePullAuthFailure"),
        (rolled_out(), "DeploymentAvailable"),
    ] {
        assert_eq!(brief(inspect(status, Some(crash()))).1, reason);
    }
    let waiting = Inspection::of(State::Pending, "FailedScheduling", "no node fits");
    let got = inspect(json!({"replicas": 2, "updatedReplicas": 2}), Some(waiting));
    assert_eq!(message(got), "0 of 2 pods are available: no node fits");
}

#[test]
fn a_deployment_that_is_being_deleted_is_not_available() {
    let mut leaving = deployment_with(rolled_out());
    leaving.metadata.deletion_timestamp = Some(object(json!("2026-01-01T00:00:00Z")));
    let got = deployment(Some(&leaving), None);
    assert_eq!(message(got.clone()), "Deployment is being deleted");
    assert_eq!(brief(got), (State::Progressing, "Terminating".into(), None));
}
