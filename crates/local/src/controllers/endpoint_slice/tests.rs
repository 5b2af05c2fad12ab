use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::{Endpoints, Pod, Service},
    discovery::v1::EndpointSlice,
};
use serde_json::{Value, json};

use super::{
    mirror,
    slices::{Change, LIMIT, changes},
    wanted,
};

fn service(spec: Value) -> Service {
    let mut spec = spec;
    let fields = [("selector", json!({"app": "a"})), ("clusterIP", json!("10.96.0.7"))];
    for (key, value) in fields {
        if spec.get(key).is_none() {
            spec[key] = value;
        }
    }
    let metadata = json!({"name": "web", "namespace": "default", "uid": "s1",
        "labels": {"team": "x"}});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn pod(name: &str, ip: &str, ready: bool) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "a"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "ports": [
            {"name": "http", "containerPort": 8000},
        ]}]},
        "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
        },
    })
}

fn pods(values: impl IntoIterator<Item = Value>) -> Vec<Arc<Pod>> {
    values.into_iter().map(|value| Arc::new(serde_json::from_value(value).unwrap())).collect()
}

/// The slices after the changes, as a server would have them.
fn applied(mut slices: Vec<EndpointSlice>, changes: Vec<Change>) -> Vec<EndpointSlice> {
    for change in changes {
        match change {
            Change::Create(mut slice) => {
                let taken = |name: &String| {
                    slices.iter().any(|slice| slice.metadata.name.as_ref() == Some(name))
                };
                let mut names = (slices.len()..).map(|number| format!("web-{number}"));
                slice.metadata.name = names.find(|name| !taken(name));
                slices.push(*slice);
            }
            Change::Update(slice) => {
                let old = slices.iter_mut().find(|s| s.metadata.name == slice.metadata.name);
                *old.unwrap() = *slice;
            }
            Change::Delete(name) => slices.retain(|s| s.metadata.name.as_ref() != Some(&name)),
        }
    }
    slices
}

fn settled(service: &Service, pods: &[Arc<Pod>], slices: Vec<EndpointSlice>) -> Vec<EndpointSlice> {
    let first = changes(service, pods, &slices);
    let slices = applied(slices, first);
    assert_eq!(changes(service, pods, &slices), [], "a second look changes nothing");
    slices
}

fn addresses(slice: &EndpointSlice) -> Vec<&str> {
    slice.endpoints.iter().map(|endpoint| &*endpoint.addresses[0]).collect()
}

#[test]
fn a_service_gets_one_slice_with_its_ports_labels_and_owner() {
    let service = service(json!({"ports": [{"name": "api", "port": 80, "targetPort": "http"}]}));
    let slices = settled(&service, &pods([pod("a", "127.64.0.1", true)]), vec![]);
    let [slice] = &slices[..] else { panic!("{slices:?}") };
    let value = serde_json::to_value(slice).unwrap();
    assert_eq!(value["metadata"]["generateName"], "web-");
    assert_eq!(
        value["metadata"]["labels"],
        json!({
            "team": "x",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        })
    );
    assert_eq!(value["metadata"]["ownerReferences"][0]["uid"], "s1");
    assert_eq!(value["addressType"], "IPv4");
    assert_eq!(value["ports"], json!([{"name": "api", "port": 8000, "protocol": "TCP"}]));
    assert_eq!(
        value["endpoints"],
        json!([{
            "addresses": ["127.64.0.1"],
            "conditions": {"ready": true, "serving": true, "terminating": false},
            "nodeName": "n",
            "targetRef": {"kind": "Pod", "namespace": "default", "name": "a", "uid": "a"},
        }])
    );
}

#[test]
fn readiness_termination_and_phase_decide_what_an_endpoint_says() {
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    for (reason, phase, ready, terminating, publish, want) in [
        ("ready", "Running", true, false, false, Some((true, true, false))),
        ("not ready", "Running", false, false, false, Some((false, false, false))),
        ("not ready but published", "Running", false, false, true, Some((true, false, false))),
        ("going", "Running", true, true, false, Some((false, true, true))),
        ("going but published", "Running", true, true, true, Some((true, true, true))),
        ("done", "Succeeded", false, false, false, None),
        ("failed", "Failed", false, false, true, None),
    ] {
        let service =
            service(json!({"publishNotReadyAddresses": publish, "ports": [{"port": 80}]}));
        let mut value = pod("a", "127.64.0.1", ready);
        value["status"]["phase"] = json!(phase);
        if terminating {
            value["metadata"]["deletionTimestamp"] = deleted["deletionTimestamp"].clone();
        }
        let slices = settled(&service, &pods([value]), vec![]);
        let found = slices[0].endpoints.first().map(|endpoint| {
            let conditions = endpoint.conditions.clone().unwrap();
            let all = [conditions.ready, conditions.serving, conditions.terminating];
            let [ready, serving, terminating] = all.map(Option::unwrap);
            (ready, serving, terminating)
        });
        assert_eq!(found, want, "{reason}");
    }
}

