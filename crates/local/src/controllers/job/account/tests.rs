use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, from_value, json};

use super::*;
use crate::controllers::job::{FINALIZER, backoff::Backoff};

const NOW: &str = "2026-01-01T00:01:00Z";

fn job(spec: &Value, status: &Value) -> Job {
    let mut body = json!({
        "metadata": {"name": "j", "uid": "j"},
        "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": {}},
        "status": {},
    });
    json_patch::merge(&mut body, &json!({"spec": spec, "status": status}));
    from_value(body).unwrap()
}

fn pod(uid: &str, phase: &str) -> Arc<Pod> {
    let meta = json!({"name": uid, "uid": uid, "finalizers": [FINALIZER]});
    Arc::new(from_value(json!({"metadata": meta, "status": {"phase": phase}})).unwrap())
}

fn account(job: &Job, pods: &[Arc<Pod>], done: usize) -> Account {
    let spec = job.spec.as_ref().unwrap();
    let now = NOW.parse().unwrap();
    let known = Known { job, spec, pods, backoff: Backoff::default(), now };
    known.account(&known.decide(), done)
}

fn shown(status: &JobStatus) -> Value {
    let mut status = serde_json::to_value(status).unwrap();
    if let Some(conditions) = status.get_mut("conditions") {
        let types = conditions.as_array().unwrap().iter();
        *conditions = types.map(|one| format!("{} {}", one["type"], one["status"])).collect();
    }
    status
}

#[test]
fn a_new_job_has_an_active_pod() {
    let account = account(&job(&json!({}), &json!({})), &[], 1);
    let want = json!({"startTime": NOW, "active": 1, "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": {}});
    assert_eq!(shown(&account.status), want);
    assert!(account.end.is_none() && account.release.is_empty());
}

#[test]
fn success_is_named_released_counted_and_closed() {
    let job = job(&json!({}), &json!({"active": 1, "startTime": NOW}));
    let mut account = account(&job, &[pod("a", "Succeeded")], 0);
    let want = json!({"startTime": NOW, "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": {"succeeded": ["a"]},
        "conditions": ["\"SuccessCriteriaMet\" \"True\""]});
    assert_eq!(shown(&account.status), want);
    assert_eq!(account.release.len(), 1);
    let end = account.end.unwrap();
    assert!(!close(&mut account.status.clone(), &end), "not before it is counted");
    count_released(&mut account.status, &BTreeSet::new());
    assert!(close(&mut account.status, &end));
    let want = json!({"startTime": NOW, "completionTime": NOW, "ready": 0, "terminating": 0,
        "succeeded": 1, "uncountedTerminatedPods": {},
        "conditions": ["\"SuccessCriteriaMet\" \"True\"", "\"Complete\" \"True\""]});
    assert_eq!(shown(&account.status), want);
    let told = (end.reason.as_deref(), end.message.as_deref());
    assert_eq!(told, (Some(reasons::COMPLETIONS.0), Some(reasons::COMPLETIONS.1)));
}

#[test]
fn what_runs_when_a_job_fails_has_failed() {
    let spec = json!({"parallelism": 2, "completions": 2});
    let pods = [pod("a", "Failed"), pod("b", "Running")];
    let mut failed = account(&job(&spec, &json!({"startTime": NOW})), &pods, 1);
    let want = json!({"startTime": NOW, "ready": 0, "terminating": 1,
        "uncountedTerminatedPods": {"failed": ["a", "b"]},
        "conditions": ["\"FailureTarget\" \"True\""]});
    assert_eq!(shown(&failed.status), want);
    count_released(&mut failed.status, &BTreeSet::new());
    let end = failed.end.unwrap();
    assert!(!close(&mut failed.status, &end), "one is still on its way out");
    failed.status.terminating = Some(0);
    assert!(close(&mut failed.status, &end));
    assert_eq!((end.type_.as_str(), failed.status.failed), (conditions::FAILED, Some(2)));
    assert_eq!(failed.status.completion_time, None);
}

#[test]
fn it_is_too_early_for_the_end_while_pods_cannot_be_deleted() {
    let pods = [pod("a", "Failed"), pod("b", "Running")];
    let account = account(&job(&json!({}), &json!({})), &pods, 0);
    assert!(account.end.is_none());
    assert_eq!(account.status.conditions, None);
}

#[test]
fn a_pod_is_counted_once() {
    let named = json!({"uncountedTerminatedPods": {"failed": ["a", "gone"]}, "failed": 1});
    let job = job(&json!({"backoffLimit": 9}), &named);
    let account = account(&job, &[pod("a", "Failed")], 0);
    assert_eq!(account.status.failed, Some(2), "the one that is gone");
    let uncounted = account.status.uncounted_terminated_pods.unwrap();
    assert_eq!((uncounted.failed, account.release.len()), (Some(vec!["a".to_owned()]), 1));
}

#[test]
fn a_pause_is_told_and_resets_the_start() {
    let suspended = job(&json!({"suspend": true}), &json!({"startTime": "2026-01-01T00:00:00Z"}));
    let paused = account(&suspended, &[], 0);
    assert_eq!(paused.event, Some(("Suspended", "Job suspended")));
    assert_eq!(paused.status.start_time, None);
    let status = serde_json::to_value(&paused.status).unwrap();
    assert_eq!(status["conditions"][0]["reason"], "JobSuspended");
    assert_eq!(account(&job(&json!({"suspend": true}), &status), &[], 0).event, None);
    let resumed = account(&job(&json!({"suspend": false}), &status), &[], 1);
    assert_eq!(resumed.event, Some(("Resumed", "Job resumed")));
    let status = serde_json::to_value(&resumed.status).unwrap();
    assert_eq!(
        (&status["startTime"], &status["conditions"][0]["status"]),
        (&json!(NOW), &json!("False"))
    );
    assert_eq!(status["conditions"][0]["reason"], "JobResumed");
}
