//! Who decides how many primary pods there are.

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::Value;

use super::names::CONTROLLER;
use super::validate::Bounds;

#[cfg(test)]
mod tests;

/// The `replicas` field of an applied Deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replicas {
    Set(i32),
    /// Left out: somebody else holds the field.
    LeftAlone,
}

impl Replicas {
    pub(super) fn field(self) -> Option<i32> {
        match self {
            Self::Set(replicas) => Some(replicas),
            Self::LeftAlone => None,
        }
    }
}

/// `fixed` is the number to apply when nothing scales the Deployment.
pub(super) fn primary(fixed: i32, bounds: Option<Bounds>, live: Option<&Deployment>) -> Replicas {
    let Some(bounds) = bounds else { return Replicas::Set(fixed) };
    match live {
        None => Replicas::Set(bounds.clamp(fixed)),
        Some(live) if is_held_by_others(live) => Replicas::LeftAlone,
        // Never ours: zero is how a person switches autoscaling off, and the API server records no
        // holder of a zero.
        Some(live) if size(live) == 0 => Replicas::LeftAlone,
        // Only we hold the field: leaving it out would reset it to 1.
        Some(live) => Replicas::Set(bounds.clamp(size(live))),
    }
}

/// The number of pods that a Deployment asks for.
pub(super) fn size(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

fn is_held_by_others(deployment: &Deployment) -> bool {
    let entries = deployment.metadata.managed_fields.iter().flatten();
    entries
        .filter(|entry| entry.manager.as_deref() != Some(CONTROLLER))
        .filter_map(|entry| entry.fields_v1.as_ref())
        .any(|fields| holds_replicas(&fields.0))
}

fn holds_replicas(fields: &Value) -> bool {
    fields.pointer("/f:spec/f:replicas").is_some()
}
