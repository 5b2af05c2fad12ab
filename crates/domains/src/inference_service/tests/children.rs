//! Children in the states that the API can leave them in.

use super::*;

/// A route that sends everything to the primary, and what the given gateways say of it.
fn route_known_to(gateways: &[(&str, i64)]) -> HttpRoute {
    let mut route = live_route(&weights(100, 0));
    route.metadata.generation = Some(2);
    let parents: Vec<_> = gateways
        .iter()
        .map(|(name, generation)| {
            let condition = |type_: &str| {
                json!({
                    "type": type_, "status": "True", "reason": type_, "message": "",
                    "observedGeneration": generation, "lastTransitionTime": "2026-05-01T11:00:00Z",
                })
            };
            json!({
                "parentRef": { "name": name },
                "controllerName": "example.com/gateway",
                "conditions": [condition("Accepted"), condition("ResolvedRefs")],
            })
        })
        .collect();
    route.status = serde_json::from_value(json!({ "parents": parents })).unwrap();
    route
}

#[test]
fn k11_the_drain_begins_when_every_gateway_has_taken_the_route() {
    let service =
        service_with(json!({ "routing": { "parentRefs": [{ "name": "a" }, { "name": "b" }] } }));
    for (gateways, begins) in [
        (&[][..], false),
        (&[("a", 2)], false),
        (&[("a", 2), ("b", 1)], false),
        (&[("a", 2), ("other", 2)], false),
        (&[("a", 2), ("b", 2)], true),
    ] {
        let answers = Answers {
            canary: Fetched::Found(live(Track::Canary, NEW, Pods::all(1))),
            route: Some(Fetched::Found(route_known_to(gateways))),
            ..settled(&base())
        };
        let look = look(&service, answers);
        let canary = look.body("Deployment", "my-llama-canary");
        let started = canary["metadata"]["annotations"].get("serving.zerfoo.com/drain-started");
        assert_eq!(started.is_some(), begins, "{gateways:?}");
        let want = if begins { "HTTPRouteAccepted" } else { "HTTPRoutePending" };
        assert_eq!(look.condition("RouteReady").unwrap().1, want, "{gateways:?}");
    }
}
