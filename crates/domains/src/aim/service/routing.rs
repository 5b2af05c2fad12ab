//! Whether and how a service is reached through a gateway: what it says itself, else its runtime
//! config.

use serde_json::json;
use windlass_api::aim::runtime_config;
use windlass_api::aim::service::AimService;
use windlass_api::foreign::http_route::ParentReference;

use crate::aim::route_path::{self, RoutePath};

/// Routing in effect.
#[derive(Clone, Debug)]
pub(super) struct Routing {
    pub(super) gateway: Option<ParentReference>,
    pub(super) path: Result<RoutePath, route_path::Error>,
    /// What is reported where the path makes no sense.
    pub(super) default_path: RoutePath,
}

impl Routing {
    /// Whether it says where a route would lead from, and by which path.
    pub(super) fn is_complete(&self) -> bool {
        self.gateway.is_some() && self.path.is_ok()
    }

    pub(super) fn shown_path(&self) -> &RoutePath {
        self.path.as_ref().unwrap_or(&self.default_path)
    }
}

/// `None` if the service is not to be reached through a gateway. A path of its own is worked out only
/// for a service whose template was found; until then it is the one that every service has.
pub(super) fn routing(
    service: &AimService,
    config: Option<&runtime_config::Routing>,
    has_template: bool,
) -> Option<Routing> {
    let own = service.spec.routing.as_ref();
    let enabled = match own {
        Some(own) => own.enabled,
        None => config.and_then(|config| config.enabled).unwrap_or_default(),
    };
    if !enabled {
        return None;
    }
    let gateway = own.and_then(|own| own.gateway_ref.as_ref());
    let template = given(own.and_then(|own| own.route_template.as_deref()));
    let of_config = || given(config?.route_template.as_deref());
    let (namespace, uid) = (&service.metadata.namespace, &service.metadata.uid);
    let default_path = route_path::default_path(
        namespace.as_deref().unwrap_or_default(),
        uid.as_deref().unwrap_or_default(),
    );
    Some(Routing {
        gateway: gateway
            .or_else(|| config?.gateway_ref.as_ref())
            .map(|gateway| completed(gateway, namespace.as_deref())),
        path: match template.or_else(of_config).filter(|_| has_template) {
            Some(template) => route_path::render(template, &json!(service)),
            None => Ok(default_path.clone()),
        },
        default_path,
    })
}

fn given(template: Option<&str>) -> Option<&str> {
    template.filter(|template| !template.is_empty())
}

/// With what the reference leaves open spelled out.
fn completed(gateway: &ParentReference, home: Option<&str>) -> ParentReference {
    let or = |field: &Option<String>, default: Option<&str>| {
        let given = field.as_deref().filter(|text| !text.is_empty());
        given.or(default).map(str::to_owned)
    };
    ParentReference {
        group: or(&gateway.group, Some("gateway.networking.k8s.io")),
        kind: or(&gateway.kind, Some("Gateway")),
        namespace: or(&gateway.namespace, home),
        ..gateway.clone()
    }
}
