//! The route that exposes the service on gateways and splits its traffic.

use windlass_api::foreign::http_route::{
    BackendRef, HttpRoute, HttpRouteSpec, Match, ParentReference, PathMatch, Rule, Timeouts,
};
use windlass_api::serving::zerfoo_inference_service::{ParentRef, Routing};

use super::service::SERVICE_PORT;
use crate::inference_service::names::{Names, Track};

/// `weights` of primary and canary; `None` sends everything to the primary.
pub(crate) fn route(names: &Names, routing: &Routing, weights: Option<(i32, i32)>) -> HttpRoute {
    let backend_refs = match weights {
        Some((primary, canary)) => {
            vec![backend(names, Track::Primary, primary), backend(names, Track::Canary, canary)]
        }
        None => vec![backend(names, Track::Primary, 100)],
    };
    HttpRoute {
        metadata: names.metadata(names.route(), None),
        spec: HttpRouteSpec {
            parent_refs: routing.parent_refs.iter().map(parent).collect(),
            hostnames: routing.hostnames.clone(),
            rules: vec![Rule {
                matches: vec![Match {
                    path: Some(PathMatch {
                        type_: "PathPrefix".to_owned(),
                        value: routing.path_prefix.clone(),
                    }),
                    ..Default::default()
                }],
                // A streamed answer lasts as long as it lasts.
                timeouts: Some(Timeouts { request: Some("0s".to_owned()) }),
                backend_refs,
                ..Default::default()
            }],
        },
        status: None,
    }
}

fn backend(names: &Names, track: Track, weight: i32) -> BackendRef {
    BackendRef {
        name: names.track(track),
        port: Some(SERVICE_PORT),
        weight: Some(weight),
        ..Default::default()
    }
}

fn parent(parent: &ParentRef) -> ParentReference {
    let ParentRef { group, kind, namespace, name, section_name, port } = parent.clone();
    ParentReference { group, kind, namespace, name, section_name, port }
}
