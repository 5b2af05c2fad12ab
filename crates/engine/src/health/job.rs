//! Health of a Job.

#[cfg(test)]
mod tests;

use k8s_openapi::api::batch::v1::{Job, JobCondition};

use super::Inspection;
use crate::error::Error;
use crate::state::State;

pub fn job(job: Option<&Job>) -> Inspection {
    let Some(job) = job else {
        return Inspection::failed(Error::missing_downstream("JobNotFound", "Job not found"));
    };
    match outcome(job) {
        Some(Outcome::Complete) => Inspection::default(),
        Some(Outcome::Failed(condition)) => Inspection::failed(failure(condition)),
        None => unfinished(job),
    }
}

pub fn is_complete(job: &Job) -> bool {
    matches!(outcome(job), Some(Outcome::Complete))
}

pub fn is_failed(job: &Job) -> bool {
    matches!(outcome(job), Some(Outcome::Failed(_)))
}

enum Outcome<'a> {
    Complete,
    Failed(&'a JobCondition),
}

/// A finished Job never changes its mind, so should both be said, the earlier word stands.
fn outcome(job: &Job) -> Option<Outcome<'_>> {
    let complete = is_true(job, "Complete");
    let failed = is_true(job, "Failed");
    match (complete, failed) {
        (Some(complete), Some(failed)) => {
            let since = |condition: &JobCondition| {
                condition.last_transition_time.as_ref().map(|time| time.0)
            };
            let failed_first = since(failed) < since(complete);
            Some(if failed_first { Outcome::Failed(failed) } else { Outcome::Complete })
        }
        (Some(_), None) => Some(Outcome::Complete),
        (None, failed) => failed.map(Outcome::Failed),
    }
}

/// The Job's condition of this type, if it holds.
pub fn is_true<'a>(job: &'a Job, type_: &str) -> Option<&'a JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_ && condition.status == "True")
}

fn failure(condition: &JobCondition) -> Error {
    let message = text(condition).unwrap_or("Job failed");
    match condition.reason.as_deref().unwrap_or_default() {
        "BackoffLimitExceeded" => Error::invalid_spec("JobBackoffLimitExceeded", message),
        "DeadlineExceeded" => Error::invalid_spec("JobDeadlineExceeded", message),
        "PodFailurePolicy" => Error::invalid_spec("JobPodFailurePolicy", message),
        "FailedIndexes" | "MaxFailedIndexesExceeded" => {
            Error::invalid_spec("JobFailedIndexes", message)
        }
        "Evicted" => Error::infrastructure("JobEvicted", message),
        _ => Error::invalid_spec("JobFailed", message),
    }
}

/// The outcome may be certain while pods are still stopping; nobody may start over before that.
fn unfinished(job: &Job) -> Inspection {
    if let Some(condition) = is_true(job, "FailureTarget") {
        let message = text(condition).unwrap_or("its pods are being stopped");
        return Inspection::progressing("JobFailing", format!("Job is failing: {message}"));
    }
    if is_true(job, "SuccessCriteriaMet").is_some() {
        return Inspection::progressing("JobCompleting", "Job is stopping its remaining pods");
    }
    if is_true(job, "Suspended").is_some() {
        return Inspection::of(State::Pending, "JobSuspended", "Job is suspended");
    }
    Inspection::progressing("JobRunning", "Job is in progress")
}

fn text(condition: &JobCondition) -> Option<&str> {
    condition.message.as_deref().filter(|message| !message.is_empty())
}
