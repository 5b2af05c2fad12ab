use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::*;
use crate::gateway::{
    assemble::{CLASS, PortSeen, ServiceSeen, Target, assemble},
    backends::Backends,
};

const SETTINGS: Settings = Settings {
    accepts_any: true,
    scheme: "http",
    address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080),
};

/// Objects by kind, with what they are called, want and say already.
fn listed(objects: &[(Kind, &str, Value, Value)]) -> Listed {
    let mut listed = Listed::default();
    for (kind, name, spec, status) in objects {
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let metadata = json!({ "namespace": namespace, "name": name, "generation": 3,
            "resourceVersion": "7" });
        listed.put(*kind, json!({ "metadata": metadata, "spec": spec, "status": status }));
    }
    listed
}

fn around() -> Around<'static> {
    let service = |namespace, name| ServiceSeen {
        namespace,
        name,
        selector: None,
        ports: vec![PortSeen { number: 80, name: "", target: Target::Number(80) }],
        takes_unready: false,
    };
    let services = vec![service("ns", "s"), service("other", "s"), service("ns", "epp")];
    Around { services, ..Around::default() }
}

fn said_by(listed: &Listed, settings: Settings) -> Vec<Change> {
    let around = around();
    let assembled = assemble(listed, &around, settings, &Backends::default());
    changes(listed, &around, settings, &assembled, "2026-01-01T00:00:00Z")
}

fn said(objects: &[(Kind, &str, Value, Value)]) -> Vec<Change> {
    said_by(&listed(objects), SETTINGS)
}

/// `Type=Status reason: message` of each condition.
fn conditions(of: &Value) -> Vec<String> {
    let line = |held: &Value| {
        assert_eq!(held["observedGeneration"], 3);
        let field = |name: &str| held[name].as_str().unwrap();
        format!("{}={} {}: {}", field("type"), field("status"), field("reason"), field("message"))
    };
    items(of, "conditions").iter().map(line).collect()
}

fn route(parents: Value, rules: Value) -> (Kind, &'static str, Value, Value) {
    (Kind::Route, "ns/r", json!({ "parentRefs": parents, "rules": rules }), json!({}))
}

fn to(backend: Value) -> Value {
    json!([{ "backendRefs": [backend] }])
}

fn gateway(class: &str, listeners: Value) -> (Kind, &'static str, Value, Value) {
    let spec = json!({ "gatewayClassName": class, "listeners": listeners });
    (Kind::Gateway, "ns/g", spec, json!({}))
}

fn class() -> (Kind, &'static str, Value, Value) {
    (Kind::Class, CLASS, json!({ "controllerName": CONTROLLER }), json!({}))
}

fn web() -> Value {
    json!({ "name": "web", "port": 80, "protocol": "HTTP" })
}

const ACCEPTED: &str = "Accepted=True Accepted: the gateway serves the route";
const RESOLVED: &str = "ResolvedRefs=True ResolvedRefs: all backends are there";

#[test]
fn a_route_is_told_what_each_parent_thinks_of_it() {
    let parent = json!([{ "name": "g" }]);
    let service = to(json!({ "name": "s", "port": 80 }));
    let not =
        |type_: &str, reason: &str, message: &str| format!("{type_}=False {reason}: {message}");
    let unresolved = |reason: &str, message: &str| {
        vec![ACCEPTED.to_owned(), not("ResolvedRefs", reason, message)]
    };
    let refused =
        |reason: &str, message: &str| vec![not("Accepted", reason, message), RESOLVED.to_owned()];
    let listener = |more: Value| {
        let mut listener = web();
        listener.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        gateway(CLASS, json!([listener]))
    };
    let filter = json!([{ "filters": [{ "type": "RequestMirror" }],
        "backendRefs": [{ "name": "s", "port": 80 }] }]);
    for (rules, more, want) in [
        (service.clone(), None, vec![ACCEPTED.to_owned(), RESOLVED.to_owned()]),
        (
            service.clone(),
            Some(gateway(CLASS, json!([]))),
            refused("NoMatchingParent", "the gateway has no such listener"),
        ),
        (
            service.clone(),
            Some(listener(json!({ "allowedRoutes": { "namespaces": { "from": "None" } } }))),
            refused(
                "NotAllowedByListeners",
                "no listener allows routes of this kind and namespace",
            ),
        ),
        (
            filter,
            None,
            refused("UnsupportedValue", "rule 0: filters of type RequestMirror are not supported"),
        ),
        (
            to(json!({ "name": "missing", "port": 80 })),
            None,
            unresolved("BackendNotFound", "there is no Service ns/missing with port 80"),
        ),
        (
            to(json!({ "name": "s" })),
            None,
            unresolved("BackendNotFound", "the reference to Service ns/s names no port"),
        ),
        (
            to(json!({ "name": "s", "namespace": "other", "port": 80 })),
            None,
            unresolved(
                "RefNotPermitted",
                "no ReferenceGrant permits the reference to Service other/s",
            ),
        ),
        (
            to(json!({ "name": "s", "group": "apps", "kind": "Deployment" })),
            None,
            unresolved("InvalidKind", "backends of kind Deployment are not supported"),
        ),
        (
            to(json!({ "name": "p", "group": POOLS[0], "kind": "InferencePool" })),
            None,
            unresolved("BackendNotFound", "there is no InferencePool ns/p"),
        ),
    ] {
        let mut objects = vec![route(parent.clone(), rules.clone())];
        objects.extend(more);
        let changes = said(&objects);
        let change = changes.iter().find(|change| change.kind == Kind::Route).unwrap();
        assert_eq!((change.name.as_str(), change.version.as_str()), ("r", "7"));
        let entry = &change.status["parents"][0];
        assert_eq!(entry["controllerName"], CONTROLLER);
        assert_eq!(entry["parentRef"], parent[0]);
        assert_eq!(conditions(entry), want, "{rules}");
    }
    let mesh = json!([{ "group": "", "kind": "Service", "name": "s" }]);
    assert_eq!(said(&[route(mesh, service)]), []);
}

