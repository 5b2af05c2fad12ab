//! What a Job and its pods say about a run: a function of these and nothing else.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_engine::conditions::Status;
use windlass_engine::health::job::{is_failed, is_true};

use super::cause;
use super::fetch::phase;
use super::reasons;
use super::status::Phase;

const NOT_CREATED: &str = "Waiting for job to be created";
const PUSHED: &str = "Model artifact pushed successfully";
const NO_DIGEST: &str =
    "Model artifact pushed successfully; its digest is not known, as its pod is gone or told none";
const RUNNING: &str = "Import/pack/push pipeline is running";
const PENDING: &str = "Job is pending scheduling";
const UNKNOWN_FAILURE: &str = "Job failed with unknown reason";

/// Longest message of a failure, in bytes.
const MAX_MESSAGE: usize = 1024;

/// The end of a Job may be seen before the end of its pod, which comes by another way.
pub(super) const LAG: SignedDuration = SignedDuration::from_secs(5);
/// A pod that has not told its digest this long after the end never will.
pub(super) const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub phase: Phase,
    pub ready: Status,
    pub reason: &'static str,
    pub message: String,
    /// Empty unless the run has pushed and told.
    pub digest: String,
    /// Whether the pod itself had its say; without it a later look may know more.
    pub told: bool,
}

/// What there is to look at.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    pub job: Option<&'a Job>,
    /// The pods of this Job.
    pub pods: &'a [Pod],
    pub events: &'a [Event],
    pub now: Timestamp,
}

pub fn observe(evidence: Evidence<'_>) -> Observation {
    let Some(job) = evidence.job else {
        return waiting(Status::False, reasons::JOB_NOT_CREATED, NOT_CREATED);
    };
    let status = job.status.clone().unwrap_or_default();
    let ended_by = |count: Option<i32>| count.is_some_and(|count| count > 0);
    let succeeded = ended_by(status.succeeded);
    let failed = !succeeded && (ended_by(status.failed) || is_failed(job));
    if (succeeded || failed) && end_of_pods_is_due(job, evidence) {
        return running(cut(ending(job)));
    }
    let observation = if succeeded {
        success(job, evidence)
    } else if failed {
        failure(job, evidence)
    } else if ended_by(status.active) {
        running(cause::of_standstill(job, evidence).unwrap_or_else(|| RUNNING.to_owned()))
    } else {
        let message = cause::of_standstill(job, evidence);
        let message = message.unwrap_or_else(|| PENDING.to_owned());
        Observation { message, ..waiting(Status::Unknown, reasons::JOB_PENDING, "") }
    };
    Observation { message: cut(observation.message), ..observation }
}

fn waiting(ready: Status, reason: &'static str, message: &str) -> Observation {
    Observation {
        phase: Phase::Pending,
        ready,
        reason,
        message: message.to_owned(),
        digest: String::new(),
        told: false,
    }
}

fn running(message: String) -> Observation {
    Observation {
        phase: Phase::Running,
        message,
        ..waiting(Status::Unknown, reasons::JOB_RUNNING, "")
    }
}

/// The outcome is certain, but pods are still being stopped, and may still push.
fn is_ending(job: &Job) -> bool {
    let any = |types: [&str; 2]| types.into_iter().any(|type_| is_true(job, type_).is_some());
    any(["FailureTarget", "SuccessCriteriaMet"]) && !any(["Failed", "Complete"])
}

fn ending(job: &Job) -> String {
    let told = is_true(job, "FailureTarget").and_then(|condition| condition.message.as_deref());
    match told.filter(|text| !text.is_empty()) {
        Some(text) => format!("The pipeline is being stopped: {text}"),
        None => RUNNING.to_owned(),
    }
}

fn success(job: &Job, evidence: Evidence<'_>) -> Observation {
    let digest = last_words(evidence.pods, is_digest).unwrap_or_default();
    let given_up = digest.is_empty() && is_past(job, evidence.now, PATIENCE);
    Observation {
        phase: Phase::Succeeded,
        told: !digest.is_empty(),
        digest,
        ..waiting(Status::True, reasons::SUCCEEDED, if given_up { NO_DIGEST } else { PUSHED })
    }
}

