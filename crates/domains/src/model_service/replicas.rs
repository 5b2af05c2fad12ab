//! Who decides how many pods there are.
//!
//! The last one to have spoken: a number in the spec counts when it is new, and after that a person
//! or an autoscaler may set another. What the spec last asked for is kept on the Deployment, so that
//! a restart of the operator changes nothing.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

use super::names::{CONTROLLER, PREDECESSOR, REPLICAS_ANNOTATION};

#[cfg(test)]
mod tests;

/// The `replicas` field to apply; `None` leaves it to whoever holds it.
pub(super) fn field(wanted: i32, live: Option<&Deployment>) -> Option<i32> {
    let Some(live) = live else { return Some(wanted) };
    let is_new = applied(live).is_some_and(|applied| applied != wanted);
    // The API server records no holder of a zero, so a zero that is not the spec's was set by
    // somebody.
    let zeroed = size(live) == 0 && applied(live).is_some();
    let others = is_held_by_others(live) || (zeroed && wanted != 0);
    if others && !is_new { None } else { Some(wanted) }
}

/// The number of pods that a Deployment asks for.
pub(super) fn size(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

fn applied(live: &Deployment) -> Option<i32> {
    live.metadata.annotations.as_ref()?.get(REPLICAS_ANNOTATION)?.parse().ok()
}

fn is_held_by_others(live: &Deployment) -> bool {
    live.metadata.managed_fields.iter().flatten().any(|entry| !is_ours(entry) && holds_size(entry))
}

fn is_ours(entry: &ManagedFieldsEntry) -> bool {
    // Scaling is recorded apart, whoever did it.
    entry.subresource.as_deref().is_none_or(str::is_empty)
        && matches!(entry.manager.as_deref(), Some(CONTROLLER | PREDECESSOR))
}

fn holds_size(entry: &ManagedFieldsEntry) -> bool {
    entry.fields_v1.as_ref().is_some_and(|fields| fields.0.pointer("/f:spec/f:replicas").is_some())
}
