//! Whether a service has a route, where it leads, and what the gateway says of it.

use serde_json::{Value, json};
use windlass_api::aim::service::AimService;

use crate::aim::service::fixture::{
    Cluster, Seen, TEMPLATE, base, body, catalogue, config, deleted, of_another,
    ready_inference_service, route, routed, said, see, see_in, service_with, template, with,
    written,
};

fn in_config(service: &AimService, routing: Value, more: &[Value]) -> Seen {
    let mut objects = catalogue();
    objects.push(config("default", json!({ "routing": routing })));
    objects.extend_from_slice(more);
    see(service, objects)
}

fn gateway(seen: &Seen) -> Option<String> {
    let routes = seen.plan.apply.iter().filter(|desired| desired.kind.kind == "HTTPRoute");
    let parents: Vec<&Value> = routes.map(|route| &route.body["spec"]["parentRefs"][0]).collect();
    parents.first().map(|parent| parent["name"].as_str().unwrap().to_owned())
}

#[test]
fn g01_routing_may_come_from_the_runtime_config() {
    let edge = json!({ "enabled": true, "gatewayRef": { "name": "edge" } });
    assert_eq!(gateway(&in_config(&base(), edge, &[])).as_deref(), Some("edge"));
    assert_eq!(gateway(&in_config(&base(), json!({ "gatewayRef": { "name": "e" } }), &[])), None);
}

#[test]
fn g02_the_service_decides_against_its_runtime_config() {
    let service = service_with(json!({ "routing": { "enabled": false } }));
    let edge = json!({ "enabled": true, "gatewayRef": { "name": "edge" } });
    let seen = in_config(&service, edge.clone(), &[]);
    assert_eq!(gateway(&seen), None);
    assert!(!seen.status.contains_key("routing"));
    // A block that says nothing says no.
    assert_eq!(gateway(&in_config(&service_with(json!({ "routing": {} })), edge, &[])), None);
}

#[test]
fn g03_the_gateway_may_come_from_the_runtime_config() {
    let service = service_with(json!({ "routing": { "enabled": true } }));
    let shared = json!({ "gatewayRef": { "name": "shared" } });
    assert_eq!(gateway(&in_config(&service, shared.clone(), &[])).as_deref(), Some("shared"));
    assert_eq!(gateway(&in_config(&routed(), shared, &[])).as_deref(), Some("edge"));
}

#[test]
fn g05_the_path_may_come_from_the_runtime_config() {
    let mut service = service_with(json!({ "aimImageName": "Acme/Tiny-LM-7B",
        "routing": { "enabled": true, "gatewayRef": { "name": "edge" }, "routeTemplate": "" } }));
    service.metadata.namespace = Some("Lab".to_owned());
    let mut objects = catalogue();
    let routing = json!({ "routeTemplate": "/{.metadata.namespace}/{.spec.aimImageName}" });
    let config = config("default", json!({ "routing": routing }));
    objects.push(with(config, json!({ "metadata": { "namespace": "Lab" } })));
    let seen = see(&service, objects.clone());
    assert_eq!(seen.status["routing"]["path"], "/lab/acme-tiny-lm-7b");
    let rule = &body(&seen.plan, "HTTPRoute")["spec"]["rules"][0];
    assert_eq!(rule["matches"][0]["path"]["value"], "/lab/acme-tiny-lm-7b");
    // The service's own goes before it.
    let routing = service.spec.routing.as_mut().unwrap();
    routing.route_template = Some("/own".to_owned());
    assert_eq!(see(&service, objects).status["routing"]["path"], "/own");
}

#[test]
fn without_a_path_namespace_and_uid_make_one() {
    let seen = see(&routed(), catalogue());
    assert_eq!(seen.status["routing"]["path"], "/research/0f8fad5b-d9cb");
}

