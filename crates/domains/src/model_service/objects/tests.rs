//! The golden cases of the children, in the words of the API.

mod picker;
mod pods;
mod traffic;

use serde_json::{Value, json};

use crate::model_service::fixture::{base, body, fresh, has, service_with, written};

/// The strings of a list.
fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

#[test]
fn s01_the_base_becomes_these_objects() {
    assert_eq!(
        written(&fresh(&base())),
        [
            "ServiceAccount qwen3-32b-epp",
            "Role qwen3-32b-epp",
            "RoleBinding qwen3-32b-epp",
            "ConfigMap qwen3-32b-epp-config",
            "Deployment qwen3-32b-decode",
            "Deployment qwen3-32b-epp",
            "InferencePool qwen3-32b",
            "Service qwen3-32b-epp",
            "HTTPRoute qwen3-32b",
            "PodMonitor qwen3-32b-decode",
            "DestinationRule qwen3-32b-epp",
        ]
    );
}

#[test]
fn s01_all_children_carry_the_labels_of_their_part() {
    let plan = fresh(&base());
    for (kind, name, component) in [
        ("Deployment", "qwen3-32b-decode", "model-decode"),
        ("PodMonitor", "qwen3-32b-decode", "model-decode"),
        ("InferencePool", "qwen3-32b", "epp"),
        ("HTTPRoute", "qwen3-32b", "epp"),
        ("Service", "qwen3-32b-epp", "epp"),
        ("ConfigMap", "qwen3-32b-epp-config", "epp"),
    ] {
        let labels = &body(&plan, kind, name)["metadata"]["labels"];
        let app = name.trim_end_matches("-decode").trim_end_matches("-config");
        assert_eq!(
            labels,
            &json!({
                "app.kubernetes.io/name": app,
                "app.kubernetes.io/component": component,
                "app.kubernetes.io/part-of": "otterscale-system",
                "app.kubernetes.io/managed-by": "model-operator",
                "app.kubernetes.io/version": "test",
            }),
            "{kind} {name}"
        );
    }
}

#[test]
fn s04_prefill_adds_its_own_objects_and_another_configuration() {
    let service = service_with(json!({ "routingProxy": {}, "prefill": { "replicas": 1 } }));
    let plan = fresh(&service);
    assert!(has(&plan, "Deployment", "qwen3-32b-prefill"));
    assert!(has(&plan, "PodMonitor", "qwen3-32b-prefill"));
    let data = &body(&plan, "ConfigMap", "qwen3-32b-epp-config")["data"];
    let keys: Vec<_> = data.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["pd-config.yaml"]);
    let picker = &body(&plan, "Deployment", "qwen3-32b-epp")["spec"]["template"];
    assert_eq!(
        picker["metadata"]["annotations"]["checksum/config"],
        "da2206ceec8c17d0eef3714ea7387e412c7b565661113eef5c0d0fd2b083eb23"
    );
    let args = &picker["spec"]["containers"][0]["args"];
    assert!(texts(args).contains(&"--config-file=/config/pd-config.yaml"));
}
