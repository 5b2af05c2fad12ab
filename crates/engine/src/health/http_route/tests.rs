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
    ParentRef { name: name.into(), namespace: None, section: None }
}

fn route(parents: Vec<ParentStatus>) -> HttpRouteView {
    HttpRouteView { generation: 3, parents }
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
fn w15_only_the_wanted_parents_count_and_one_is_enough() {
    let accepted = [("Accepted", "True", 3), ("ResolvedRefs", "True", 3)];
    let rejected = [("Accepted", "False", 3)];
    let route = route(vec![parent("a", &rejected), parent("b", &accepted)]);
    for (wanted, want) in [
        (vec![], "HTTPRouteAccepted"),
        (vec![gateway("a"), gateway("b")], "HTTPRouteAccepted"),
        (vec![gateway("b")], "HTTPRouteAccepted"),
        (vec![gateway("a")], "AcceptedReason"),
        (vec![gateway("c")], "HTTPRoutePending"),
    ] {
        assert_eq!(brief(http_route(Some(&route), &wanted)).1, want, "{wanted:?}");
    }
    assert_eq!(message(http_route(Some(&route), &[gateway("a")])), "HTTPRoute rejected: words");
}

#[test]
fn a_parent_is_known_by_what_both_sides_spell_out() {
    let full = |namespace: &str, section: &str| ParentRef {
        name: "a".into(),
        namespace: Some(namespace.into()),
        section: Some(section.into()),
    };
    assert!(gateway("a").is(&full("infra", "http")));
    assert!(full("infra", "http").is(&full("infra", "http")));
    assert!(!full("infra", "http").is(&full("infra", "https")));
    assert!(!full("infra", "http").is(&full("other", "http")));
}
