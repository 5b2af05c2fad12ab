use serde_json::json;

use super::*;

fn problem(spec: Value) -> Option<String> {
    let definition = windlass_api::crds().remove(0);
    let object = json!({ "apiVersion": "x", "kind": "y", "metadata": {}, "spec": spec });
    check(&definition, &object).err()
}

#[test]
fn what_is_wrong_is_named_by_its_path() {
    for (spec, want) in [
        (json!({ "modelRef": "m", "replica": 1 }), "unknown field spec.replica; allowed: "),
        (json!({ "modelRef": 1 }), "spec.modelRef must be a text, got 1"),
        (json!({ "modelRef": "m", "replicas": "2" }), "spec.replicas must be a whole number"),
        (json!({ "modelRef": "m", "canary": { "wait": 1 } }), "unknown field spec.canary.wait"),
        (json!({ "modelRef": "m", "env": {} }), "spec.env must be a list"),
        (json!([]), "spec must be a map of fields"),
    ] {
        let got = problem(spec.clone()).unwrap_or_default();
        assert!(got.starts_with(want), "{spec}: {got}");
    }
}

#[test]
fn a_right_object_passes() {
    assert_eq!(problem(json!({ "modelRef": "m", "healthCheck": { "interval": 5 } })), None);
    assert_eq!(problem(json!({ "modelRef": "m", "healthCheck": { "interval": "5s" } })), None);
}

#[test]
fn an_object_without_a_spec_is_refused() {
    let definition = windlass_api::crds().remove(0);
    assert!(check(&definition, &json!({ "metadata": {} })).is_err());
}
