use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_cel::{ErrorKind, Validator};
use serde_json::{Value, json};

use super::*;

fn base() -> Value {
    json!({
        "apiVersion": "serving.zerfoo.com/v1alpha1",
        "kind": "ZerfooInferenceService",
        "metadata": { "name": "my-llama", "namespace": "default" },
        "spec": {
            "modelRef": "llama3-8b-q4",
            "replicas": 2,
            "resources": { "cpu": "4", "memory": "16Gi", "gpuMemory": "24Gi" },
            "healthCheck": { "path": "/healthz", "interval": "10s", "timeout": "5s" },
        },
    })
}

/// The base with `change` merged into it.
fn with(change: Value) -> Value {
    fn merge(target: &mut Value, change: Value) {
        match (target, change) {
            (Value::Object(target), Value::Object(change)) => {
                for (key, value) in change {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
            (target, change) => *target = change,
        }
    }
    let mut object = base();
    merge(&mut object, change);
    object
}

fn schema(crd: &CustomResourceDefinition) -> Value {
    let version = &crd.spec.versions[0];
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    serde_json::to_value(schema.unwrap()).unwrap()
}

/// The texts of all rules that the object breaks.
fn broken_rules(object: &Value) -> Vec<String> {
    let schema = schema(&crd());
    let schema = schema::for_kube_cel(schema);
    let Err(errors) = Validator::new().validate(&schema, object, None) else { return vec![] };
    errors
        .into_iter()
        .filter(|error| !matches!(error.kind, ErrorKind::UnsupportedReference))
        .map(|error| error.message)
        .collect()
}

#[test]
fn s10_each_rule_of_the_schema_has_the_text_of_the_reconciler() {
    for (change, want) in [
        (json!({ "spec": { "modelRef": "" } }), "modelRef is required"),
        (json!({ "spec": { "replicas": 0 } }), "replicas must be >= 1"),
        (json!({ "spec": { "replicas": -1 } }), "replicas must be >= 1"),
        (
            json!({ "spec": { "minReplicas": 10, "maxReplicas": 5 } }),
            "minReplicas (10) must be <= maxReplicas (5)",
        ),
        (
            json!({ "spec": { "canary": { "modelRef": "", "weight": 20 } } }),
            "canary modelRef is required",
        ),
        (
            json!({ "spec": { "canary": { "modelRef": "b", "weight": 101 } } }),
            "canary weight must be 0-100, got 101",
        ),
        (
            json!({ "spec": { "canary": { "modelRef": "b", "weight": -1 } } }),
            "canary weight must be 0-100, got -1",
        ),
        (json!({ "spec": { "healthCheck": { "path": "" } } }), "healthCheck path is required"),
        (
            json!({ "spec": { "healthCheck": { "path": "ready" } } }),
            "healthCheck path must start with /",
        ),
        (
            json!({ "spec": { "resources": { "cpu": "four" } } }),
            "resources cpu must be a positive quantity or empty",
        ),
        (
            json!({ "spec": { "resources": { "memory": "-1Gi" } } }),
            "resources memory must be a positive quantity or empty",
        ),
        (
            json!({ "spec": { "resources": { "gpuMemory": "0" } } }),
            "resources gpuMemory must be a positive quantity or empty",
        ),
        (
            json!({ "spec": { "auth": {} } }),
            "auth needs either apiKeySecretRef or allowNoAuth: true",
        ),
        (
            json!({ "spec": { "cache": { "emptyDir": {}, "hostPath": { "path": "/m" } } } }),
            "cache may use only one of emptyDir, persistentVolumeClaim and hostPath",
        ),
    ] {
        assert_eq!(broken_rules(&with(change.clone())), [want], "{change}");
    }
}

#[test]
fn s10_durations_carry_their_rules() {
    let schema = schema(&crd());
    for (field, what) in [
        ("/properties/healthCheck/properties/interval", "healthCheck interval"),
        ("/properties/healthCheck/properties/timeout", "healthCheck timeout"),
        ("/properties/startupTimeout", "startupTimeout"),
    ] {
        let rules = schema.pointer(&format!("/properties/spec{field}/x-kubernetes-validations"));
        let texts: Vec<_> =
            rules.unwrap().as_array().unwrap().iter().map(|rule| &rule["message"]).collect();
        let malformed = format!("{what} must be a duration such as 10s or 1m30s");
        assert_eq!(texts, [&json!(malformed), &json!(format!("{what} must be > 0"))], "{field}");
    }
}

#[test]
fn s11_valid_manifests_break_no_rule() {
    for change in [
        json!({}),
        json!({ "spec": { "canary": { "modelRef": "b", "weight": 50 } } }),
        json!({ "spec": { "minReplicas": 2, "maxReplicas": 10 } }),
        json!({ "spec": { "minReplicas": 3, "maxReplicas": 0 } }),
        json!({ "spec": { "minReplicas": 3 } }),
        json!({ "spec": { "resources": { "cpu": "", "memory": "", "gpuMemory": "" } } }),
        json!({ "spec": { "modelRef": "org/some.model_x-1" } }),
        json!({ "spec": { "auth": { "allowNoAuth": true } } }),
    ] {
        assert_eq!(broken_rules(&with(change.clone())), [""; 0], "{change}");
    }
}

#[test]
fn k15_flags_escaping_paths_and_long_names_are_rejected() {
    let pattern = "modelRef must match ^[A-Za-z0-9][A-Za-z0-9._/-]*$";
    let name = "metadata.name must be a DNS-1035 label of at most 55 characters";
    let long = "a".repeat(56);
    for (change, want) in [
        (json!({ "spec": { "modelRef": "--port" } }), &[pattern][..]),
        (json!({ "spec": { "modelRef": "../x" } }), &[pattern, "modelRef must not contain .."]),
        (json!({ "spec": { "modelRef": "a/../x" } }), &["modelRef must not contain .."]),
        (json!({ "metadata": { "name": long } }), &[name]),
        (json!({ "metadata": { "name": "1st" } }), &[name]),
        (json!({ "metadata": { "name": "a.b" } }), &[name]),
    ] {
        assert_eq!(broken_rules(&with(change.clone())), want, "{change}");
    }
    assert!(broken_rules(&with(json!({ "metadata": { "name": "a".repeat(55) } }))).is_empty());
}

#[test]
fn a_model_alone_is_a_whole_spec() {
    let spec: ZerfooInferenceServiceSpec =
        serde_json::from_value(json!({ "modelRef": "llama-3-8b-q4" })).unwrap();
    assert_eq!((spec.replicas, spec.port), (1, 8080));
    assert_eq!(spec.health_check, HealthCheck::default());
    assert_eq!(spec.health_check.path, "/readyz");
    assert_eq!(spec.startup_timeout, GoDuration::from("30m"));
    // The API server fills in the same values, so a stored object reads the same.
    let schema = schema(&crd());
    let properties = &schema["properties"]["spec"]["properties"];
    assert_eq!(
        serde_json::to_value(&spec).unwrap(),
        json!({
            "modelRef": "llama-3-8b-q4",
            "replicas": properties["replicas"]["default"],
            "port": properties["port"]["default"],
            "healthCheck": properties["healthCheck"]["default"],
            "startupTimeout": properties["startupTimeout"]["default"],
        })
    );
}

#[test]
fn an_object_that_breaks_every_rule_is_still_readable() {
    let spec: ZerfooInferenceServiceSpec = serde_json::from_value(json!({
        "replicas": -3,
        "canary": { "weight": 400 },
        "healthCheck": { "path": "", "interval": "soon", "timeout": -1 },
        "resources": { "cpu": "lots" },
    }))
    .unwrap();
    assert_eq!(spec.model_ref, "");
    assert_eq!(spec.canary.unwrap().model_ref, "");
}

#[test]
fn the_definition_is_what_kubectl_shows() {
    let crd = crd();
    let version = &crd.spec.versions[0];
    let columns: Vec<_> = version
        .additional_printer_columns
        .iter()
        .flatten()
        .map(|column| (column.name.as_str(), column.json_path.as_str()))
        .collect();
    assert_eq!(
        columns,
        [
            ("Model", ".spec.modelRef"),
            ("Ready", ".status.ready"),
            ("Replicas", ".status.replicas"),
            ("Canary weight", ".status.canary.effectiveWeight"),
            ("Age", ".metadata.creationTimestamp"),
        ]
    );
    let scale = version.subresources.as_ref().and_then(|sub| sub.scale.as_ref()).unwrap();
    assert_eq!(scale.spec_replicas_path, ".spec.replicas");
    assert_eq!(scale.status_replicas_path, ".status.primary.replicas");
    assert_eq!(scale.label_selector_path.as_deref(), Some(".status.selector"));
    assert_eq!(crd.spec.names.short_names, Some(vec!["zis".to_owned()]));
}

#[test]
fn lists_that_are_applied_in_parts_are_keyed_and_nothing_is_nullable() {
    let schema = schema(&crd());
    let conditions = &schema["properties"]["status"]["properties"]["conditions"];
    assert_eq!(conditions["x-kubernetes-list-type"], "map");
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
    let env = &schema["properties"]["spec"]["properties"]["env"];
    assert_eq!(env["x-kubernetes-list-map-keys"], json!(["name"]));
    assert!(!schema.to_string().contains("\"nullable\""));
}
