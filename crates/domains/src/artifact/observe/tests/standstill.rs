//! W10: why a run does not move is said, whatever the reason; its phase stays what it is.

use serde_json::{Value, json};

use super::*;
use crate::artifact::fixture::event_about;

fn message(job: &Job, pods: &[Pod], events: &[Event]) -> String {
    let observation = observe(Evidence { job: Some(job), pods, events, now: now() });
    assert!(matches!(observation.phase, Phase::Pending | Phase::Running));
    assert_eq!(observation.ready, Status::Unknown);
    observation.message
}

fn waiting_pod(job: &Job, reason: &str, text: &str) -> Pod {
    let state = json!({ "waiting": { "reason": reason, "message": text } });
    let placed = json!({ "spec": { "containers": [], "nodeName": "n1" } });
    with(&pod(job, "Pending", json!([container("kit", state)])), placed)
}

#[test]
fn w10_a_pod_that_fits_nowhere_says_so_in_both_phases() {
    let text = "0/3 nodes are available: 3 Insufficient memory.";
    let unscheduled = json!({ "status": { "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text,
    }]}});
    for status in [running(), json!({})] {
        let job = first_job(status);
        let pod = with(&pod_of(&job, "Pending"), unscheduled.clone());
        assert_eq!(message(&job, &[pod], &[]), format!("The pod does not start: {text}"));
    }
}

#[test]
fn w10_an_unbound_workspace_is_named() {
    let text = "pod has unbound immediate PersistentVolumeClaims";
    let unscheduled = json!({ "status": { "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text,
    }]}});
    let job = first_job(running());
    let pod = with(&pod_of(&job, "Pending"), unscheduled);
    assert!(message(&job, &[pod], &[]).contains("unbound immediate PersistentVolumeClaims"));
}

#[test]
fn w10_a_missing_secret_is_named() {
    let job = first_job(running());
    let text = "secret \"hf-token\" not found";
    let pod = waiting_pod(&job, "CreateContainerConfigError", text);
    assert!(message(&job, &[pod], &[]).contains(text));
    let pod = waiting_pod(&job, "ContainerCreating", "");
    let mount =
        "MountVolume.SetUp failed for volume \"docker-config\" : secret \"oci-creds\" not found";
    let event = event_about("Pod", &pod.metadata, "FailedMount", mount);
    assert!(message(&job, &[pod], &[event]).contains("secret \"oci-creds\" not found"));
}

#[test]
fn w10_an_image_that_cannot_be_pulled_is_named() {
    let job = first_job(running());
    let pod = waiting_pod(&job, "ImagePullBackOff", "Back-off pulling image \"kit:none\"");
    let text = message(&job, &[pod], &[]);
    assert!(text.starts_with("The pod does not start: "), "{text}");
    assert!(text.contains("kit:none"), "{text}");
}

#[test]
fn w10_a_job_that_gets_no_pod_says_why() {
    let job = first_job(running());
    let quota = "Error creating: pods is forbidden: exceeded quota: compute";
    let at = |seconds: i64, text: &str| {
        let event = event_about("Job", &job.metadata, "FailedCreate", text);
        with(&event, json!({ "lastTimestamp": ago(seconds) }))
    };
    let events = [at(60, "older"), at(5, quota), at(30, "old")];
    assert_eq!(message(&job, &[], &events), format!("The Job gets no pod: {quota}"));
}

#[test]
fn w10_a_suspended_job_says_so() {
    let suspended = json!({ "conditions": [{ "type": "Suspended", "status": "True" }] });
    assert_eq!(message(&first_job(suspended), &[], &[]), "Job is suspended");
}

#[test]
fn a_pod_that_merely_waits_or_works_has_nothing_to_say() {
    let job = first_job(running());
    let creating = waiting_pod(&job, "ContainerCreating", "");
    for pod in [pod_of(&job, "Pending"), pod_of(&job, "Running"), creating] {
        assert_eq!(message(&job, &[pod], &[]), "Import/pack/push pipeline is running");
    }
}

#[test]
fn what_keeps_a_pod_from_starting_is_cut_and_free_of_secrets_too() {
    let job = first_job(running());
    let text = format!("password=hunter2secret {}", "x".repeat(3000));
    let unscheduled: Value = json!({ "status": { "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text,
    }]}});
    let said = message(&job, &[with(&pod_of(&job, "Pending"), unscheduled)], &[]);
    assert!(said.len() <= 1024 && said.ends_with("..."), "{}", said.len());
    assert!(!said.contains("hunter2"), "{said}");
}
