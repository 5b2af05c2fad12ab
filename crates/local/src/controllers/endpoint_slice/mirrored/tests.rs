use serde_json::{Value, json};

use super::*;

fn endpoints(subsets: Value) -> Endpoints {
    let metadata = json!({"name": "web", "namespace": "default", "uid": "e1",
        "labels": {"team": "x"}, "annotations": {"note": "n", NOT_COPIED[0]: "t", NOT_COPIED[1]: "{}"}});
    serde_json::from_value(json!({"metadata": metadata, "subsets": subsets})).unwrap()
}

fn service(spec: Value) -> Service {
    serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec})).unwrap()
}

/// The slices after the changes; a second look changes nothing.
fn settled(endpoints: &Endpoints, mut slices: Vec<EndpointSlice>) -> Vec<EndpointSlice> {
    for change in mirrored(Some(endpoints), &slices).changes {
        match change {
            Change::Create(mut slice) => {
                slice.metadata.name = Some(format!("web-{}", slices.len()));
                slices.push(*slice);
            }
            Change::Update(slice) => {
                let old = slices.iter_mut().find(|s| s.metadata.name == slice.metadata.name);
                *old.unwrap() = *slice;
            }
            Change::Delete(name) => slices.retain(|s| s.metadata.name.as_ref() != Some(&name)),
        }
    }
    assert_eq!(mirrored(Some(endpoints), &slices).changes, []);
    slices
}

fn names(changes: &[Change]) -> Vec<&str> {
    let name = |change: &Change| match change {
        Change::Create(_) => "create",
        Change::Update(_) => "update",
        Change::Delete(_) => "delete",
    };
    changes.iter().map(name).collect()
}

#[test]
fn a_slice_says_what_the_endpoints_say() {
    let endpoints = endpoints(json!([{
        "addresses": [{"ip": "192.0.2.1", "hostname": "one", "nodeName": "n",
            "targetRef": {"kind": "Pod", "name": "p"}}],
        "notReadyAddresses": [{"ip": "192.0.2.2"}],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "h2c"}],
    }]));
    let slices = settled(&endpoints, Vec::new());
    let slice = serde_json::to_value(&slices[0]).unwrap();
    assert_eq!(slices.len(), 1);
    assert_eq!(slice["metadata"]["generateName"], "web-");
    assert_eq!(slice["metadata"]["annotations"], json!({"note": "n"}));
    let labels = json!({"team": "x", SERVICE_NAME: "web", MANAGED_BY: MANAGER});
    assert_eq!(slice["metadata"]["labels"], labels);
    let owner = json!([{"apiVersion": "v1", "kind": "Endpoints", "name": "web", "uid": "e1",
        "controller": true, "blockOwnerDeletion": true}]);
    assert_eq!(slice["metadata"]["ownerReferences"], owner);
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "h2c"}]);
    assert_eq!((&slice["ports"], &slice["addressType"]), (&ports, &json!("IPv4")));
    let want = json!([
        {"addresses": ["192.0.2.1"], "conditions": {"ready": true}, "hostname": "one",
            "nodeName": "n", "targetRef": {"kind": "Pod", "name": "p"}},
        {"addresses": ["192.0.2.2"], "conditions": {"ready": false}},
    ]);
    assert_eq!(slice["endpoints"], want);
}

#[test]
fn only_endpoints_of_a_service_without_selector_are_mirrored() {
    let plain = endpoints(json!([]));
    let free = service(json!({"ports": []}));
    assert!(is_mirrored(&plain, Some(&free)));
    assert!(is_mirrored(&plain, Some(&service(json!({"selector": {}})))));
    assert!(!is_mirrored(&plain, Some(&service(json!({"selector": {"a": "b"}})))));
    let elsewhere = service(json!({"type": "ExternalName", "selector": {"a": "b"}}));
    assert!(!is_mirrored(&plain, Some(&elsewhere)));
    assert!(!is_mirrored(&plain, None));
    for (skip, want) in [("true", false), ("false", true)] {
        let mut marked = plain.clone();
        marked.metadata.labels = Some([(SKIP.to_owned(), skip.to_owned())].into());
        assert_eq!(is_mirrored(&marked, Some(&free)), want, "{skip}");
    }
    let mut lock = plain.clone();
    lock.metadata.annotations = Some([(LEADER.to_owned(), String::new())].into());
    assert!(!is_mirrored(&lock, Some(&free)));
}

