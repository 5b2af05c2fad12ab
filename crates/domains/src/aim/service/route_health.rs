//! What the gateway says of a service's route.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use windlass_api::foreign::http_route::{HttpRoute, ParentReference, ParentStatus};
use windlass_engine::conditions::{Status, find};

use super::compose::Child;
use super::reasons;

/// A route is ready, or why it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Ready,
    NotReady { reason: String, message: String },
}

pub(super) fn judge(route: &Child<HttpRoute>, gateway: &ParentReference) -> Route {
    let route = match route {
        Child::Unserved => {
            return waiting("The cluster does not know HTTPRoutes; install the Gateway API");
        }
        Child::Absent => return waiting("Waiting for HTTPRoute to be created"),
        Child::Unread(error) => return waiting(&format!("HTTPRoute cannot be read: {error}")),
        Child::Present(route) => route,
    };
    let generation = route.metadata.generation.unwrap_or_default();
    let home = route.metadata.namespace.as_deref();
    let parents = route.status.iter().flat_map(|status| &status.parents);
    let parents: Vec<&ParentStatus> =
        parents.filter(|parent| speaks_of(gateway, &parent.parent_ref, home)).collect();
    if parents.iter().all(|parent| parent.conditions.is_empty()) {
        return waiting("HTTPRoute has no parent status");
    }
    let verdicts: Vec<Verdict<'_>> =
        parents.iter().map(|parent| verdict(parent, generation)).collect();
    // A controller that has handed the gateway over may have left its words behind; the one that
    // accepts is the one that has it.
    if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Accepted)) {
        return Route::Ready;
    }
    let complaint = verdicts.iter().find_map(|verdict| match verdict {
        Verdict::Complains(condition) => Some(*condition),
        Verdict::Accepted | Verdict::Undecided => None,
    });
    complaint.map_or_else(|| waiting("Waiting for the gateway to accept the HTTPRoute"), refused)
}

fn waiting(message: &str) -> Route {
    Route::NotReady { reason: reasons::CONFIGURING_ROUTE.to_owned(), message: message.to_owned() }
}

fn refused(complaint: &Condition) -> Route {
    let or = |text: &str, default: &str| match text {
        "" => default.to_owned(),
        text => text.to_owned(),
    };
    Route::NotReady {
        reason: or(&complaint.reason, reasons::ROUTE_FAILED),
        message: or(&complaint.message, "Gateway reported HTTPRoute condition false"),
    }
}

/// Of all other conditions, those of a gateway's own making too, False is the bad side.
const GOOD_WHEN_FALSE: [&str; 4] =
    ["PartiallyInvalid", "Conflicted", "Detached", "OverlappingTLSConfig"];

enum Verdict<'a> {
    Accepted,
    Complains(&'a Condition),
    Undecided,
}

/// Words about an older version of the route are no words about this one. Where none is named, they
/// are about the first.
fn verdict(parent: &ParentStatus, generation: i64) -> Verdict<'_> {
    let is_current = |condition: &&Condition| {
        condition.observed_generation.map_or(generation <= 1, |seen| seen >= generation)
    };
    let is = |condition: &Condition, status| Status::parse(&condition.status) == status;
    let mut current = parent.conditions.iter().filter(is_current);
    let complains =
        |c: &&Condition| !GOOD_WHEN_FALSE.contains(&c.type_.as_str()) && is(c, Status::False);
    if let Some(complaint) = current.find(complains) {
        return Verdict::Complains(complaint);
    }
    match find(&parent.conditions, "Accepted").filter(is_current) {
        Some(accepted) if is(accepted, Status::True) => Verdict::Accepted,
        _ => Verdict::Undecided,
    }
}

/// Whether a status about `parent` is one about the gateway. Who wants the whole of it may be
/// answered by a part.
fn speaks_of(gateway: &ParentReference, parent: &ParentReference, home: Option<&str>) -> bool {
    let group = |of: &ParentReference| {
        of.group.clone().unwrap_or_else(|| "gateway.networking.k8s.io".to_owned())
    };
    let kind = |of: &ParentReference| of.kind.clone().unwrap_or_else(|| "Gateway".to_owned());
    let namespace = |of: &ParentReference| of.namespace.as_deref().or(home).map(str::to_owned);
    gateway.name == parent.name
        && group(gateway) == group(parent)
        && kind(gateway) == kind(parent)
        && namespace(gateway) == namespace(parent)
        && (gateway.section_name.is_none() || gateway.section_name == parent.section_name)
        && (gateway.port.is_none() || gateway.port == parent.port)
}
