//! Why a run does not move, or has failed without a word of its own.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use windlass_engine::health::{Inspection, PodsView, job, pods};
use windlass_engine::state::State;

use super::observe::{Evidence, ended_containers};

pub(super) use windlass_engine::health::redact;

/// What keeps the pod from starting, or the Job from getting one.
pub(super) fn of_standstill(of: &Job, evidence: Evidence<'_>) -> Option<String> {
    if evidence.pods.is_empty() {
        return no_pod(evidence.events).or_else(|| suspended(of));
    }
    let logs = BTreeMap::new();
    let found = pods(&PodsView { pods: evidence.pods, events: evidence.events, logs: &logs });
    said(found).map(|text| format!("The pod does not start: {text}"))
}

/// A pod that merely waits has nothing to say.
fn said(found: Inspection) -> Option<String> {
    let waits =
        found.state == Some(State::Pending) && found.reason.as_deref() != Some("PodsPending");
    let error = found.errors.into_iter().next().map(|error| error.message);
    error.or(found.message.filter(|text| waits && !text.is_empty()))
}

/// The Job controller tells by events why it cannot make a pod (a quota, a policy).
fn no_pod(events: &[Event]) -> Option<String> {
    let refused = events.iter().filter(|event| event.reason.as_deref() == Some("FailedCreate"));
    let last = refused.max_by_key(|event| event.last_timestamp.as_ref().map(|time| time.0))?;
    let message = last.message.as_deref()?;
    Some(format!("The Job gets no pod: {}", redact(message)))
}

fn suspended(of: &Job) -> Option<String> {
    let found = job(Some(of));
    (found.reason.as_deref() == Some("JobSuspended")).then_some("Job is suspended".to_owned())
}

/// Ends that no program can tell of itself: killed for its memory, evicted, out of time.
pub(super) fn of_failure(pods: &[Pod]) -> Option<String> {
    pods.iter().find_map(|pod| {
        let status = pod.status.as_ref()?;
        let reason = status.reason.as_deref().filter(|reason| !reason.is_empty());
        let killed =
            ended_containers(pod).find(|ended| ended.reason.as_deref() == Some("OOMKilled"));
        match (reason, killed) {
            (Some(reason), _) => {
                let message = status.message.as_deref().unwrap_or("the pod was ended");
                Some(format!("{reason}: {}", redact(message)))
            }
            (None, Some(_)) => Some("OOMKilled: the node ran out of memory for the pod".to_owned()),
            (None, None) => None,
        }
    })
}
