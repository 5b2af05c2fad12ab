//! The split while a canary is in the spec.

use k8s_openapi::api::apps::v1::Deployment;
use windlass_api::serving::zerfoo_inference_service::{CanaryPhase, TrafficMode};

use super::canary::is_available;
use super::{CanaryPlan, Seen, Template, Traffic};
use crate::inference_service::names::{Reach, Track};
use crate::inference_service::replicas;
use crate::inference_service::validate::{Wanted, WantedCanary};

pub(super) fn primary_only(wanted: &Wanted, seen: Seen<'_>) -> Traffic {
    Traffic {
        mode: seen.mode,
        primary: replicas::primary(wanted.replicas, wanted.bounds, seen.primary),
        canary: None,
        reach: Reach::Only(Track::Primary),
        again: None,
    }
}

pub(super) fn active(
    wanted: &Wanted,
    canary: &WantedCanary,
    live: Option<&Deployment>,
    seen: Seen<'_>,
) -> Traffic {
    let available = live.is_some_and(is_available);
    let split = match seen.mode {
        TrafficMode::Gateway => by_weight(wanted, canary),
        TrafficMode::Replicas => by_pods(canary.weight, Size::of(wanted, seen)),
    };
    // A backend without endpoints answers with errors, and pods taken from the primary would be
    // missed: nothing moves before the canary can answer.
    let (share, reach, fixed) = if available {
        (split.share, split.reach, split.primary)
    } else {
        (0, Reach::Only(Track::Primary), wanted.replicas)
    };
    Traffic {
        mode: seen.mode,
        primary: replicas::primary(fixed, wanted.bounds, seen.primary),
        canary: Some(CanaryPlan {
            phase: CanaryPhase::Active,
            template: Template::Spec { model: canary.model.clone() },
            replicas: split.canary,
            weight: canary.weight,
            share,
            effective: 0,
            available,
            drain_started: None,
        }),
        reach,
        again: None,
    }
}

/// Pods on both sides, and the share of the traffic that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) primary: i32,
    pub(super) canary: i32,
    pub(super) share: i32,
    pub(super) reach: Reach,
}

/// A gateway splits by weight, whatever the number of pods.
fn by_weight(wanted: &Wanted, canary: &WantedCanary) -> Split {
    Split {
        primary: wanted.replicas,
        canary: canary.replicas.unwrap_or(wanted.replicas),
        share: canary.weight,
        reach: Reach::Only(Track::Primary),
    }
}

/// How many pods there are to split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// So many in all.
    Fixed(i32),
    /// So many primaries at the moment, and the most that the canary may have.
    Scaled { primary: i32, max: i32 },
}

impl Size {
    pub(super) fn of(wanted: &Wanted, seen: Seen<'_>) -> Self {
        match wanted.bounds {
            None => Self::Fixed(wanted.replicas),
            Some(bounds) => {
                let primary = seen.primary.map_or(wanted.replicas, replicas::size);
                Self::Scaled { primary: bounds.clamp(primary), max: bounds.max }
            }
        }
    }

    /// What it takes to carry all of the traffic.
    pub(super) fn whole(self) -> i32 {
        match self {
            Self::Fixed(total) => total,
            Self::Scaled { primary, .. } => primary,
        }
    }
}

/// Without a gateway the Service spreads requests over pods, so the number of pods is the split.
pub(super) fn by_pods(weight: i32, size: Size) -> Split {
    let whole = size.whole();
    match weight {
        ..=0 => Split {
            primary: whole,
            // Warm, so that the first percent of traffic finds a loaded model.
            canary: 1,
            share: 0,
            reach: Reach::Only(Track::Primary),
        },
        100.. => {
            Split { primary: whole, canary: whole, share: 100, reach: Reach::Only(Track::Canary) }
        }
        _ => {
            let (primary, canary) = match size {
                Size::Fixed(total) => {
                    let canary = rounded(total, weight, 100).clamp(1, total);
                    ((total - canary).max(1), canary)
                }
                Size::Scaled { primary, max } => {
                    (primary, rounded(primary, weight, 100 - weight).clamp(1, max))
                }
            };
            Split { primary, canary, share: share(primary, canary), reach: Reach::Both }
        }
    }
}

/// The canary's share of a Service that reaches both tracks as they are.
pub(super) fn share_by_pods(seen: Seen<'_>) -> i32 {
    let pods = |deployment: Option<&Deployment>| deployment.map_or(0, replicas::size);
    let (primary, canary) = (pods(seen.primary), pods(seen.canary));
    if canary == 0 { 0 } else { share(primary, canary) }
}

/// The canary's part of all pods, in percent.
fn share(primary: i32, canary: i32) -> i32 {
    rounded(100, canary, i64::from(primary) + i64::from(canary))
}

/// `count · numerator / denominator`, to the nearest whole number, halves up. In wide numbers: the
/// schema sets no limit to the number of pods.
fn rounded(count: i32, numerator: i32, denominator: impl Into<i64>) -> i32 {
    let (count, numerator) = (i64::from(count), i64::from(numerator));
    let denominator: i64 = denominator.into();
    i32::try_from((count * numerator + denominator / 2) / denominator).unwrap_or(i32::MAX)
}
