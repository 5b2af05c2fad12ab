//! The route from a gateway to the pool.

use windlass_api::foreign::http_route::{
    BackendRef, HeaderMatch, HttpRoute, HttpRouteSpec, Match, ParentReference, PathMatch, Rule,
};
use windlass_api::model::model_service::ModelServiceSpec;

use crate::model_service::names::Names;
use crate::model_service::settings::Settings;

/// Clients name the service in this header; all services of a gateway share its address.
const MODEL_HEADER: &str = "OtterScale-Model-Name";

/// The gateway of the spec, or else the operator's, if there is one.
pub(crate) fn parent(
    names: &Names,
    spec: &ModelServiceSpec,
    settings: &Settings,
) -> Option<ParentReference> {
    if let Some(route) = &spec.http_route {
        let foreign = |namespace: &&String| {
            !namespace.is_empty() && Some(namespace.as_str()) != names.namespace()
        };
        return Some(ParentReference {
            name: route.gateway_ref.name.clone(),
            namespace: route.gateway_ref.namespace.as_ref().filter(foreign).cloned(),
            ..Default::default()
        });
    }
    let name = Some(&settings.default_gateway_name).filter(|name| !name.is_empty())?;
    Some(ParentReference {
        group: Some("gateway.networking.k8s.io".to_owned()),
        kind: Some("Gateway".to_owned()),
        name: name.clone(),
        namespace: Some(settings.default_gateway_namespace.clone()),
        ..Default::default()
    })
}

pub(crate) fn http_route(
    names: &Names,
    spec: &ModelServiceSpec,
    parent: ParentReference,
) -> HttpRoute {
    let hostnames = spec.http_route.as_ref().map(|route| route.hostnames.clone());
    HttpRoute {
        metadata: names.traffic_metadata(),
        spec: HttpRouteSpec {
            parent_refs: vec![parent],
            hostnames: hostnames.unwrap_or_default(),
            rules: vec![Rule {
                matches: vec![Match {
                    path: Some(PathMatch { type_: "PathPrefix".to_owned(), value: "/".to_owned() }),
                    headers: vec![HeaderMatch {
                        type_: "Exact".to_owned(),
                        name: MODEL_HEADER.to_owned(),
                        value: names.name().to_owned(),
                    }],
                }],
                backend_refs: vec![BackendRef {
                    group: Some("inference.networking.k8s.io".to_owned()),
                    kind: Some("InferencePool".to_owned()),
                    name: names.name().to_owned(),
                    ..Default::default()
                }],
                ..Default::default()
            }],
        },
        status: None,
    }
}