#[test]
fn a_pod_without_an_address_is_nobody_and_an_empty_slice_says_so() {
    let mut unplaced = pod("a", "", false);
    unplaced["status"] = json!({"phase": "Pending"});
    let service = service(json!({"ports": [{"port": 80}]}));
    let slices = settled(&service, &pods([unplaced]), vec![]);
    assert_eq!(slices.len(), 1);
    assert!(slices[0].endpoints.is_empty());
    // Once there is somebody, that slice has no use.
    let slices = settled(&service, &pods([pod("a", "127.64.0.1", true)]), slices);
    assert_eq!(slices.len(), 1);
    assert_eq!(addresses(&slices[0]), ["127.64.0.1"]);
    let slices = settled(&service, &pods([]), slices);
    assert_eq!(slices.len(), 1);
    assert!(slices[0].endpoints.is_empty());
}

#[test]
fn a_slice_whose_ports_are_not_wanted_any_more_becomes_the_next() {
    let service = service(json!({"ports": [{"port": 80, "targetPort": "http"}]}));
    let placeholder = settled(&service, &[], vec![]);
    let slices = settled(&service, &pods([pod("a", "127.64.0.1", true)]), placeholder.clone());
    let [slice] = &slices[..] else { panic!("{slices:?}") };
    assert_eq!(slice.metadata.name, placeholder[0].metadata.name);
    assert_eq!(slice.ports.as_ref().unwrap()[0].port, Some(8000));
    let mut moved = pod("a", "127.64.0.1", true);
    moved["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(9000);
    let moved = settled(&service, &pods([moved]), slices);
    assert_eq!(moved.len(), 1);
    assert_eq!(moved[0].metadata.name, placeholder[0].metadata.name);
    assert_eq!(moved[0].ports.as_ref().unwrap()[0].port, Some(9000));
}

#[test]
fn named_ports_with_different_numbers_need_a_slice_each() {
    let mut other = pod("b", "127.64.0.2", true);
    other["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(9000);
    let mut without = pod("c", "127.64.0.3", true);
    without["spec"]["containers"][0]["ports"] = json!([]);
    let service = service(json!({"ports": [{"port": 80, "targetPort": "http"}]}));
    let slices = settled(&service, &pods([pod("a", "127.64.0.1", true), other, without]), vec![]);
    let mut found: Vec<_> = slices
        .iter()
        .map(|slice| {
            let ports = slice.ports.as_deref().unwrap_or_default();
            (ports.iter().map(|port| port.port.unwrap()).collect(), addresses(slice))
        })
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            (vec![], vec!["127.64.0.3"]),
            (vec![8000], vec!["127.64.0.1"]),
            (vec![9000], vec!["127.64.0.2"]),
        ]
    );
}

#[test]
fn a_sidecar_may_hold_the_port_and_another_protocol_does_not() {
    let mut value = pod("a", "127.64.0.1", true);
    value["spec"]["containers"][0]["ports"] =
        json!([{"name": "http", "containerPort": 1, "protocol": "UDP"}]);
    value["spec"]["initContainers"] = json!([
        {"name": "once", "ports": [{"name": "http", "containerPort": 2}]},
        {"name": "side", "restartPolicy": "Always",
            "ports": [{"name": "http", "containerPort": 3}]},
    ]);
    let service = service(json!({"ports": [{"port": 80, "targetPort": "http"}]}));
    let slices = settled(&service, &pods([value]), vec![]);
    assert_eq!(slices[0].ports.as_ref().unwrap()[0].port, Some(3));
}

#[test]
fn a_headless_service_is_marked_and_may_have_no_ports() {
    let service = service(json!({"clusterIP": "None"}));
    let slices = settled(&service, &pods([pod("a", "127.64.0.1", true)]), vec![]);
    let labels = slices[0].metadata.labels.clone().unwrap();
    assert_eq!(labels.get("service.kubernetes.io/headless").map(String::as_str), Some(""));
    assert_eq!(slices[0].ports, Some(vec![]));
    assert_eq!(addresses(&slices[0]), ["127.64.0.1"]);
    let mirrored = mirror::endpoints(&service, &pods([pod("a", "127.64.0.1", true)]), None);
    assert_eq!(mirrored.unwrap().subsets.unwrap().len(), 1);
}

