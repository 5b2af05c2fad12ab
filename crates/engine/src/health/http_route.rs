//! Health of an HTTPRoute, as its gateways report it.

#[cfg(test)]
mod tests;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};

use super::Inspection;
use crate::conditions::{Status, find};
use crate::error::Error;

/// The part of a route that its health depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpRouteView {
    pub metadata: ObjectMeta,
    pub parents: Vec<ParentStatus>,
}

/// What one gateway says.
#[derive(Clone, Debug, PartialEq)]
pub struct ParentStatus {
    pub parent: ParentRef,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentRef {
    /// Absent means `Gateway`.
    pub kind: Option<String>,
    pub name: String,
    /// Absent means the route's own namespace, which a gateway may or may not spell out.
    pub namespace: Option<String>,
    pub section: Option<String>,
    pub port: Option<i32>,
}

/// Ready when every wanted parent has accepted the route as it is now and found its backends: each
/// of them takes requests of its own, so one cannot speak for another.
///
/// No wanted parents means those that have spoken, of which there must be one.
pub fn http_route(route: Option<&HttpRouteView>, wanted_parents: &[ParentRef]) -> Inspection {
    let Some(route) = route else {
        let error = Error::missing_downstream("HTTPRouteNotFound", "HTTPRoute not found");
        return Inspection::failed(error);
    };
    if let Some(leaving) = Inspection::terminating("HTTPRoute", &route.metadata) {
        return leaving;
    }
    let wanted: Vec<&ParentRef> = if wanted_parents.is_empty() {
        route.parents.iter().map(|status| &status.parent).collect()
    } else {
        wanted_parents.iter().collect()
    };
    let verdicts: Vec<Verdict<'_>> =
        wanted.iter().map(|parent| verdict_of(route, parent)).collect();
    let all_accept = verdicts.iter().all(|verdict| matches!(verdict, Verdict::Accepted));
    if all_accept && !verdicts.is_empty() {
        return Inspection::ready("HTTPRouteAccepted", "HTTPRoute is accepted by gateway");
    }
    let rejection = verdicts.iter().find(|verdict| matches!(verdict, Verdict::Rejected(_)));
    let problem = rejection.or_else(|| verdicts.iter().find(|verdict| verdict.is_problem()));
    match problem.and_then(Verdict::problem) {
        Some(error) => Inspection::failed(error),
        None => Inspection::progressing("HTTPRoutePending", pending_message(&wanted, &verdicts)),
    }
}

/// Which of several parents is missed is worth saying.
fn pending_message(wanted: &[&ParentRef], verdicts: &[Verdict<'_>]) -> String {
    let message = "HTTPRoute is waiting for gateway acceptance";
    let mut missed = wanted.iter().zip(verdicts);
    match missed.find(|(_, verdict)| matches!(verdict, Verdict::Undecided)) {
        Some((parent, _)) if wanted.len() > 1 => format!("{message}: {}", parent.name),
        _ => message.to_owned(),
    }
}

/// Several may have written about one parent, such as a controller that has since handed it over;
/// the one that accepts is the one that has it.
fn verdict_of<'a>(route: &'a HttpRouteView, wanted: &ParentRef) -> Verdict<'a> {
    let namespace = route.metadata.namespace.as_deref();
    let generation = route.metadata.generation.unwrap_or_default();
    let statuses = route.parents.iter().filter(|status| wanted.is(&status.parent, namespace));
    let mut worst = Verdict::Undecided;
    for verdict in statuses.map(|status| judge(status, generation)) {
        match verdict {
            Verdict::Accepted => return verdict,
            Verdict::Undecided => {}
            _ if worst.is_problem() => {}
            problem => worst = problem,
        }
    }
    worst
}

impl ParentRef {
    /// Whether a status about `other` speaks of this parent. `home` is the route's namespace.
    fn is(&self, other: &Self, home: Option<&str>) -> bool {
        fn kind(parent: &ParentRef) -> &str {
            parent.kind.as_deref().unwrap_or("Gateway")
        }
        let namespace = |parent: &Self| parent.namespace.as_deref().or(home).map(str::to_owned);
        // Who wants the whole gateway may be answered by a part of it, but not the other way round.
        kind(self) == kind(other)
            && self.name == other.name
            && namespace(self) == namespace(other)
            && (self.section.is_none() || self.section == other.section)
            && (self.port.is_none() || self.port == other.port)
    }
}

enum Verdict<'a> {
    Accepted,
    Rejected(&'a Condition),
    Unresolved(&'a Condition),
    Undecided,
}

impl Verdict<'_> {
    fn is_problem(&self) -> bool {
        matches!(self, Self::Rejected(_) | Self::Unresolved(_))
    }

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
///
/// The Gateway API has its controllers say which version they speak of. Where one does not, that is
/// taken for the current one only as long as there has been no other.
fn judge(status: &ParentStatus, generation: i64) -> Verdict<'_> {
    let is_current = |condition: &&Condition| {
        condition.observed_generation.map_or(generation <= 1, |seen| seen >= generation)
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
