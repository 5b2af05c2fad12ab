//! What the answers mean: the spec judged, and the traffic worked out.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use windlass_api::foreign::http_route::HttpRoute;
use windlass_api::serving::zerfoo_inference_service::{
    Routing, TrafficMode, ZerfooInferenceService,
};
use windlass_engine::fetch::Fetched;
use windlass_engine::health::{Inspection, ParentRef};

use super::Settings;
use super::fetch::Answers;
use super::names::Names;
use super::traffic::{self, Seen, Traffic};
use super::validate::{InvalidSpec, Wanted, validate};
use crate::http_route;

/// Everything that plan, health and status speak of.
#[derive(Clone, Debug)]
pub struct Observed {
    pub(super) names: Names,
    pub(super) answers: Answers,
    pub(super) meaning: Result<Meaning, InvalidSpec>,
    pub(super) as_it_is: AsItIs,
    pub(super) now: Timestamp,
}

/// The traffic that flows whatever the spec says.
#[derive(Clone, Copy, Debug)]
pub(super) struct AsItIs {
    pub(super) mode: TrafficMode,
    pub(super) canary_share: i32,
}

/// What a valid spec means in this cluster.
#[derive(Clone, Debug)]
pub(super) struct Meaning {
    pub(super) wanted: Wanted,
    pub(super) traffic: Traffic,
    /// The route to have, if any.
    pub(super) routing: Option<Routing>,
    /// A route is wanted, but the API does not know routes.
    pub(super) gateway_missing: bool,
}

pub(super) fn compose(
    settings: &Settings,
    service: &ZerfooInferenceService,
    answers: Answers,
    now: Timestamp,
) -> Observed {
    let names = Names::of(service);
    let meaning = validate(service, settings)
        .map(|wanted| mean(settings, service, &names, wanted, &answers, now));
    let as_it_is = as_it_is(&names, &answers);
    Observed { names, answers, meaning, as_it_is, now }
}

fn mean(
    settings: &Settings,
    service: &ZerfooInferenceService,
    names: &Names,
    wanted: Wanted,
    answers: &Answers,
    now: Timestamp,
) -> Meaning {
    let asked = service.spec.routing.as_ref().filter(|routing| !routing.parent_refs.is_empty());
    let routing = asked.filter(|_| answers.route.is_some()).cloned();
    let route = answers.route.as_ref().and_then(Fetched::found);
    let seen = Seen {
        mode: if routing.is_some() { TrafficMode::Gateway } else { TrafficMode::Replicas },
        primary: live(&answers.primary),
        canary: live(&answers.canary),
        service: answers.service.found(),
        route,
        route_accepted: routing.as_ref().is_some_and(|routing| {
            route.is_some() && inspect_route(route, routing).state().is_ready()
        }),
    };
    let traffic = traffic::decide(&wanted, names, seen, settings.drain, now);
    Meaning { traffic, gateway_missing: asked.is_some() && routing.is_none(), routing, wanted }
}

fn as_it_is(names: &Names, answers: &Answers) -> AsItIs {
    let route = answers.route.as_ref().and_then(Fetched::found);
    let mode = if route.is_some() { TrafficMode::Gateway } else { TrafficMode::Replicas };
    let seen = Seen {
        mode,
        primary: live(&answers.primary),
        canary: live(&answers.canary),
        service: answers.service.found(),
        route,
        route_accepted: false,
    };
    AsItIs { mode, canary_share: traffic::share_as_it_is(names, seen) }
}

/// A Deployment on its way out is as good as gone.
fn live(answer: &Fetched<Deployment>) -> Option<&Deployment> {
    answer.found().filter(|deployment| deployment.metadata.deletion_timestamp.is_none())
}

pub(super) fn inspect_route(route: Option<&HttpRoute>, routing: &Routing) -> Inspection {
    let parents: Vec<ParentRef> = routing
        .parent_refs
        .iter()
        .map(|parent| ParentRef {
            kind: parent.kind.clone(),
            name: parent.name.clone(),
            namespace: parent.namespace.clone(),
            section: parent.section_name.clone(),
            port: parent.port,
        })
        .collect();
    http_route::inspect(route, &parents)
}
