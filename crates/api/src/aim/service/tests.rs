use serde_json::{Value, json};

use super::*;
use crate::aim::tests::{broken_rules, demands, field, immutable};

fn service(spec: &Value) -> Value {
    json!({
        "apiVersion": "aim.silogen.ai/v1alpha1",
        "kind": "AIMService",
        "metadata": { "name": "chat", "namespace": "research" },
        "spec": spec,
    })
}

#[test]
fn each_field_has_the_demands_and_defaults_of_the_contract() {
    let crd = crd();
    for (pointer, want) in [
        ("/spec/aimImageName", json!({ "type": "string", "minLength": 1 })),
        ("/spec/templateRef", json!({ "type": "string" })),
        ("/spec/cacheModel", json!({ "type": "boolean", "default": false })),
        ("/spec/replicas", json!({ "type": "integer", "format": "int32", "default": 1 })),
        ("/spec/resources", json!({ "type": "object" })),
        ("/spec/overrides", json!({ "type": "object" })),
        ("/spec/routing", json!({ "type": "object" })),
        ("/spec/routing/enabled", json!({ "type": "boolean", "default": false })),
        ("/spec/routing/routeTemplate", json!({ "type": "string" })),
        (
            "/status/status",
            json!({
                "type": "string",
                "default": "Pending",
                "enum": ["Pending", "Starting", "Running", "Failed", "Degraded"],
            }),
        ),
        ("/status/routing/path", json!({ "type": "string" })),
    ] {
        assert_eq!(demands(&crd, pointer), want, "{pointer}");
    }
    let annotations = field(&crd, "/spec/routing/annotations");
    assert_eq!(annotations["additionalProperties"], json!({ "type": "string" }));
    for (name, message) in [
        ("metric", "metric is immutable"),
        ("precision", "precision is immutable"),
        ("gpuSelector", "gpuSelector is immutable"),
    ] {
        let rules = &field(&crd, &format!("/spec/overrides/{name}"))["x-kubernetes-validations"];
        assert_eq!(rules, &immutable(message));
    }
}

#[test]
fn the_image_may_change_and_an_override_may_only_come_and_go() {
    let before = service(&json!({ "aimImageName": "a", "overrides": { "metric": "latency" } }));
    for (overrides, want) in [
        (json!({ "metric": "latency", "precision": "fp4" }), &[][..]),
        (json!({}), &[]),
        (json!({ "metric": "throughput" }), &["metric is immutable"]),
    ] {
        let after = service(&json!({ "aimImageName": "b", "overrides": overrides }));
        assert_eq!(broken_rules(&crd(), &after, Some(&before)), want, "{overrides}");
    }
}

#[test]
fn a_full_object_is_written_as_it_was_read() {
    let mut full = service(&json!({
        "aimImageName": "tiny-lm",
        "templateRef": "tiny-lm-latency",
        "cacheModel": true,
        "replicas": 2,
        "runtimeConfigName": "team",
        "resources": { "limits": { "amd.com/gpu": "1" } },
        "overrides": {
            "metric": "throughput",
            "precision": "fp16",
            "gpuSelector": { "count": 2, "model": "MI325X" },
        },
        "env": [{ "name": "A", "value": "1" }],
        "imagePullSecrets": [{ "name": "s1" }],
        "routing": {
            "enabled": true,
            "gatewayRef": {
                "group": "gateway.networking.k8s.io",
                "kind": "Gateway",
                "name": "edge",
                "namespace": "gateways",
                "port": 443,
                "sectionName": "https",
            },
            "annotations": { "a": "b" },
            "routeTemplate": "/{.metadata.name}",
        },
    }));
    full["status"] = json!({
        "observedGeneration": 3,
        "conditions": [{
            "type": "Ready",
            "status": "True",
            "reason": "RuntimeReady",
            "message": "AIMService is ready to serve traffic",
            "observedGeneration": 3,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
        "resolvedRuntimeConfig": {
            "name": "team",
            "namespace": "research",
            "scope": "Namespace",
            "kind": "AIMRuntimeConfig",
            "uid": "1",
        },
        "resolvedImage": { "name": "tiny-lm", "scope": "Cluster", "kind": "AIMClusterImage" },
        "resolvedTemplate": { "name": "tiny-lm-latency", "scope": "Unknown" },
        "status": "Running",
        "routing": { "path": "/chat" },
    });
    let read: AimService = serde_json::from_value(full.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), full);
}

#[test]
fn an_object_with_odd_values_or_none_is_still_readable() {
    let odd = json!({
        "metadata": { "name": "odd" },
        "spec": {
            "replicas": -3,
            "overrides": {
                "metric": "speed",
                "precision": "fp7",
                "gpuSelector": { "count": 0 },
            },
            "resources": { "requests": { "cpu": 4, "memory": "lots" } },
            "imagePullSecrets": [{}],
            "routing": { "gatewayRef": { "name": "", "port": 0 } },
            "former": { "field": true },
        },
        "status": { "status": "Paused", "resolvedTemplate": { "scope": "Galaxy" } },
    });
    let AimService { spec, status, .. } = serde_json::from_value(odd).unwrap();
    assert_eq!((spec.aim_image_name.as_str(), spec.replicas), ("", Some(-3)));
    assert_eq!(spec.overrides.unwrap().precision.as_deref(), Some("fp7"));
    assert!(!spec.routing.unwrap().enabled);
    assert_eq!(status.unwrap().status.as_deref(), Some("Paused"));

    for bare in [json!({ "metadata": {} }), json!({ "metadata": {}, "spec": null })] {
        let read: AimService = serde_json::from_value(bare).unwrap();
        assert_eq!(read, AimService::default());
    }
    let text = r#"{"metadata":{}}"#;
    assert_eq!(serde_json::from_str::<AimService>(text).unwrap(), AimService::default());
    let wrong = json!({ "metadata": {}, "spec": { "aimImageName": 7 } });
    assert!(serde_json::from_value::<AimService>(wrong).is_err());
}

#[test]
fn empty_overrides_are_not_absent_ones() {
    let given: AimServiceSpec = serde_json::from_value(json!({ "overrides": {} })).unwrap();
    assert_eq!(given.overrides, Some(RuntimeParameters::default()));
    assert_eq!(serde_json::to_value(&given).unwrap()["overrides"], json!({}));
}

#[test]
fn g12_overrides_are_written_in_the_order_that_names_are_made_of() {
    let overrides: RuntimeParameters = serde_json::from_value(json!({
        "gpuSelector": { "model": "MI325X", "count": 2 },
        "precision": "fp16",
        "metric": "throughput",
    }))
    .unwrap();
    assert_eq!(
        serde_json::to_string(&overrides).unwrap(),
        r#"{"metric":"throughput","precision":"fp16","gpuSelector":{"count":2,"model":"MI325X"}}"#
    );
}
