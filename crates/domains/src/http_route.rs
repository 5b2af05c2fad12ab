//! A route as the engine judges it, for every kind that has one.

use windlass_api::foreign::http_route::{HttpRoute, ParentReference};
use windlass_engine::health::{self, HttpRouteView, Inspection, ParentRef, ParentStatus};

/// What the gateways say of a route that should have these parents.
pub(crate) fn inspect(route: Option<&HttpRoute>, wanted_parents: &[ParentRef]) -> Inspection {
    health::http_route(route.map(view).as_ref(), wanted_parents)
}

pub(crate) fn parent_ref(parent: &ParentReference) -> ParentRef {
    ParentRef {
        kind: parent.kind.clone(),
        name: parent.name.clone(),
        namespace: parent.namespace.clone(),
        section: parent.section_name.clone(),
        port: parent.port,
    }
}

fn view(route: &HttpRoute) -> HttpRouteView {
    let parents = route.status.iter().flat_map(|status| &status.parents);
    HttpRouteView {
        metadata: route.metadata.clone(),
        parents: parents
            .map(|parent| ParentStatus {
                parent: parent_ref(&parent.parent_ref),
                conditions: parent.conditions.clone(),
            })
            .collect(),
    }
}