fn failure(job: &Job, evidence: Evidence<'_>) -> Observation {
    let said = last_words(evidence.pods, |_| true).map(|text| cause::redact(&text));
    let failed = is_true(job, "Failed");
    let condition = failed.and_then(|condition| condition.message.clone());
    let condition = condition.filter(|text| !text.is_empty());
    let told = said.is_some();
    // Stopped by the Job controller: whatever the program said last, that was not the cause.
    let stopped = failed.and_then(|c| c.reason.as_deref()) == Some("DeadlineExceeded");
    let message = said.filter(|_| !stopped).unwrap_or_else(|| {
        let condition = condition.unwrap_or_else(|| UNKNOWN_FAILURE.to_owned());
        match cause::of_failure(evidence.pods) {
            Some(cause) => format!("{condition}: {cause}"),
            None => condition,
        }
    });
    Observation {
        phase: Phase::Failed,
        told,
        ..waiting(Status::False, reasons::JOB_FAILED, &message)
    }
}

/// The last message of an ended container that fits. Where no time is recorded it counts as oldest.
fn last_words(pods: &[Pod], fits: impl Fn(&str) -> bool) -> Option<String> {
    let mut last: Option<(Option<Timestamp>, &str)> = None;
    for ended in pods.iter().flat_map(ended_containers) {
        let text = ended.message.as_deref().map(str::trim).unwrap_or_default();
        let at = ended.finished_at.as_ref().map(|time| time.0);
        let later = last.is_none_or(|(known, _)| known.is_none() || at > known);
        if !text.is_empty() && fits(text) && later {
            last = Some((at, text));
        }
    }
    last.map(|(_, text)| text.to_owned())
}

pub(super) fn ended_containers(pod: &Pod) -> impl Iterator<Item = &ContainerStateTerminated> {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses
        .into_iter()
        .flatten()
        .filter_map(|container| container.state.as_ref()?.terminated.as_ref())
}

/// An injected container may end with words of its own.
fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, hex)| {
        matches!(algorithm, "sha256" | "sha512")
            && !hex.is_empty()
            && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The Job has ended, but its pod has not been seen to.
fn end_of_pods_is_due(job: &Job, evidence: Evidence<'_>) -> bool {
    let unfinished = |pod: &Pod| {
        matches!(phase(pod), Some("Pending" | "Running")) && ended_containers(pod).next().is_none()
    };
    is_ending(job) || (evidence.pods.iter().any(unfinished) && !is_past(job, evidence.now, LAG))
}

/// Whether the Job ended longer ago than this; if nobody knows when, it did.
pub(super) fn is_past(job: &Job, now: Timestamp, time: SignedDuration) -> bool {
    finished_at(job).is_none_or(|finished| now.duration_since(finished.0) >= time)
}

/// Kubernetes records the completion of a success; a failure ends when its condition appears.
pub(super) fn finished_at(job: &Job) -> Option<Time> {
    let completed = job.status.as_ref().and_then(|status| status.completion_time.clone());
    completed.or_else(|| is_true(job, "Failed")?.last_transition_time.clone())
}

/// To the length that fits. Of several lines the last ones are kept, for that is where a log tells
/// the cause; a single one is cut at the border of a character.
fn cut(text: String) -> String {
    const MORE: &str = "...";
    if text.len() <= MAX_MESSAGE {
        return text;
    }
    let mut starts = text.match_indices('\n').map(|(at, _)| at);
    let fits = |at: &usize| text.len() - at + MORE.len() <= MAX_MESSAGE;
    if let Some(at) = starts.clone().find(fits) {
        return format!("{MORE}{}", &text[at..]);
    }
    let line = &text[starts.next_back().map_or(0, |at| at + 1)..];
    let end = line.floor_char_boundary(MAX_MESSAGE - MORE.len());
    format!("{}{MORE}", &line[..end])
}

#[cfg(test)]
mod tests;