#[test]
fn what_others_say_stays_and_what_is_said_is_not_said_again() {
    let service = to(json!({ "name": "s", "port": 80 }));
    let theirs = json!({ "parentRef": { "name": "g" }, "controllerName": "istio.io/gateway",
        "conditions": [] });
    let old = json!({ "parentRef": { "name": "before" }, "controllerName": CONTROLLER,
        "conditions": [] });
    let mut given = route(json!([{ "name": "g" }]), service);
    given.3 = json!({ "parents": [old, theirs] });
    let first = said(std::slice::from_ref(&given));
    let parents = first[0].status["parents"].as_array().unwrap().clone();
    assert_eq!(parents.len(), 2);
    assert_eq!(parents[0], theirs);
    assert_eq!(conditions(&parents[1]), [ACCEPTED, RESOLVED]);

    given.3 = first[0].status.clone();
    assert_eq!(said(std::slice::from_ref(&given)), []);
    // A strict definition fills these in.
    given.3["parents"][1]["parentRef"]["group"] = GROUP.into();
    given.3["parents"][1]["parentRef"]["kind"] = "Gateway".into();
    assert_eq!(said(std::slice::from_ref(&given)), []);

    let since = json!("2025-01-01T00:00:00Z");
    given.3["parents"][1]["conditions"][0]["lastTransitionTime"] = since.clone();
    given.3["parents"][1]["conditions"][1]["status"] = "False".into();
    given.3["parents"][1]["conditions"][1]["lastTransitionTime"] = since.clone();
    let again = said(std::slice::from_ref(&given));
    let held = &again[0].status["parents"][1]["conditions"];
    assert_eq!(held[0]["lastTransitionTime"], since, "the time moves with the status alone");
    assert_eq!(held[1]["lastTransitionTime"], "2026-01-01T00:00:00Z");

    // A route that has left has nothing of ours.
    given.2["parentRefs"] = json!([]);
    assert_eq!(said(&[given])[0].status, json!({ "parents": [theirs] }));
}

#[test]
fn a_gateway_says_where_it_is_and_how_many_routes_it_has() {
    let listeners = json!([web(), { "name": "raw", "port": 81, "protocol": "TCP" },
        { "name": "grpc", "port": 82, "protocol": "HTTP",
          "allowedRoutes": { "kinds": [{ "kind": "GRPCRoute" }] } },
        { "name": "both", "port": 83, "protocol": "HTTP",
          "allowedRoutes": { "kinds": [{ "kind": "GRPCRoute" }, { "kind": "HTTPRoute" }] } }]);
    let service = to(json!({ "name": "s", "port": 80 }));
    let broken = json!([{ "filters": [{ "type": "X" }] }]);
    let mut unsupported = route(json!([{ "name": "g" }]), broken);
    unsupported.1 = "ns/broken";
    let attached = route(json!([{ "name": "g" }, { "name": "g", "sectionName": "web" }]), service);
    let mut all = vec![class(), gateway(CLASS, listeners), attached, unsupported];
    let changes = said(&all);
    let change = changes.iter().find(|change| change.kind == Kind::Gateway).unwrap();
    let status = &change.status;
    assert_eq!(status["addresses"], json!([{ "type": "IPAddress", "value": "127.0.0.1" }]));
    assert_eq!(
        conditions(status),
        [
            "Accepted=True ListenersNotValid: some listeners are not supported",
            "Programmed=True Programmed: requests are taken at http://127.0.0.1:8080",
        ]
    );
    let counts: Vec<_> = items(status, "listeners")
        .iter()
        .map(|listener| {
            let kinds = items(listener, "supportedKinds").len();
            (
                listener["name"].as_str().unwrap(),
                listener["attachedRoutes"].as_u64().unwrap(),
                kinds,
            )
        })
        .collect();
    assert_eq!(counts, [("web", 1, 1), ("raw", 0, 0), ("grpc", 0, 0), ("both", 1, 1)]);
    assert_eq!(
        conditions(&status["listeners"][1])[..2],
        [
            "Accepted=False UnsupportedProtocol: the protocol TCP is not supported",
            "Programmed=False Invalid: no requests are taken",
        ]
    );
    for listener in [2, 3] {
        assert_eq!(
            conditions(&status["listeners"][listener])[2],
            "ResolvedRefs=False InvalidRouteKinds: only routes of kind HTTPRoute are supported"
        );
    }
    all[1].3 = status.clone();
    assert!(said(&all).iter().all(|change| change.kind != Kind::Gateway));
}

