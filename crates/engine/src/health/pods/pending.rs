//! What pods that have not started are waiting for.

use k8s_openapi::api::core::v1::{Event, Pod};

use crate::error::Error;
use crate::health::{Inspection, events, reasons};
use crate::state::State;

const UNSCHEDULED: &str = "FailedScheduling";
const HELD_UP: [&str; 4] =
    [UNSCHEDULED, "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"];
const PULLING: &str = "Pulling";
/// Steps that show that what held the pod up before is over.
const MOVING: [&str; 5] = [PULLING, "Scheduled", "Pulled", "Created", "Started"];

pub(super) fn inspect(pods: &[&Pod], all_events: &[Event]) -> Inspection {
    pods.iter()
        .find_map(|pod| from_events(pod, all_events).or_else(|| unscheduled(pod)))
        .unwrap_or_else(|| {
            Inspection::of(State::Pending, reasons::PODS_PENDING, "Pods are pending")
        })
}

fn from_events(pod: &Pod, all_events: &[Event]) -> Option<Inspection> {
    let is_placed = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let ours = all_events.iter().filter(|event| {
        let overtaken = is_placed && event.reason.as_deref() == Some(UNSCHEDULED);
        !overtaken && events::is_about(event, "Pod", &pod.metadata)
    });
    let telling: Vec<&str> = HELD_UP.iter().chain(&MOVING).copied().collect();
    let event = events::newest(ours, &telling)?;
    let reason = event.reason.as_deref()?;
    let message = event.message.as_deref().unwrap_or_default();
    if HELD_UP.contains(&reason) {
        let missing = missing_reference(message, message).map(Inspection::failed);
        return Some(missing.unwrap_or_else(|| Inspection::of(State::Pending, reason, message)));
    }
    (reason == PULLING).then(|| Inspection::progressing(reason, message))
}

/// Events expire, the pod's own word does not.
fn unscheduled(pod: &Pod) -> Option<Inspection> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|c| c.type_ == "PodScheduled" && c.status == "False")?;
    let reason = condition.reason.as_deref()?;
    let message = condition.message.clone().unwrap_or_default();
    Some(Inspection::of(State::Pending, reason, message))
}

const OF_SECRETS: [&str; 3] = ["secret \"", "in secret ", "non-existent secret key"];
const OF_CONFIG_MAPS: [&str; 3] = ["configmap \"", "in configmap ", "non-existent config key"];
const ABSENT: [&str; 3] = ["not found", "couldn't find key", "non-existent"];

/// Whether a text complains of a secret or a config map that is not there, or lacks a key.
///
/// The kubelet names the kind right before the object; a volume may well be called `secret`.
pub(super) fn missing_reference(text: &str, message: &str) -> Option<Error> {
    let text = text.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    if !says(&ABSENT) {
        None
    } else if says(&OF_SECRETS) {
        Some(Error::missing_upstream(reasons::SECRET_NOT_FOUND, message))
    } else if says(&OF_CONFIG_MAPS) {
        Some(Error::missing_upstream(reasons::CONFIG_MAP_NOT_FOUND, message))
    } else {
        None
    }
}
