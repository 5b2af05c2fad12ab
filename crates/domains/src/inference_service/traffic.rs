//! Where requests go: the split between primary and canary, and how a canary ends.
//!
//! Everything is worked out from the spec and the live objects, so a restarted operator comes to
//! the same answer. The only thing that has to be remembered, since when a canary is drained, is
//! kept on the canary itself.

mod canary;
mod split;

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::serving::zerfoo_inference_service::{CanaryPhase, TrafficMode};

use super::names::{Names, Reach, Track};
use super::replicas::Replicas;
use super::validate::Wanted;

pub(super) use canary::model_ref;

/// What of the cluster the traffic depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub mode: TrafficMode,
    pub primary: Option<&'a Deployment>,
    /// Absent also while it is being deleted.
    pub canary: Option<&'a Deployment>,
    pub service: Option<&'a Service>,
    pub route: Option<&'a HttpRoute>,
    /// Whether every gateway has accepted the route as it is now.
    pub route_accepted: bool,
}

/// How the traffic is to flow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Traffic {
    pub mode: TrafficMode,
    pub primary: Replicas,
    /// The canary to have, if any.
    pub canary: Option<CanaryPlan>,
    /// What the stable Service reaches.
    pub reach: Reach,
    /// Look again after this time.
    pub again: Option<Duration>,
}

/// A canary that exists or is to exist.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CanaryPlan {
    pub phase: CanaryPhase,
    pub template: Template,
    pub replicas: i32,
    /// Share of the traffic in percent: as the spec wants it, as it is to be now, and as the live
    /// objects have it.
    pub weight: i32,
    pub share: i32,
    pub effective: i32,
    pub available: bool,
    pub drain_started: Option<Timestamp>,
}

/// Where the canary's pods come from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Template {
    /// From the spec, with this model.
    Spec { model: String },
    /// As they are: the spec no longer describes them, and a change would restart them under load.
    Live(Box<Deployment>),
}

impl Traffic {
    /// Weights of primary and canary on a route; `None` for a route to the primary alone.
    pub(super) fn weights(&self) -> Option<(i32, i32)> {
        self.canary.as_ref().map(|canary| (100 - canary.share, canary.share))
    }
}

/// Decides the traffic. `drain` is how long a canary without traffic may finish its work.
pub(super) fn decide(
    wanted: &Wanted,
    names: &Names,
    seen: Seen<'_>,
    drain: Duration,
    now: Timestamp,
) -> Traffic {
    let mut traffic = match (&wanted.canary, seen.canary) {
        (Some(canary), live) => split::active(wanted, canary, live, seen),
        (None, Some(live)) => canary::ending(wanted, names, live, seen, drain, now),
        (None, None) => split::primary_only(wanted, seen),
    };
    let reach = traffic.reach;
    if let Some(canary) = &mut traffic.canary {
        canary.effective = live_share(names, seen, reach, canary.share);
    }
    traffic
}

/// What the live objects send to the canary: a decision is not yet a fact.
fn live_share(names: &Names, seen: Seen<'_>, reach: Reach, share: i32) -> i32 {
    match seen.mode {
        TrafficMode::Replicas if selects(names, seen, reach) => share,
        _ => share_as_it_is(names, seen),
    }
}

/// The same where nothing is decided, because the spec makes no sense.
pub(super) fn share_as_it_is(names: &Names, seen: Seen<'_>) -> i32 {
    let canary = names.track(Track::Canary);
    match seen.mode {
        TrafficMode::Gateway => seen.route.map_or(0, |route| route_weight(route, &canary)),
        TrafficMode::Replicas if selects(names, seen, Reach::Both) => split::share_by_pods(seen),
        TrafficMode::Replicas if selects(names, seen, Reach::Only(Track::Canary)) => 100,
        TrafficMode::Replicas => 0,
    }
}

fn selects(names: &Names, seen: Seen<'_>, reach: Reach) -> bool {
    let selector = seen.service.and_then(|service| service.spec.as_ref()?.selector.as_ref());
    selector == Some(&names.selector(reach))
}

/// The weight that a route gives to a backend; our weights add up to 100.
fn route_weight(route: &HttpRoute, backend: &str) -> i32 {
    let mut backends = route.spec.rules.iter().flat_map(|rule| &rule.backend_refs);
    backends.find(|known| known.name == backend).map_or(0, |known| known.weight.unwrap_or(1))
}
