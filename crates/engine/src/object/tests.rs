use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::json;

use super::*;

fn secret() -> Object {
    let value = json!({ "metadata": { "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7",
        "labels": { "l": "v" }, "managedFields": [{ "manager": "m" }] }, "data": { "password": "aGlkZGVu" } });
    Object::from_value(value).unwrap()
}

#[test]
fn the_content_is_never_printed() {
    assert!(!format!("{:?}", secret()).contains("aGlkZGVu"));
}

#[test]
fn metadata_is_taken_out_and_the_whole_is_kept() {
    let object = secret();
    assert_eq!(object.key.to_string(), "n/a");
    assert_eq!(object.labels["l"], "v");
    assert_eq!(object.value()["metadata"]["managedFields"][0]["manager"], "m");
    let typed: ConfigMap = object.parse().unwrap();
    assert_eq!(typed.metadata.name.as_deref(), Some("a"));
}

#[test]
fn an_object_of_the_wrong_form_is_an_error_and_no_panic() {
    let value = json!({ "metadata": { "name": "a" }, "spec": { "containers": "none" } });
    let object = Object::from_value(value).unwrap();
    let error = object.parse::<Pod>().unwrap_err();
    assert_eq!(error.to_string(), "cannot read a as Pod");
}

#[test]
fn a_pod_tells_its_deployment() {
    let pod = |kind: &str, set: &str, labels: serde_json::Value| {
        let owner = json!({ "apiVersion": "apps/v1", "kind": kind, "name": set, "uid": "u",
            "controller": true });
        let metadata = json!({ "name": "p", "labels": labels, "ownerReferences": [owner] });
        Object::from_value(json!({ "metadata": metadata })).unwrap()
    };
    let hash = || json!({ "pod-template-hash": "5d9" });
    for (pod, want) in [
        (pod("ReplicaSet", "a-epp-5d9", hash()), Some("a-epp")),
        (pod("ReplicaSet", "a-epp-5d9", json!({})), None),
        (pod("ReplicaSet", "a-epp-777", hash()), None),
        (pod("Job", "a-epp-5d9", hash()), None),
        (secret(), None),
    ] {
        assert_eq!(pod.deployment(), want);
    }
}