#[test]
fn gateways_and_classes_of_others_are_left_alone() {
    let theirs = (Kind::Class, "istio", json!({ "controllerName": "istio.io/x" }), json!({}));
    let kinds = |objects: &[(Kind, &str, Value, Value)], accepts_any| {
        let settings = Settings { accepts_any, ..SETTINGS };
        let changes = said_by(&listed(objects), settings);
        changes.into_iter().map(|change| change.kind).collect::<Vec<_>>()
    };
    let nothing = gateway("istio", json!([]));
    for accepts_any in [true, false] {
        assert_eq!(kinds(&[theirs.clone(), nothing.clone()], accepts_any), []);
        let ours = [class(), gateway(CLASS, json!([]))];
        assert_eq!(kinds(&ours, accepts_any), [Kind::Gateway, Kind::Class]);
    }
    assert_eq!(kinds(std::slice::from_ref(&nothing), true), [Kind::Gateway]);
    assert_eq!(kinds(&[nothing], false), []);
}

#[test]
fn a_pool_knows_the_gateways_that_it_is_reached_through() {
    for (kind, field, names_controller) in
        [(Kind::Pool, "parents", true), (Kind::EarlyPool, "parent", false)]
    {
        let refer = json!({ "group": kind.group(), "kind": "InferencePool", "name": "p" });
        let parents = json!([{ "name": "g" }, { "name": "h", "namespace": "infra" }]);
        let theirs = json!({ "parentRef": { "name": "g" }, "controllerName": "istio.io/x" });
        for (picker, want) in [
            (
                json!({ "name": "epp" }),
                "ResolvedRefs=True ResolvedRefs: the endpoint picker is there",
            ),
            (json!({}), "ResolvedRefs=True ResolvedRefs: the endpoint picker is there"),
            (
                json!({ "name": "none" }),
                "ResolvedRefs=False InvalidExtensionRef: there is no Service ns/none of an endpoint \
                 picker",
            ),
        ] {
            let spec = json!({ "endpointPickerRef": picker });
            let pool = (kind, "ns/p", spec, json!({ field: [theirs] }));
            let mut all = vec![route(parents.clone(), to(refer.clone())), pool];
            let changes = said(&all);
            let change = changes.iter().find(|change| change.kind == kind).unwrap();
            let entries = items(&change.status, field);
            assert_eq!((entries.len(), &entries[0]), (3, &theirs));
            for (entry, namespace, name) in [(&entries[1], "infra", "h"), (&entries[2], "ns", "g")]
            {
                let parent = json!({ "group": GROUP, "kind": "Gateway", "namespace": namespace,
                    "name": name });
                assert_eq!(entry["parentRef"], parent);
                assert_eq!(entry.get("controllerName").is_some(), names_controller);
                let accepted = "Accepted=True Accepted: the gateway serves the pool";
                assert_eq!(conditions(entry), [accepted, want]);
            }
            all[1].3 = change.status.clone();
            assert!(said(&all).iter().all(|change| change.kind != kind));
            let alone = said(&all[1..]);
            assert_eq!(alone[0].status, json!({ field: [theirs] }), "no route, no parent");
        }
    }
}

#[test]
fn a_pool_does_not_know_gateways_of_routes_that_may_not_refer_to_it() {
    let refer = json!({ "group": POOLS[0], "kind": "InferencePool", "name": "p",
        "namespace": "other" });
    let pool = (Kind::Pool, "other/p", json!({}), json!({}));
    let from = json!([{ "group": GROUP, "kind": "HTTPRoute", "namespace": "ns" }]);
    let to_pools = json!([{ "group": POOLS[0], "kind": "InferencePool" }]);
    let grant = (Kind::Grant, "other/g", json!({ "from": from, "to": to_pools }), json!({}));
    let mut all = vec![route(json!([{ "name": "g" }]), to(refer)), pool];
    assert!(said(&all).iter().all(|change| change.kind != Kind::Pool));
    all.push(grant);
    assert!(said(&all).iter().any(|change| change.kind == Kind::Pool));
}

#[test]
fn nonsense_that_somebody_wrote_into_a_status_does_no_harm() {
    let nonsense = [
        json!(3),
        json!({ "parents": 3, "conditions": {}, "listeners": null }),
        json!({ "parents": [null, 3, { "parentRef": 4, "controllerName": CONTROLLER }],
            "listeners": [7], "conditions": [[]] }),
    ];
    for status in nonsense {
        let mut all = vec![
            class(),
            gateway(CLASS, json!([web()])),
            route(json!([{ "name": "g" }]), to(json!({ "name": "s", "port": 80 }))),
            (Kind::Pool, "ns/p", json!({}), json!({})),
        ];
        for object in &mut all {
            object.3 = status.clone();
        }
        assert!(said(&all).len() >= 3, "{status}");
    }
}
