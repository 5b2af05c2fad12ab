//! How a canary ends once it has left the spec: promoted or rolled back, then drained.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::serving::zerfoo_inference_service::{CanaryPhase, TrafficMode};

use super::split::Size;
use super::{CanaryPlan, Seen, Template, Traffic, route_weight, split};
use crate::inference_service::names::{
    DRAIN_STARTED_ANNOTATION, MODEL_REF_ANNOTATION, Names, Reach, Track,
};
use crate::inference_service::replicas;
use crate::inference_service::validate::Wanted;

pub(super) fn ending(
    wanted: &Wanted,
    names: &Names,
    live: &Deployment,
    seen: Seen<'_>,
    drain: Duration,
    now: Timestamp,
) -> Traffic {
    let started = drain_started(live).filter(|started| *started <= now);
    let is_promoted = model_ref(live) == Some(wanted.model.as_str());
    let primary_done = seen.primary.is_some_and(|primary| is_complete(primary, &wanted.model));
    // Once the drain has begun the traffic is gone for good; a primary that stumbles now must not
    // send it back and forth.
    if is_promoted && started.is_none() && !primary_done {
        return promoting(wanted, live, seen);
    }
    draining(wanted, names, live, seen, Drain { started, length: drain, now })
}

/// The canary carries everything while the primary rolls to the canary's model.
fn promoting(wanted: &Wanted, live: &Deployment, seen: Seen<'_>) -> Traffic {
    let available = is_available(live);
    let size = replicas::size(live);
    let (replicas, share) = if available {
        (size.max(Size::of(wanted, seen).whole()), 100)
    } else {
        // It can carry nothing, so more of it would only take room from the primary.
        (size, 0)
    };
    let reach = match seen.mode {
        TrafficMode::Replicas if available => Track::Canary,
        _ => Track::Primary,
    };
    Traffic {
        canary: Some(CanaryPlan {
            phase: CanaryPhase::Promoting,
            template: Template::Live(Box::new(live.clone())),
            replicas,
            weight: 100,
            share,
            effective: 0,
            available,
            drain_started: None,
        }),
        reach: Reach::Only(reach),
        ..split::primary_only(wanted, seen)
    }
}

#[derive(Clone, Copy)]
struct Drain {
    started: Option<Timestamp>,
    length: Duration,
    now: Timestamp,
}

impl Drain {
    /// Time left, if the drain has begun.
    fn left(self) -> Option<Duration> {
        let spent = Duration::try_from(self.now.duration_since(self.started?)).unwrap_or_default();
        Some(self.length.saturating_sub(spent))
    }
}

/// All traffic goes to the primary; what the canary still works on may finish.
fn draining(
    wanted: &Wanted,
    names: &Names,
    live: &Deployment,
    seen: Seen<'_>,
    drain: Drain,
) -> Traffic {
    let rest = split::primary_only(wanted, seen);
    if drain.left() == Some(Duration::ZERO) {
        return rest;
    }
    let started = drain.started.or_else(|| has_left(names, seen).then_some(drain.now));
    Traffic {
        canary: Some(CanaryPlan {
            phase: CanaryPhase::Draining,
            template: Template::Live(Box::new(live.clone())),
            replicas: replicas::size(live),
            weight: 0,
            share: 0,
            effective: 0,
            available: is_available(live),
            drain_started: started,
        }),
        again: Drain { started, ..drain }.left(),
        ..rest
    }
}

/// Whether the live objects no longer send anything to the canary, and every gateway knows it.
fn has_left(names: &Names, seen: Seen<'_>) -> bool {
    let reach = names.selector(Reach::Only(Track::Primary));
    let service = seen.service.and_then(|service| service.spec.as_ref()?.selector.as_ref());
    let route_left = || {
        let canary = names.track(Track::Canary);
        let weight = seen.route.map_or(0, |route| route_weight(route, &canary));
        seen.route_accepted && weight == 0
    };
    service == Some(&reach) && (seen.mode == TrafficMode::Replicas || route_left())
}

/// Whether at least one pod answers.
pub(super) fn is_available(deployment: &Deployment) -> bool {
    let status = deployment.status.as_ref();
    status.and_then(|status| status.available_replicas).is_some_and(|available| available >= 1)
}

/// Whether every wanted pod runs the current template with `model` and answers.
fn is_complete(deployment: &Deployment, model: &str) -> bool {
    let Some(status) = &deployment.status else { return false };
    let wanted = replicas::size(deployment);
    model_ref(deployment) == Some(model)
        && status.observed_generation.unwrap_or_default()
            >= deployment.metadata.generation.unwrap_or_default()
        && status.updated_replicas.unwrap_or_default() == wanted
        && status.available_replicas.unwrap_or_default() == wanted
}

/// The model that a live Deployment serves.
pub(crate) fn model_ref(deployment: &Deployment) -> Option<&str> {
    annotation(&deployment.metadata, MODEL_REF_ANNOTATION)
}

/// Since when a canary is drained. A text that is no time counts as none.
fn drain_started(deployment: &Deployment) -> Option<Timestamp> {
    annotation(&deployment.metadata, DRAIN_STARTED_ANNOTATION)?.parse().ok()
}

fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}
