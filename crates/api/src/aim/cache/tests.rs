use serde_json::json;

use super::*;
use crate::aim::tests::{broken_rules, demands, immutable};

#[test]
fn each_field_has_the_demands_of_the_contract() {
    let status = json!({
        "type": "string",
        "default": "Pending",
        "enum": ["Pending", "Progressing", "Available", "Failed"],
    });
    let text = json!({ "type": "string" });
    let crd = template_cache_crd();
    for (pointer, want) in [
        ("/spec/templateRef", json!({ "type": "string", "minLength": 1 })),
        ("/spec/storageClassName", text.clone()),
        ("/status/status", status.clone()),
        ("/status/resolvedTemplateKind", text.clone()),
    ] {
        assert_eq!(demands(&crd, pointer), want, "{pointer}");
    }
    let crd = model_cache_crd();
    for (pointer, want) in [
        (
            "/spec/sourceUri",
            json!({
                "type": "string",
                "minLength": 1,
                "pattern": r"^(hf|s3)://[^ \t\r\n]+$",
                "x-kubernetes-validations": immutable("sourceUri is immutable"),
            }),
        ),
        ("/spec/storageClassName", text.clone()),
        ("/status/status", status),
        ("/status/lastUsed", json!({ "type": "string", "format": "date-time" })),
        ("/status/persistentVolumeClaim", text),
    ] {
        assert_eq!(demands(&crd, pointer), want, "{pointer}");
    }
    assert_eq!(demands(&crd, "/spec/size")["x-kubernetes-int-or-string"], true);
}

#[test]
fn the_source_of_a_model_does_not_change() {
    let cache = |uri: &str| json!({ "metadata": {}, "spec": { "sourceUri": uri, "size": "1Gi" } });
    let old = cache("hf://a/b");
    let broken = |new: &str| broken_rules(&model_cache_crd(), &cache(new), Some(&old));
    assert_eq!(broken("hf://a/b"), [""; 0]);
    assert_eq!(broken("hf://a/c"), ["sourceUri is immutable"]);
}

#[test]
fn both_kinds_are_written_as_they_were_read_and_readable_when_odd() {
    let full = json!({
        "apiVersion": "aim.silogen.ai/v1alpha1",
        "kind": "AIMTemplateCache",
        "metadata": { "name": "a" },
        "spec": {
            "templateRef": "t",
            "env": [{ "name": "A", "value": "1" }],
            "imagePullSecrets": [{ "name": "s" }],
            "storageClassName": "fast",
            "runtimeConfigName": "default",
        },
        "status": { "status": "Pending", "resolvedTemplateKind": "AIMServiceTemplate" },
    });
    let read: AimTemplateCache = serde_json::from_value(full.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), full);
    let full = json!({
        "apiVersion": "aim.silogen.ai/v1alpha1",
        "kind": "ModelCache",
        "metadata": { "name": "a" },
        "spec": { "sourceUri": "s3://a/b", "size": "10Gi", "storageClassName": "fast" },
        "status": {
            "status": "Available",
            "lastUsed": "2026-01-01T00:00:00Z",
            "persistentVolumeClaim": "a-cache",
        },
    });
    let read: ModelCache = serde_json::from_value(full.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), full);

    let odd = json!({ "metadata": {}, "spec": { "size": 7 }, "status": { "status": "Lost" } });
    let read: ModelCache = serde_json::from_value(odd).unwrap();
    assert_eq!((read.spec.source_uri.as_str(), read.spec.size.0.as_str()), ("", "7"));
    let bare = json!({ "metadata": {} });
    assert_eq!(serde_json::from_value::<ModelCache>(bare.clone()).unwrap(), ModelCache::default());
    assert_eq!(
        serde_json::from_value::<AimTemplateCache>(bare).unwrap(),
        AimTemplateCache::default()
    );
}