/// Spec 8.3: "resolved only when routing is enabled and a template was found", and the default path
/// "when none was rendered".
#[test]
fn until_a_template_is_found_the_default_path_is_shown() {
    let default = "/research/0f8fad5b-d9cb";
    let routing = json!({ "enabled": true, "gatewayRef": { "name": "edge" },
        "routeTemplate": "/own/{.metadata.name}" });
    let service = service_with(json!({ "routing": routing }));
    let shown = |service: &AimService, objects| {
        see(service, objects).status["routing"]["path"].as_str().unwrap().to_owned()
    };
    assert_eq!(shown(&service, vec![]), default);
    assert_eq!(shown(&service, vec![template(TEMPLATE, json!({}))]), "/own/chat");
    // One that is about to be made is not found yet.
    let overriding =
        service_with(json!({ "routing": routing, "overrides": { "precision": "fp8" } }));
    assert_eq!(shown(&overriding, vec![template(TEMPLATE, json!({}))]), default);
    let unread = see_in(&service, &Cluster::of(catalogue()).failing("AIMServiceTemplate"));
    assert_eq!(unread.status["routing"]["path"], default);
}

#[test]
fn w11_a_route_of_the_runtime_config_is_read() {
    let edge = json!({ "enabled": true, "gatewayRef": { "name": "edge" } });
    let accepted = route(said(&[("Accepted", "True", "Accepted", "")]));
    let seen = in_config(&base(), edge, &[accepted, ready_inference_service()]);
    assert_eq!(seen.state(), "Running");
    assert_eq!(seen.status["routing"]["path"], "/research/0f8fad5b-d9cb");
}

#[test]
fn w11_a_path_of_the_runtime_config_that_makes_no_sense_is_told() {
    let routing = json!({ "enabled": true, "gatewayRef": { "name": "edge" },
        "routeTemplate": "/{.metadata.labels['nope']}" });
    let seen = in_config(&base(), routing, &[]);
    let expected = "Failure=True RouteTemplateInvalid \"failed to evaluate route template \
                    \".metadata.labels['nope']\": jsonpath evaluation error: label \"nope\" not \
                    found\"";
    assert_eq!(seen.told(&["Failure"]), [expected]);
    assert_eq!(seen.status["routing"]["path"], "/research/0f8fad5b-d9cb");
    assert_eq!(written(&seen.plan), ["InferenceService chat"]);
}

fn routing_ready(parents: Value) -> String {
    let mut objects = catalogue();
    objects.push(route(parents));
    let seen = see(&routed(), objects);
    seen.told(&["RoutingReady"])[0].to_owned()
}

/// What the gateway has said, and what that means.
#[test]
fn w12_a_route_is_ready_when_its_gateway_has_accepted_it() {
    let ready = "True RouteReady \"HTTPRoute is ready\"";
    let waiting = "False ConfiguringRoute \"Waiting for the gateway to accept the HTTPRoute\"";
    let silent = "False ConfiguringRoute \"HTTPRoute has no parent status\"";
    let accepted = ("Accepted", "True", "Accepted", "");
    for (conditions, expected) in [
        (vec![], silent),
        (vec![accepted], ready),
        (vec![accepted, ("ResolvedRefs", "Unknown", "Pending", "")], ready),
        (vec![("Accepted", "Unknown", "Pending", "")], waiting),
        (vec![("ResolvedRefs", "True", "ResolvedRefs", "")], waiting),
        (
            vec![accepted, ("ResolvedRefs", "False", "BackendNotFound", "no Service")],
            "False BackendNotFound \"no Service\"",
        ),
        // Step E: any condition, also one that only this gateway knows.
        (
            vec![accepted, ("Programmed", "False", "Invalid", "no data plane")],
            "False Invalid \"no data plane\"",
        ),
        (
            vec![("Accepted", "False", "NoMatchingParent", "no such listener")],
            "False NoMatchingParent \"no such listener\"",
        ),
        (
            vec![("Accepted", "False", "RouteFailed", "")],
            "False RouteFailed \"Gateway reported HTTPRoute condition false\"",
        ),
    ] {
        let told = routing_ready(said(&conditions));
        assert_eq!(told, format!("RoutingReady={expected}"), "{conditions:?}");
    }
}