#[test]
fn each_family_and_each_set_of_ports_has_its_slice() {
    let ports = |number: u16| json!([{"port": number, "protocol": "TCP"}]);
    let endpoints = endpoints(json!([
        {"addresses": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}], "ports": ports(80)},
        {"addresses": [{"ip": "192.0.2.2"}], "ports": ports(90)},
        {"addresses": [{"ip": "192.0.2.3"}]},
    ]));
    let slices = settled(&endpoints, Vec::new());
    let mut found: Vec<_> = slices
        .iter()
        .map(|slice| {
            let ports: Vec<_> = slice.ports.iter().flatten().filter_map(|port| port.port).collect();
            (&*slice.address_type, ports, &*slice.endpoints[0].addresses[0])
        })
        .collect();
    found.sort();
    let want = [
        ("IPv4", vec![], "192.0.2.3"),
        ("IPv4", vec![80], "192.0.2.1"),
        ("IPv4", vec![90], "192.0.2.2"),
        ("IPv6", vec![80], "2001:db8::1"),
    ];
    assert_eq!(found, want);
}

#[test]
fn what_is_said_twice_counts_once_and_waiting_beats_ready() {
    let ports = json!([{"port": 80, "protocol": "TCP"}]);
    let endpoints = endpoints(json!([
        {"addresses": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}], "ports": ports},
        {"notReadyAddresses": [{"ip": "192.0.2.2"}], "ports": ports},
    ]));
    let slices = settled(&endpoints, Vec::new());
    let found: Vec<_> = slices[0]
        .endpoints
        .iter()
        .map(|endpoint| (&*endpoint.addresses[0], endpoint.conditions.as_ref().unwrap().ready))
        .collect();
    assert_eq!(found, [("192.0.2.1", Some(true)), ("192.0.2.2", Some(false))]);
}

#[test]
fn no_more_than_fit_into_a_slice_are_mirrored() {
    let many: Vec<_> =
        (0..1003).map(|n| json!({"ip": format!("10.0.{}.{}", n / 250, n % 250)})).collect();
    let mut subset = json!({"addresses": many, "ports": [{"port": 80, "protocol": "TCP"}]});
    subset["notReadyAddresses"] = json!([{"ip": "rubbish"}]);
    let endpoints = endpoints(json!([subset]));
    let slices = settled(&endpoints, Vec::new());
    assert_eq!((slices.len(), slices[0].endpoints.len()), (1, LIMIT));
    let told = mirrored(Some(&endpoints), &slices);
    assert_eq!((told.invalid, told.skipped), (0, 4));
}

#[test]
fn addresses_are_written_as_they_are_read() {
    for (text, want) in [
        ("010.0.00.1", Some("10.0.0.1")),
        ("::ffff:192.0.2.1", Some("192.0.2.1")),
        ("2001:DB8:0::1", Some("2001:db8::1")),
        ("0.0.0.0", Some("0.0.0.0")),
        ("", None),
        ("1.2.3", None),
        ("1..2.3", None),
        ("name", None),
    ] {
        assert_eq!(parsed(text).map(|ip| ip.to_string()).as_deref(), want, "{text}");
    }
}

#[test]
fn slices_follow_their_endpoints_and_go_with_them() {
    let ports = |number: u16| json!([{"port": number, "protocol": "TCP"}]);
    let one =
        |number| endpoints(json!([{"addresses": [{"ip": "192.0.2.1"}], "ports": ports(number)}]));
    let slices = settled(&one(80), Vec::new());
    // Other ports take over the slice, another owner writes it anew.
    let changed = mirrored(Some(&one(90)), &slices);
    assert_eq!(names(&changed.changes), ["update"]);
    let mut reborn = one(80);
    reborn.metadata.uid = Some("e2".into());
    assert_eq!(names(&mirrored(Some(&reborn), &slices).changes), ["update"]);
    let mut leaving = one(80);
    leaving.metadata.deletion_timestamp =
        Some(super::super::super::stamp(jiff::Timestamp::UNIX_EPOCH));
    assert_eq!(mirrored(Some(&leaving), &[]).changes, []);
    assert_eq!(names(&mirrored(None, &slices).changes), ["delete"]);
    assert_eq!(names(&mirrored(Some(&endpoints(json!([]))), &slices).changes), ["delete"]);
    // Those of others are not touched.
    let mut foreign = slices.clone();
    foreign[0].metadata.labels = Some([(SERVICE_NAME.to_owned(), "web".to_owned())].into());
    assert_eq!(mirrored(None, &foreign).changes, []);
}
