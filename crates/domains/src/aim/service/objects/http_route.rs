//! The route from a gateway to the servers.

use windlass_api::aim::service::AimService;
use windlass_api::foreign::http_route::{
    BackendRef, Filter, HttpRoute, HttpRouteSpec, Match, ParentReference, PathMatch, PathModifier,
    Rule, UrlRewrite,
};

use crate::aim::route_path::RoutePath;
use crate::aim::service::compose::Served;

/// Where the Service of the predictor answers.
const PORT: i32 = 80;

pub(crate) fn http_route(
    service: &AimService,
    served: Served<'_>,
    gateway: &ParentReference,
    path: &RoutePath,
) -> HttpRoute {
    let routing = service.spec.routing.as_ref();
    let annotations = routing.map(|routing| &routing.annotations);
    let mut metadata = super::metadata(service, super::labels(served));
    metadata.annotations = annotations.filter(|given| !given.is_empty()).cloned();
    HttpRoute {
        spec: HttpRouteSpec {
            parent_refs: vec![gateway.clone()],
            rules: vec![rule(service, path)],
            ..Default::default()
        },
        metadata,
        status: None,
    }
}

fn rule(service: &AimService, path: &RoutePath) -> Rule {
    let name = service.metadata.name.as_deref().unwrap_or_default();
    Rule {
        matches: vec![Match {
            path: Some(PathMatch {
                type_: "PathPrefix".to_owned(),
                value: path.as_str().to_owned(),
            }),
            ..Default::default()
        }],
        filters: vec![Filter {
            type_: "URLRewrite".to_owned(),
            url_rewrite: Some(UrlRewrite {
                path: Some(PathModifier {
                    type_: "ReplacePrefixMatch".to_owned(),
                    replace_prefix_match: Some("/".to_owned()),
                }),
            }),
        }],
        backend_refs: vec![BackendRef {
            kind: Some("Service".to_owned()),
            name: format!("{name}-predictor"),
            namespace: service.metadata.namespace.clone(),
            port: Some(PORT),
            ..Default::default()
        }],
        ..Default::default()
    }
}