#[test]
fn w12_only_the_gateway_itself_speaks_and_only_of_the_route_as_it_is() {
    let accepted = || said(&[("Accepted", "True", "Accepted", "")]);
    let silent = "RoutingReady=False ConfiguringRoute \"HTTPRoute has no parent status\"";
    for parent in [
        json!({ "name": "other" }),
        json!({ "name": "edge", "namespace": "elsewhere" }),
        json!({ "name": "edge", "kind": "Service", "group": "" }),
    ] {
        let mut parents = accepted();
        parents[0]["parentRef"] = parent;
        assert_eq!(routing_ready(parents), silent);
    }
    let mut parents = accepted();
    parents[0]["parentRef"] = json!({ "name": "edge", "namespace": "research", "kind": "Gateway",
        "group": "gateway.networking.k8s.io", "sectionName": "http" });
    assert_eq!(routing_ready(parents), "RoutingReady=True RouteReady \"HTTPRoute is ready\"");
    let mut stale = accepted();
    stale[0]["conditions"][0]["observedGeneration"] = 1.into();
    assert!(routing_ready(stale).contains("ConfiguringRoute"));
}

/// Step E: any condition of any parent that is the gateway, or a part of it.
#[test]
fn w12_who_accepts_does_not_hide_who_refuses() {
    let ready = "RoutingReady=True RouteReady \"HTTPRoute is ready\"";
    let refused = "RoutingReady=False NoMatchingParent \"no\"";
    let says = |status: &str, reason: &str, message: &str, change: Value| {
        with(said(&[("Accepted", status, reason, message)])[0].take(), change)
    };
    for (change, expected) in [
        (json!({ "parentRef": { "sectionName": "https" } }), refused),
        (json!({ "parentRef": { "sectionName": "https" }, "controllerName": "d" }), refused),
        (json!({ "parentRef": { "port": 443 }, "controllerName": "d" }), refused),
        (json!({}), refused),
        // Of two controllers the one that accepts has the gateway, and the other may have had it.
        (json!({ "controllerName": "d" }), ready),
        (json!({ "parentRef": { "kind": "Gateway" }, "controllerName": "d" }), ready),
        // Of another gateway nothing matters.
        (json!({ "parentRef": { "name": "other" } }), ready),
    ] {
        let accepts = says("True", "Accepted", "", json!({}));
        let refuses = says("False", "NoMatchingParent", "no", change.clone());
        for parents in [json!([accepts, refuses]), json!([refuses, accepts])] {
            assert_eq!(routing_ready(parents), expected, "{change}");
        }
    }
}

#[test]
fn w12_a_false_that_is_good_news_does_no_harm() {
    let mut objects = catalogue();
    let conditions =
        [("Accepted", "True", "Accepted", ""), ("PartiallyInvalid", "False", "Fine", "")];
    objects.push(route(said(&conditions)));
    objects.push(ready_inference_service());
    assert_eq!(see(&routed(), objects).state(), "Running");
}

/// Who says nothing of versions speaks of the route as it is.
#[test]
fn w12_a_gateway_need_not_tell_which_version_it_has_seen() {
    for (status, expected) in [("True", "RoutingReady=True"), ("False", "RoutingReady=False No")] {
        let mut parents = said(&[("Accepted", status, "No", "")]);
        parents[0]["conditions"][0].as_object_mut().unwrap().remove("observedGeneration");
        let told = routing_ready(parents);
        assert!(told.starts_with(expected), "{told}");
    }
}

/// Otherwise each telling of the path would change it.
#[test]
fn a_path_cannot_tell_of_what_changes_by_itself() {
    let with = |expression: &str| {
        let routing = json!({ "enabled": true, "gatewayRef": { "name": "edge" },
            "routeTemplate": expression });
        let mut service = service_with(json!({ "routing": routing }));
        service.metadata.resource_version = Some("77".to_owned());
        see(&service, catalogue())
    };
    for (expression, field) in [
        (".status.routing.path", "status"),
        (".status", "status"),
        (".status.conditions[0].reason", "status"),
        (".metadata.resourceVersion", "resourceVersion"),
        (".metadata.managedFields[0].manager", "managedFields"),
    ] {
        let seen = with(&format!("/a/{{{expression}}}"));
        let refused = format!(
            "Failure=True RouteTemplateInvalid \"failed to evaluate route template \
             \"{expression}\": jsonpath evaluation error: {field} changes by itself and cannot be \
             part of a path\""
        );
        assert_eq!(seen.told(&["Failure"]), [refused]);
        assert_eq!(written(&seen.plan), ["InferenceService chat"]);
    }
    assert_eq!(with("/a/{.metadata.generation}").status["routing"]["path"], "/a/3");
    assert!(!format!("{:?}", with("/a/{..resourceVersion}").plan).contains("/77"));
}

