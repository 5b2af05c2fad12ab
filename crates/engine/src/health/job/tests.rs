use serde_json::{Value, json};

use super::*;
use crate::error::Category::{Infrastructure, InvalidSpec, MissingDownstream};
use crate::health::tests::{brief, message, object};

fn job_with(conditions: Value) -> Job {
    object(json!({"status": {"conditions": conditions}}))
}

fn inspect(conditions: Value) -> (State, String, Option<crate::error::Category>) {
    brief(job(Some(&job_with(conditions))))
}

#[test]
fn a_job_is_missing_running_done_or_failed() {
    let missing = (State::Progressing, "JobNotFound".into(), Some(MissingDownstream));
    assert_eq!(brief(job(None)), missing);
    for (conditions, state, reason) in [
        (json!([]), State::Progressing, "JobRunning"),
        (json!([{"type": "Complete", "status": "True"}]), State::Ready, "Ready"),
        (json!([{"type": "Complete", "status": "False"}]), State::Progressing, "JobRunning"),
    ] {
        assert_eq!(inspect(conditions), (state, reason.into(), None));
    }
}

#[test]
fn a_failed_job_says_why() {
    for (reason, want, category) in [
        ("BackoffLimitExceeded", "JobBackoffLimitExceeded", InvalidSpec),
        ("DeadlineExceeded", "JobDeadlineExceeded", InvalidSpec),
        ("PodFailurePolicy", "JobPodFailurePolicy", InvalidSpec),
        ("FailedIndexes", "JobFailedIndexes", InvalidSpec),
        ("Evicted", "JobEvicted", Infrastructure),
        ("Odd", "JobFailed", InvalidSpec),
    ] {
        let got = inspect(json!([{"type": "Failed", "status": "True", "reason": reason}]));
        assert_eq!(got, (State::Degraded, want.into(), Some(category)));
    }
    let job = job_with(json!([{"type": "Failed", "status": "True", "message": "too many"}]));
    assert!(is_failed(&job) && !is_complete(&job));
    assert_eq!(message(super::job(Some(&job))), "too many");
}

#[test]
fn w14_a_job_about_to_end_or_on_hold_is_not_simply_running() {
    for (type_, state, reason) in [
        ("Suspended", State::Pending, "JobSuspended"),
        ("FailureTarget", State::Progressing, "JobFailing"),
        ("SuccessCriteriaMet", State::Progressing, "JobCompleting"),
    ] {
        let got = inspect(json!([{"type": type_, "status": "True"}]));
        assert_eq!(got, (state, reason.into(), None));
    }
}

#[test]
fn w14_of_two_outcomes_the_earlier_stands() {
    for (complete, failed, is_done) in [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", true),
        ("2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z", false),
    ] {
        let job = job_with(json!([
            {"type": "Failed", "status": "True", "lastTransitionTime": failed},
            {"type": "Complete", "status": "True", "lastTransitionTime": complete},
        ]));
        assert_eq!(is_complete(&job), is_done);
        assert_eq!(is_failed(&job), !is_done);
    }
}
