//! Health of an HTTPRoute, as its gateways report it.

#[cfg(test)]
mod tests;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::Inspection;
use crate::conditions::{Status, find};
use crate::error::Error;

/// The part of a route that its health depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRouteView {
    pub generation: i64,
    pub parents: Vec<ParentStatus>,
}

/// What one gateway says.
#[derive(Clone, Debug, PartialEq)]
pub struct ParentStatus {
    pub parent: ParentRef,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentRef {
    pub name: String,
    /// Absent means the route's own namespace, which a gateway may or may not spell out.
    pub namespace: Option<String>,
    pub section: Option<String>,
}

/// Ready as soon as one of the wanted parents has accepted the route and found its backends.
///
/// No wanted parents means that any will do.
pub fn http_route(route: Option<&HttpRouteView>, wanted_parents: &[ParentRef]) -> Inspection {
    let Some(route) = route else {
        let error = Error::missing_downstream("HTTPRouteNotFound", "HTTPRoute not found");
        return Inspection::failed(error);
    };
    let verdicts: Vec<Verdict<'_>> = route
        .parents
        .iter()
        .filter(|status| {
            wanted_parents.is_empty() || wanted_parents.iter().any(|want| want.is(&status.parent))
        })
        .map(|status| judge(status, route.generation))
        .collect();
    if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Accepted)) {
        return Inspection::ready("HTTPRouteAccepted", "HTTPRoute is accepted by gateway");
    }
    verdicts.iter().find_map(Verdict::problem).map_or_else(
        || {
            Inspection::progressing(
                "HTTPRoutePending",
                "HTTPRoute is waiting for gateway acceptance",
            )
        },
        Inspection::failed,
    )
}

impl ParentRef {
    fn is(&self, other: &Self) -> bool {
        let agree = |left: &Option<String>, right: &Option<String>| match (left, right) {
            (Some(left), Some(right)) => left == right,
            _ => true,
        };
        self.name == other.name
            && agree(&self.namespace, &other.namespace)
            && agree(&self.section, &other.section)
    }
}

enum Verdict<'a> {
    Accepted,
    Rejected(&'a Condition),
    Unresolved(&'a Condition),
    Undecided,
}

impl Verdict<'_> {
    fn problem(&self) -> Option<Error> {
        match self {
            Self::Rejected(condition) => Some(Error::invalid_spec(
                &condition.reason,
                format!("HTTPRoute rejected: {}", condition.message),
            )),
            Self::Unresolved(condition) => Some(Error::missing_downstream(
                &condition.reason,
                format!("HTTPRoute backend not resolved: {}", condition.message),
            )),
            Self::Accepted | Self::Undecided => None,
        }
    }
}

/// Words about an older version of the route are no words about this one.
fn judge(status: &ParentStatus, generation: i64) -> Verdict<'_> {
    let is_current = |condition: &&Condition| {
        condition.observed_generation.is_none_or(|seen| seen >= generation)
    };
    let Some(accepted) = find(&status.conditions, "Accepted").filter(is_current) else {
        return Verdict::Undecided;
    };
    match Status::parse(&accepted.status) {
        Status::False => return Verdict::Rejected(accepted),
        Status::Unknown => return Verdict::Undecided,
        Status::True => {}
    }
    // A gateway that never speaks of references has none to complain about.
    let Some(resolved) = find(&status.conditions, "ResolvedRefs") else {
        return Verdict::Accepted;
    };
    match Status::parse(&resolved.status) {
        _ if !is_current(&resolved) => Verdict::Undecided,
        Status::True => Verdict::Accepted,
        Status::False => Verdict::Unresolved(resolved),
        Status::Unknown => Verdict::Undecided,
    }
}
