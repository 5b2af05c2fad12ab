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
    let accepting: Vec<&ParentStatus> = parents
        .iter()
        .copied()
        .filter(|parent| matches!(verdict(parent, generation), Verdict::Accepted))
        .collect();
    let complaint = parents.iter().find_map(|parent| match verdict(parent, generation) {
        Verdict::Complains(condition) if !is_handed_over(parent, &accepting, home) => {
            Some(condition)
        }
        _ => None,
    });
    match (complaint, accepting.is_empty()) {
        (Some(complaint), _) => refused(complaint),
        (None, false) => Route::Ready,
        (None, true) => waiting("Waiting for the gateway to accept the HTTPRoute"),
    }
}

/// A controller that has handed the very same parent over may have left its words behind; the one that
/// accepts is the one that has it.
fn is_handed_over(parent: &ParentStatus, accepting: &[&ParentStatus], home: Option<&str>) -> bool {
    accepting.iter().any(|other| {
        other.controller_name != parent.controller_name
            && whole(&other.parent_ref, home) == whole(&parent.parent_ref, home)
    })
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
/// are: a gateway that never names one would otherwise not be heard.
fn verdict(parent: &ParentStatus, generation: i64) -> Verdict<'_> {
    let is_current = |condition: &&Condition| {
        condition.observed_generation.is_none_or(|seen| seen >= generation)
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
    let (gateway, mut parent) = (whole(gateway, home), whole(parent, home));
    if gateway.section_name.is_none() {
        parent.section_name = None;
    }
    if gateway.port.is_none() {
        parent.port = None;
    }
    gateway == parent
}

/// The reference with what it leaves out.
fn whole(reference: &ParentReference, home: Option<&str>) -> ParentReference {
    let or = |given: &Option<String>, default: &str| {
        Some(given.clone().unwrap_or_else(|| default.to_owned()))
    };
    ParentReference {
        group: or(&reference.group, "gateway.networking.k8s.io"),
        kind: or(&reference.kind, "Gateway"),
        namespace: reference.namespace.clone().or_else(|| home.map(str::to_owned)),
        ..reference.clone()
    }
}