#[test]
fn a_full_slice_is_followed_by_another_and_one_change_writes_one_slice() {
    let service = service(json!({"ports": [{"port": 80}]}));
    let ip = |index: usize| format!("127.64.{}.{}", index / 250, index % 250);
    let many = |range: std::ops::Range<usize>| {
        pods(range.map(|index| pod(&format!("p{index}"), &ip(index), true)))
    };
    let slices = settled(&service, &many(0..LIMIT + 2), vec![]);
    let sizes: Vec<_> = slices.iter().map(|slice| slice.endpoints.len()).collect();
    assert_eq!(sizes, [LIMIT, 2]);
    // One leaves the first, one joins: only the first is written.
    let changes = changes(&service, &many(1..LIMIT + 3), &slices);
    assert!(matches!(&changes[..], [Change::Update(_)]), "{}", changes.len());
    // What is left fits into the second.
    let slices = settled(&service, &many(LIMIT..LIMIT + 2), slices);
    assert_eq!(slices.len(), 1);
}

#[test]
fn slices_of_an_earlier_service_and_of_another_family_go_and_those_of_others_stay() {
    let service = service(json!({"ports": [{"port": 80}]}));
    let current = pods([pod("a", "127.64.0.1", true)]);
    let mut old = settled(&service, &current, vec![]);
    old[0].metadata.name = Some("old".into());
    old[0].metadata.owner_references.as_mut().unwrap()[0].uid = "s0".into();
    let mut foreign = old[0].clone();
    foreign.metadata.name = Some("foreign".into());
    foreign.metadata.labels.as_mut().unwrap().remove("endpointslice.kubernetes.io/managed-by");
    let mut other = old[0].clone();
    other.metadata.name = Some("other".into());
    other.address_type = "IPv6".into();
    old.extend([foreign, other]);
    let slices = settled(&service, &current, old);
    let names: Vec<_> = slices.iter().map(|s| s.metadata.name.clone().unwrap()).collect();
    assert_eq!(names, ["foreign", "web-3"]);
}

#[test]
fn labels_follow_the_service() {
    let mut service = service(json!({"ports": [{"port": 80}]}));
    let slices = settled(&service, &[], vec![]);
    service.metadata.labels = Some([("team".into(), "y".into())].into());
    let slices = settled(&service, &[], slices);
    assert_eq!(slices[0].metadata.labels.as_ref().unwrap()["team"], "y");
}

#[test]
fn a_service_with_two_families_has_slices_of_both() {
    let service = service(json!({"ports": [{"port": 80}], "ipFamilies": ["IPv6", "IPv4", "IPv4"]}));
    let mut value = pod("a", "127.64.0.1", true);
    value["status"]["podIPs"] = json!([{"ip": "127.64.0.1"}, {"ip": "::2"}]);
    let slices = settled(&service, &pods([value]), vec![]);
    let kinds: Vec<_> = slices.iter().map(|s| (&*s.address_type, addresses(s))).collect();
    assert_eq!(kinds, [("IPv4", vec!["127.64.0.1"]), ("IPv6", vec!["::2"])]);
}

#[test]
fn only_services_with_a_selector_are_looked_after() {
    for (spec, want) in [
        (json!({"selector": {"app": "a"}}), true),
        (json!({"selector": {}}), false),
        (json!({}), false),
        (json!({"selector": {"app": "a"}, "type": "ExternalName"}), false),
    ] {
        let service: Service = serde_json::from_value(json!({"spec": spec})).unwrap();
        assert_eq!(wanted::selector(&service).is_some(), want, "{spec}");
    }
}

#[test]
fn endpoints_hold_the_ready_apart_from_the_others() {
    let service = service(json!({"ports": [{"port": 80, "targetPort": "http"}]}));
    let mut going = pod("c", "127.64.0.3", true);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let current = pods([pod("b", "127.64.0.2", true), pod("a", "127.64.0.1", false), going]);
    let made: Endpoints = mirror::endpoints(&service, &current, None).unwrap();
    let value = serde_json::to_value(&made).unwrap();
    assert_eq!(value["metadata"]["name"], "web");
    let subset = &value["subsets"][0];
    assert_eq!(subset["addresses"][0]["ip"], "127.64.0.2");
    assert_eq!(subset["notReadyAddresses"][0]["ip"], "127.64.0.1");
    assert_eq!(subset["ports"], json!([{"port": 8000, "protocol": "TCP"}]));
    assert_eq!(value["subsets"].as_array().unwrap().len(), 1);
    assert_eq!(mirror::endpoints(&service, &current, Some(&made)), None);
    let emptied = mirror::endpoints(&service, &[], Some(&made)).unwrap();
    assert_eq!(emptied.subsets, None);
}
