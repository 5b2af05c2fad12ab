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