#[test]
fn w12_only_a_route_that_failed_without_saying_why_is_a_failure() {
    let of = |reason: &str| {
        let mut objects = catalogue();
        objects.push(route(said(&[("Accepted", "False", reason, "no")])));
        objects.push(ready_inference_service());
        let seen = see(&routed(), objects);
        (seen.state().to_owned(), seen.told(&["Failure"]).concat())
    };
    assert_eq!(of("NoMatchingParent"), ("Starting".to_owned(), String::new()));
    let failed = "Failure=True RouteFailed \"no\"".to_owned();
    assert_eq!(of("RouteFailed"), ("Degraded".to_owned(), failed.clone()));
    assert_eq!(of(""), ("Degraded".to_owned(), failed));
}

#[test]
fn w13_a_route_that_nobody_wants_is_deleted() {
    let there = || route(json!([]));
    let disabled = || service_with(json!({ "routing": { "enabled": false } }));
    let deleted_with = |service: &AimService, more: Vec<Value>| {
        deleted(&see(service, [catalogue(), more].concat()).plan)
    };
    assert_eq!(deleted_with(&disabled(), vec![there()]), ["HTTPRoute chat"]);
    assert_eq!(deleted_with(&base(), vec![there()]), ["HTTPRoute chat"]);
    assert_eq!(deleted_with(&disabled(), vec![]), [""; 0]);
    assert_eq!(deleted_with(&disabled(), vec![of_another(there())]), [""; 0]);
    assert_eq!(deleted_with(&routed(), vec![there()]), [""; 0]);
    let mut ownerless = there();
    ownerless["metadata"]["ownerReferences"] = Value::Null;
    assert_eq!(deleted_with(&disabled(), vec![ownerless]), [""; 0]);
}

/// Spec 8.2: a gateway and a path that makes sense are part of what a route is made of. What would
/// stay leads where nobody wants it to, and would be told to be ready.
#[test]
fn w13_a_route_goes_with_its_gateway_and_with_its_path() {
    let accepted = || route(said(&[("Accepted", "True", "Accepted", "")]));
    for routing in [
        json!({ "enabled": true }),
        json!({ "enabled": true, "gatewayRef": { "name": "edge" }, "routeTemplate": "/{.nope}" }),
    ] {
        let service = service_with(json!({ "routing": routing }));
        let seen = see(&service, [catalogue(), vec![accepted()]].concat());
        assert_eq!(deleted(&seen.plan), ["HTTPRoute chat"], "{routing}");
        let seen = see(&service, catalogue());
        assert!(seen.told(&["RoutingReady"])[0].starts_with("RoutingReady=False"), "{routing}");
        assert_eq!(deleted(&seen.plan), [""; 0]);
    }
    // Without its template the path is unknown, and the one that it has may well be right.
    let routing = json!({ "enabled": true, "gatewayRef": { "name": "edge" },
        "routeTemplate": "/{.nope}" });
    let seen = see(&service_with(json!({ "routing": routing })), vec![accepted()]);
    assert_eq!(deleted(&seen.plan), [""; 0]);
}

/// Routing may be off only because it cannot be known.
#[test]
fn w13_a_route_stays_while_it_is_unknown_whether_it_is_wanted() {
    let there = || route(json!([]));
    let config_missing = service_with(json!({ "runtimeConfigName": "gold" }));
    let seen = see(&config_missing, [catalogue(), vec![there()]].concat());
    assert_eq!(deleted(&seen.plan), [""; 0]);
    let template_missing = see(&base(), vec![there()]);
    assert_eq!(deleted(&template_missing.plan), [""; 0]);
    // The gateway may be that config's to name.
    let gateway_missing =
        service_with(json!({ "runtimeConfigName": "gold", "routing": { "enabled": true } }));
    let seen = see(&gateway_missing, [catalogue(), vec![there()]].concat());
    assert_eq!(deleted(&seen.plan), [""; 0]);
    // But a service that says so itself needs no template for it.
    let disabled = service_with(json!({ "routing": {} }));
    assert_eq!(deleted(&see(&disabled, vec![there()]).plan), ["HTTPRoute chat"]);
    let pending = see(&base(), vec![template(TEMPLATE, json!({})), there()]);
    assert_eq!(deleted(&pending.plan), ["HTTPRoute chat"]);
}
