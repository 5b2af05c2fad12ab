use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

fn ask(listeners: Value, parent: Value, hostnames: &[&str]) -> Result<Vec<String>, &'static str> {
    let spec: GatewaySpec = serde_json::from_value(json!({ "listeners": listeners })).unwrap();
    let parent: ParentRef = serde_json::from_value(parent).unwrap();
    let labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
    let hostnames: Vec<String> = hostnames.iter().map(|name| (*name).to_owned()).collect();
    let applicant = Applicant { namespace: "apps", labels: &labels, hostnames: &hostnames };
    let attached = accept(applicant, &parent, ("infra", &spec)).map_err(Refusal::reason)?;
    Ok(attached.hostnames)
}

fn listener(more: Value) -> Value {
    let mut listener = json!({ "name": "web", "port": 80, "protocol": "HTTP",
        "allowedRoutes": { "namespaces": { "from": "All" } } });
    listener.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    listener
}

#[test]
fn a_listener_must_be_meant_and_must_allow_it() {
    let allowed = |allowed: Value| json!([listener(json!({ "allowedRoutes": allowed }))]);
    let from = |from: &str| allowed(json!({ "namespaces": { "from": from } }));
    let select = |selector: Value| {
        allowed(json!({ "namespaces": { "from": "Selector", "selector": selector } }))
    };
    let any = json!({ "name": "g" });
    for (listeners, parent, want) in [
        (json!([listener(json!({}))]), any.clone(), Ok(())),
        (json!([]), any.clone(), Err("NoMatchingParent")),
        (json!([listener(json!({ "protocol": "TCP" }))]), any.clone(), Err("NoMatchingParent")),
        (json!([listener(json!({}))]), json!({ "name": "g", "sectionName": "web" }), Ok(())),
        (
            json!([listener(json!({}))]),
            json!({ "name": "g", "sectionName": "x" }),
            Err("NoMatchingParent"),
        ),
        (json!([listener(json!({}))]), json!({ "name": "g", "port": 81 }), Err("NoMatchingParent")),
        (from("Same"), any.clone(), Err("NotAllowedByListeners")),
        (allowed(json!({})), any.clone(), Err("NotAllowedByListeners")),
        (select(json!({ "matchLabels": { "team": "a" } })), any.clone(), Ok(())),
        (
            select(json!({ "matchLabels": { "team": "b" } })),
            any.clone(),
            Err("NotAllowedByListeners"),
        ),
        (
            select(json!({ "matchExpressions": [
                { "key": "team", "operator": "In", "values": ["a"] },
                { "key": "old", "operator": "DoesNotExist" }] })),
            any.clone(),
            Ok(()),
        ),
        (
            select(json!({ "matchExpressions": [{ "key": "team", "operator": "Gt" }] })),
            any.clone(),
            Err("NotAllowedByListeners"),
        ),
        (
            allowed(json!({ "namespaces": { "from": "All" }, "kinds": [{ "kind": "GRPCRoute" }] })),
            any.clone(),
            Err("NotAllowedByListeners"),
        ),
    ] {
        assert_eq!(ask(listeners.clone(), parent, &[]).map(|_| ()), want, "{listeners}");
    }
}

#[test]
fn a_route_is_reached_under_what_it_has_in_common_with_listeners() {
    let named = |name: &str| json!([listener(json!({ "hostname": name }))]);
    let any = json!({ "name": "g" });
    for (listeners, route, want) in [
        (json!([listener(json!({}))]), &["a.x"][..], Ok(vec!["a.x"])),
        (json!([listener(json!({}))]), &[], Ok(vec![])),
        (named("*.x"), &[], Ok(vec!["*.x"])),
        (named("*.x"), &["a.x", "b.y"], Ok(vec!["a.x"])),
        (named("a.x"), &["*.x"], Ok(vec!["a.x"])),
        (named("*.x"), &["*.a.x"], Ok(vec!["*.a.x"])),
        (named("*.a.x"), &["*.x"], Ok(vec!["*.a.x"])),
        (named("*.x"), &["x"], Err("NoMatchingListenerHostname")),
        (named("a.x"), &["b.x"], Err("NoMatchingListenerHostname")),
    ] {
        let want = want.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(ask(listeners.clone(), any.clone(), route), want, "{listeners} {route:?}");
    }
}

#[test]
fn only_gateways_are_parents_here() {
    let is = |value: Value| serde_json::from_value::<ParentRef>(value).unwrap().is_gateway();
    assert!(is(json!({ "name": "g" })));
    assert!(is(json!({ "name": "g", "group": GROUP, "kind": "Gateway" })));
    assert!(!is(json!({ "name": "g", "group": "", "kind": "Service" })));
}
