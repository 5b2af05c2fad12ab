//! Health of a PersistentVolumeClaim.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim};

use super::{Inspection, events};
use crate::error::Error;
use crate::state::State;

const FAILED: &str = "ProvisioningFailed";
const SUCCEEDED: &str = "ProvisioningSucceeded";
const UNBINDABLE: &str = "FailedBinding";
const WAITING: [&str; 2] = ["WaitForFirstConsumer", "WaitForPodScheduled"];

/// The claim itself never tells why it is pending; its events do.
pub fn pvc(claim: Option<&PersistentVolumeClaim>, all_events: &[Event]) -> Inspection {
    let Some(claim) = claim else {
        return Inspection::failed(Error::missing_downstream("PvcNotFound", "PVC not found"));
    };
    match claim.status.as_ref().and_then(|status| status.phase.as_deref()) {
        Some("Bound") => Inspection::default(),
        Some("Lost") => {
            Inspection::failed(Error::infrastructure("PvcLost", "PVC lost its underlying volume"))
        }
        _ => pending(claim, all_events),
    }
}

fn pending(claim: &PersistentVolumeClaim, all_events: &[Event]) -> Inspection {
    let ours: Vec<&Event> = all_events
        .iter()
        .filter(|event| events::is_about(event, "PersistentVolumeClaim", &claim.metadata))
        .collect();
    let newest = |reasons: &[&str]| events::newest(ours.iter().copied(), reasons);
    let message = |event: &Event| event.message.clone().unwrap_or_default();

    // Each attempt is announced before it fails, so only success takes a failure back.
    if let Some(event) = newest(&[FAILED, SUCCEEDED])
        && event.reason.as_deref() == Some(FAILED)
    {
        let text = format!("PVC provisioning failed: {}", message(event));
        return Inspection::failed(Error::infrastructure("PvcProvisioningFailed", text));
    }
    match newest(&[WAITING[0], WAITING[1], UNBINDABLE]) {
        Some(event) if event.reason.as_deref() == Some(UNBINDABLE) => {
            let text = format!("PVC is pending: {}", message(event));
            Inspection::of(State::Pending, "PvcPending", text)
        }
        // The volume is made where the first pod runs; nothing is wrong.
        Some(_) => Inspection::progressing("PvcPending", "PVC is waiting for its first consumer"),
        None => Inspection::progressing("PvcPending", "PVC is pending"),
    }
}
