use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::error::Category::{InvalidSpec, MissingDownstream};
use crate::health::tests::{brief, message};
use crate::state::State;

fn parent(name: &str, conditions: &[(&str, &str, i64)]) -> ParentStatus {
    let conditions = conditions
        .iter()
        .map(|(type_, status, generation)| Condition {
            type_: (*type_).into(),
            status: (*status).into(),
            reason: format!("{type_}Reason"),
            message: "words".into(),
            observed_generation: Some(*generation),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        })
        .collect();
    ParentStatus { parent: gateway(name), conditions }
}

fn gateway(name: &str) -> ParentRef {
    ParentRef { name: name.into(), ..ParentRef::default() }
}

fn route(parents: Vec<ParentStatus>) -> HttpRouteView {
    let metadata =
        ObjectMeta { namespace: Some("home".into()), generation: Some(3), ..ObjectMeta::default() };
    HttpRouteView { metadata, parents }
}

#[test]
fn a_missing_route_is_made_and_a_new_one_waits() {
    let missing = (State::Progressing, "HTTPRouteNotFound".into(), Some(MissingDownstream));
    assert_eq!(brief(http_route(None, &[])), missing);
    let pending = (State::Progressing, "HTTPRoutePending".into(), None);
    assert_eq!(brief(http_route(Some(&route(vec![])), &[])), pending);
}

#[test]
fn w15_a_parent_has_to_accept_this_version_and_resolve_its_references() {
    let ready = (State::Ready, "HTTPRouteAccepted".to_owned(), None);
    let pending = (State::Progressing, "HTTPRoutePending".to_owned(), None);
    let rejected = (State::Degraded, "AcceptedReason".to_owned(), Some(InvalidSpec));
    let unresolved = (State::Progressing, "ResolvedRefsReason".to_owned(), Some(MissingDownstream));
    for (conditions, want) in [
        (&[("Accepted", "True", 3), ("ResolvedRefs", "True", 3)][..], &ready),
        (&[("Accepted", "True", 3)], &ready),
        (&[("Accepted", "True", 3), ("ResolvedRefs", "False", 3)], &unresolved),
        (&[("ResolvedRefs", "False", 3), ("Accepted", "True", 3)], &unresolved),
        (&[("Accepted", "True", 3), ("ResolvedRefs", "True", 2)], &pending),
        (&[("Accepted", "True", 3), ("ResolvedRefs", "Unknown", 3)], &pending),
        (&[("Accepted", "Unknown", 3)], &pending),
        (&[("Accepted", "True", 2), ("ResolvedRefs", "True", 2)], &pending),
        (&[("Accepted", "False", 2)], &pending),
        (&[("Accepted", "False", 3)], &rejected),
    ] {
        let route = route(vec![parent("a", conditions)]);
        assert_eq!(brief(http_route(Some(&route), &[])), *want, "{conditions:?}");
    }
}

#[test]
fn a_route_that_is_being_deleted_is_not_ready() {
    let mut route = route(vec![parent("a", &[("Accepted", "True", 3)])]);
    assert_eq!(brief(http_route(Some(&route), &[])).0, State::Ready);
    route.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let leaving = (State::Progressing, "Terminating".into(), None);
    assert_eq!(brief(http_route(Some(&route), &[])), leaving);
}

#[test]
fn w15_every_wanted_parent_has_to_accept() {
    let accepted = [("Accepted", "True", 3), ("ResolvedRefs", "True", 3)];
    let rejected = [("Accepted", "False", 3)];
    let unresolved = [("Accepted", "True", 3), ("ResolvedRefs", "False", 3)];
    let outdated = [("Accepted", "True", 2), ("ResolvedRefs", "True", 2)];
    let route = route(vec![
        parent("yes", &accepted),
        parent("also", &accepted),
        parent("no", &rejected),
        parent("lost", &unresolved),
        parent("late", &outdated),
    ]);
    for (wanted, want) in [
        (&["yes"][..], "HTTPRouteAccepted"),
        (&["yes", "also"], "HTTPRouteAccepted"),
        (&["no"], "AcceptedReason"),
        (&["yes", "no"], "AcceptedReason"),
        (&["yes", "lost"], "ResolvedRefsReason"),
        (&["lost", "no"], "AcceptedReason"),
        (&["late", "no"], "AcceptedReason"),
        (&["yes", "late"], "HTTPRoutePending"),
        (&["silent"], "HTTPRoutePending"),
        (&["yes", "silent"], "HTTPRoutePending"),
        // Nobody in particular: then everybody who speaks.
        (&[], "AcceptedReason"),
    ] {
        let parents: Vec<_> = wanted.iter().map(|name| gateway(name)).collect();
        assert_eq!(brief(http_route(Some(&route), &parents)).1, want, "{wanted:?}");
    }
    let said = |wanted: &[ParentRef]| message(http_route(Some(&route), wanted));
    assert_eq!(said(&[gateway("yes"), gateway("no")]), "HTTPRoute rejected: words");
    assert_eq!(said(&[gateway("late")]), "HTTPRoute is waiting for gateway acceptance");
    assert_eq!(
        said(&[gateway("yes"), gateway("late")]),
        "HTTPRoute is waiting for gateway acceptance: late"
    );
}

#[test]
fn w15_a_condition_that_names_no_version_counts_only_for_the_first() {
    for (generation, want) in [(1, "HTTPRouteAccepted"), (2, "HTTPRoutePending")] {
        let mut accepted = parent("a", &[("Accepted", "True", 0)]);
        accepted.conditions[0].observed_generation = None;
        let mut route = route(vec![accepted]);
        route.metadata.generation = Some(generation);
        assert_eq!(brief(http_route(Some(&route), &[gateway("a")])).1, want, "{generation}");
    }
}

#[test]
fn what_a_former_controller_left_behind_does_not_count_against_the_present_one() {
    let accepted = [("Accepted", "True", 3)];
    let rejected = [("Accepted", "False", 3)];
    let route = route(vec![parent("a", &rejected), parent("a", &accepted)]);
    assert_eq!(brief(http_route(Some(&route), &[gateway("a")])).1, "HTTPRouteAccepted");
}

#[test]
fn a_parent_is_known_by_kind_place_and_part() {
    let in_namespace =
        |namespace: &str| ParentRef { namespace: Some(namespace.into()), ..gateway("a") };
    let section = |section: &str| ParentRef { section: Some(section.into()), ..gateway("a") };
    let service = ParentRef { kind: Some("Service".into()), ..gateway("a") };
    let port = ParentRef { port: Some(80), ..gateway("a") };
    for (wanted, other, want) in [
        (gateway("a"), gateway("a"), true),
        (gateway("a"), gateway("b"), false),
        (gateway("a"), in_namespace("home"), true),
        (gateway("a"), in_namespace("infra"), false),
        (in_namespace("infra"), gateway("a"), false),
        (section("http"), section("http"), true),
        (section("http"), section("https"), false),
        (section("http"), gateway("a"), false),
        (gateway("a"), section("http"), true),
        (ParentRef { kind: Some("Gateway".into()), ..gateway("a") }, gateway("a"), true),
        (service.clone(), service.clone(), true),
        (service, gateway("a"), false),
        (port.clone(), port.clone(), true),
        (port, gateway("a"), false),
    ] {
        assert_eq!(wanted.is(&other, Some("home")), want, "{wanted:?} {other:?}");
    }
}
