use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_cel::{ErrorKind, Validator};
use serde_json::{Value, json};

use super::*;

fn base() -> Value {
    json!({
        "apiVersion": "model.otterscale.io/v1alpha1",
        "kind": "ModelService",
        "metadata": { "name": "qwen3-32b", "namespace": "ml-serving" },
        "spec": {
            "model": {
                "name": "qwen/Qwen3-32B",
                "image": "registry.example.com/models/qwen3-32b:v1",
                "mountPath": "/models",
            },
            "engine": { "port": 8000 },
            "accelerator": { "type": "nvidia" },
            "decode": { "replicas": 2 },
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
    let Err(errors) = Validator::new().validate(&schema, object, None) else { return vec![] };
    errors
        .into_iter()
        .filter(|error| !matches!(error.kind, ErrorKind::UnsupportedReference))
        .map(|error| error.message)
        .collect()
}

const PREFILL: &str = "prefill needs routingProxy, which hands prompts over to the prefill pods";
const TARGET_PORT: &str =
    "routingProxy targetPort must differ from engine port, which the proxy itself uses";
const EPP_PORT: &str = "inferencePool endpointPicker port must not be 9003 or 9090, which the \
                        endpoint picker uses for health and metrics";
const NAME: &str = "metadata.name must have at most 59 characters, or 57 if it begins with a digit";

#[test]
fn m16_what_never_worked_is_refused_in_the_words_of_the_reconciler() {
    let picker = |port: i32| json!({ "inferencePool": { "endpointPicker": { "port": port } } });
    for (spec, want) in [
        (json!({ "prefill": { "replicas": 1 } }), PREFILL),
        (json!({ "routingProxy": { "targetPort": 8000 } }), TARGET_PORT),
        (
            json!({ "engine": { "port": 8200 }, "routingProxy": { "targetPort": 8200 } }),
            TARGET_PORT,
        ),
        (picker(9003), EPP_PORT),
        (picker(9090), EPP_PORT),
    ] {
        assert_eq!(broken_rules(&with(json!({ "spec": spec }))), [want], "{spec}");
    }
}

#[test]
fn m16_names_leave_room_for_the_endpoint_picker() {
    for (name, valid) in [
        ("a".repeat(59), true),
        ("a".repeat(60), false),
        ("1".repeat(57), true),
        ("1".repeat(58), false),
        (format!("a--{}", "b".repeat(60)), true),
        (format!("a--{}", "b".repeat(61)), false),
        ("qwen3-0.6b".to_owned(), true),
    ] {
        let broken = broken_rules(&with(json!({ "metadata": { "name": name } })));
        assert_eq!(broken, if valid { vec![] } else { vec![NAME.to_owned()] }, "{name}");
    }
}

#[test]
fn manifests_that_worked_break_no_rule() {
    for spec in [
        json!({}),
        json!({ "routingProxy": {} }),
        json!({ "routingProxy": { "targetPort": 8200 }, "prefill": {} }),
        json!({ "inferencePool": { "endpointPicker": {} } }),
        json!({ "inferencePool": { "endpointPicker": { "port": 9999, "replicas": 3 } } }),
        json!({ "httpRoute": { "gatewayRef": { "name": "gw" } } }),
        json!({ "monitoring": { "podMonitor": {} } }),
    ] {
        assert_eq!(broken_rules(&with(json!({ "spec": spec }))), [""; 0], "{spec}");
    }
}

#[test]
fn the_least_spec_has_the_defaults_of_the_schema() {
    let spec: ModelServiceSpec = serde_json::from_value(json!({
        "model": { "name": "m", "image": "r/m:1" },
        "engine": {},
        "accelerator": { "type": "intel-gaudi" },
        "decode": {},
        "routingProxy": {},
        "inferencePool": { "endpointPicker": {} },
        "monitoring": { "podMonitor": {} },
    }))
    .unwrap();
    assert_eq!(spec.engine, Engine::default());
    assert_eq!(spec.decode, Role::default());
    assert_eq!(spec.accelerator.type_, AcceleratorType::IntelGaudi);
    // The API server fills in the same values, so a stored object reads the same.
    let schema = schema(&crd());
    let default = |path: &str| {
        let path = path.replace('/', "/properties/");
        schema.pointer(&format!("/properties/spec{path}/default")).cloned().unwrap()
    };
    let written = serde_json::to_value(&spec).unwrap();
    for path in [
        "/model/mountPath",
        "/engine/port",
        "/decode/replicas",
        "/routingProxy/connector",
        "/routingProxy/targetPort",
        "/inferencePool/endpointPicker/replicas",
        "/inferencePool/endpointPicker/port",
        "/inferencePool/endpointPicker/failureMode",
        "/monitoring/podMonitor/enabled",
        "/monitoring/podMonitor/portName",
        "/monitoring/podMonitor/path",
        "/monitoring/podMonitor/interval",
    ] {
        assert_eq!(written.pointer(path), Some(&default(path)), "{path}");
    }
    let sizes = Parallelism { tensor: 1, data: 1, data_local: 1 };
    assert_eq!(serde_json::from_value::<Parallelism>(json!({})).unwrap(), sizes);
}

#[test]
fn required_fields_and_ranges_are_as_they_have_always_been() {
    let schema = schema(&crd());
    let spec = &schema["properties"]["spec"];
    assert_eq!(spec["required"], json!(["accelerator", "decode", "engine", "model"]));
    assert_eq!(schema["required"], json!(["spec"]));
    let at = |path: &str| schema.pointer(&format!("/properties/spec/properties{path}")).unwrap();
    assert_eq!(at("/model")["required"], json!(["image", "name"]));
    assert_eq!(at("/model/properties/name")["maxLength"], 253);
    assert_eq!(at("/engine/properties/port")["maximum"], 65535.0);
    assert_eq!(at("/inferencePool")["required"], json!(["endpointPicker"]));
    assert_eq!(at("/httpRoute")["required"], json!(["gatewayRef"]));
    assert_eq!(
        at("/accelerator/properties/type")["enum"],
        json!(["nvidia", "amd", "intel-gaudi", "google", "cpu"])
    );
    let modes = &at("/inferencePool/properties/endpointPicker/properties/failureMode")["enum"];
    assert_eq!(modes, &json!(["FailOpen", "FailClose"]));
    assert_eq!(at("/decode/properties/parallelism/properties/dataLocal")["minimum"], 1.0);
    // Amounts may be written as numbers.
    let limits = at("/decode/properties/resources/properties/limits");
    assert_eq!(limits["additionalProperties"]["x-kubernetes-int-or-string"], true);
}

#[test]
fn the_definition_is_what_kubectl_shows() {
    let crd = crd();
    assert_eq!(crd.metadata.name.as_deref(), Some("modelservices.model.otterscale.io"));
    assert_eq!(crd.spec.names.categories, Some(vec!["otterscale".to_owned()]));
    assert_eq!(crd.spec.names.short_names.clone().unwrap_or_default(), [""; 0]);
    let version = &crd.spec.versions[0];
    let columns: Vec<_> = version
        .additional_printer_columns
        .iter()
        .flatten()
        .map(|column| (column.name.as_str(), column.json_path.as_str(), column.priority))
        .collect();
    assert_eq!(
        columns,
        [
            ("Phase", ".status.phase", None),
            ("Ready", ".status.conditions[?(@.type==\"Ready\")].status", None),
            ("Model", ".spec.model.name", None),
            ("Decode", ".status.decodeReady", Some(1)),
            ("Prefill", ".status.prefillReady", Some(1)),
            ("Age", ".metadata.creationTimestamp", None),
        ]
    );
    let subresources = version.subresources.as_ref().unwrap();
    assert!(subresources.status.is_some() && subresources.scale.is_none());
}

#[test]
fn conditions_are_keyed_and_nothing_is_nullable() {
    let schema = schema(&crd());
    let conditions = &schema["properties"]["status"]["properties"]["conditions"];
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
    assert!(!schema.to_string().contains("\"nullable\""));
}

#[test]
fn the_definition_is_small_enough_for_kubectl_and_describes_our_own_fields() {
    let text = serde_json::to_string(&crd()).unwrap();
    assert!(text.len() < 200_000, "{}", text.len());
    let schema = schema(&crd());
    let at = |path: &str| schema.pointer(&format!("/properties/spec/properties{path}")).unwrap();
    assert!(at("/decode/properties/probes/properties/disabled")["description"].is_string());
    let picker = at("/inferencePool/properties/endpointPicker/properties/failureMode");
    assert!(picker["description"].is_string());
    let affinity = at("/decode/properties/affinity/properties/nodeAffinity/properties");
    assert!(!affinity.to_string().contains("description"));
}
