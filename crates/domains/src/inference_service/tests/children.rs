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

#[test]
fn a_child_that_is_being_deleted_is_not_ready() {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

    let service = service_with(json!({
        "minReplicas": 1, "maxReplicas": 4, "canary": { "modelRef": NEW, "weight": 0 },
        "routing": { "parentRefs": [{ "name": "a" }] },
    }));
    let found = |reach| Fetched::Found(stable_service(reach));
    let healthy = || Answers {
        canary: Fetched::Found(live(Track::Canary, NEW, Pods::all(1))),
        primary_service: found(Reach::Only(Track::Primary)),
        canary_service: found(Reach::Only(Track::Canary)),
        autoscaler: autoscaler_found(),
        route: Some(Fetched::Found(route_known_to(&[("a", 2)]))),
        ..settled(&base())
    };
    assert_eq!(look(&service, healthy()).state, State::Ready);

    fn leave(metadata: Option<&mut ObjectMeta>) {
        metadata.unwrap().deletion_timestamp = Some(Time(now()));
    }
    fn of<T>(answer: &mut Fetched<T>) -> Option<&mut T> {
        match answer {
            Fetched::Found(object) => Some(object),
            _ => None,
        }
    }
    type Change = fn(&mut Answers);
    let changes: [(&str, Change); 7] = [
        ("PrimaryReady", |a| leave(of(&mut a.primary).map(|o| &mut o.metadata))),
        ("CanaryReady", |a| leave(of(&mut a.canary).map(|o| &mut o.metadata))),
        ("ServiceReady", |a| leave(of(&mut a.service).map(|o| &mut o.metadata))),
        ("ServiceReady", |a| leave(of(&mut a.primary_service).map(|o| &mut o.metadata))),
        ("ServiceReady", |a| leave(of(&mut a.canary_service).map(|o| &mut o.metadata))),
        ("AutoscalerReady", |a| leave(of(&mut a.autoscaler).map(|o| &mut o.metadata))),
        ("RouteReady", |a| {
            leave(a.route.as_mut().and_then(of).map(|o| &mut o.metadata));
        }),
    ];
    for (condition, change) in changes {
        let mut answers = healthy();
        change(&mut answers);
        let look = look(&service, answers);
        assert_eq!(look.condition(condition), Some(("False", "Terminating")), "{condition}");
        assert_eq!(look.condition("Ready").unwrap().0, "False", "{condition}");
    }
}

#[test]
fn a_component_names_the_child_that_it_speaks_for() {
    let service = service_with(json!({
        "minReplicas": 1, "maxReplicas": 4, "canary": { "modelRef": NEW, "weight": 0 },
        "routing": { "parentRefs": [{ "name": "a" }] },
    }));
    let domain = InferenceServiceDomain::default();
    let observed = domain.compose(&service, empty_cluster(true), now());
    let health = domain.health(&service, &observed);
    let children: Vec<_> = health
        .components
        .iter()
        .map(|component| {
            let child = component.child.as_ref();
            let child = child.map(|child| {
                let namespace = child.namespace.as_deref().unwrap_or_default();
                format!("{} {namespace}/{}", child.kind, child.name)
            });
            (component.component.as_str(), child)
        })
        .collect();
    let child = |text: &str| Some(text.to_owned());
    assert_eq!(
        children,
        [
            ("Primary", child("Deployment default/my-llama-primary")),
            ("Canary", child("Deployment default/my-llama-canary")),
            // Several Services are one component.
            ("Service", None),
            ("Route", child("HTTPRoute default/my-llama-route")),
            ("Autoscaler", child("HorizontalPodAutoscaler default/my-llama-hpa")),
        ]
    );
}
