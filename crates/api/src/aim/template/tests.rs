use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, json};

use super::*;
use crate::aim::tests::{broken_rules, demands, field, immutable};

fn template(kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "aim.silogen.ai/v1alpha1",
        "kind": kind,
        "metadata": { "name": "tiny-lm-latency" },
        "spec": spec,
    })
}

#[test]
fn the_common_fields_have_the_demands_of_the_contract() {
    for crd in [crd(), cluster_crd()] {
        for (pointer, want) in [
            (
                "/spec/aimImageName",
                json!({
                    "type": "string",
                    "minLength": 1,
                    "x-kubernetes-validations": immutable("image name is immutable"),
                }),
            ),
            (
                "/spec/metric",
                json!({
                    "type": "string",
                    "enum": ["latency", "throughput"],
                    "x-kubernetes-validations": immutable("metric is immutable"),
                }),
            ),
            (
                "/spec/precision",
                json!({
                    "type": "string",
                    "enum": ["auto", "fp4", "fp8", "fp16", "fp32", "bf16", "int4", "int8"],
                    "x-kubernetes-validations": immutable("precision is immutable"),
                }),
            ),
            (
                "/spec/gpuSelector",
                json!({
                    "type": "object",
                    "required": ["count", "model"],
                    "x-kubernetes-validations": immutable("gpuSelector is immutable"),
                }),
            ),
            (
                "/spec/gpuSelector/count",
                json!({ "type": "integer", "format": "int32", "minimum": 1.0 }),
            ),
            ("/spec/gpuSelector/model", json!({ "type": "string", "minLength": 1 })),
            ("/spec/resources", json!({ "type": "object" })),
            (
                "/status/status",
                json!({
                    "type": "string",
                    "default": "Pending",
                    "enum": ["Pending", "Progressing", "Available", "Degraded", "Failed"],
                }),
            ),
            ("/status/modelSources", json!({ "type": "array" })),
            (
                "/status/profile/engine_args",
                json!({ "x-kubernetes-preserve-unknown-fields": true }),
            ),
            (
                "/status/profile/env_vars",
                json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            ),
            ("/status/profile/metadata/engine", json!({ "type": "string" })),
            ("/status/profile/metadata/gpu", json!({ "type": "string" })),
            ("/status/profile/metadata/gpu_count", json!({ "type": "integer", "format": "int32" })),
            // The image may say any word.
            ("/status/profile/metadata/metric", json!({ "type": "string" })),
            ("/status/profile/metadata/precision", json!({ "type": "string" })),
        ] {
            assert_eq!(demands(&crd, pointer), want, "{} {pointer}", crd.spec.names.kind);
        }
        let source = field(&crd, "/status/modelSources")["items"].take();
        assert_eq!(source["required"], json!(["size", "sourceUri"]));
        assert_eq!(source["properties"]["size"]["x-kubernetes-int-or-string"], true);
    }
}

#[test]
fn only_the_namespaced_kind_has_caching_environment_and_pull_secrets() {
    let members = |crd| {
        let spec = field(&crd, "/spec");
        let members = spec["properties"].as_object().unwrap().keys().cloned();
        members.collect::<Vec<_>>()
    };
    let common =
        ["aimImageName", "gpuSelector", "metric", "precision", "resources", "runtimeConfigName"];
    assert_eq!(members(cluster_crd()), common);
    let mut all = members(crd());
    all.retain(|name| !common.contains(&name.as_str()));
    assert_eq!(all, ["caching", "env", "imagePullSecrets"]);
    let enabled = json!({ "type": "boolean", "default": false });
    assert_eq!(demands(&crd(), "/spec/caching/enabled"), enabled);
    assert_eq!(demands(&crd(), "/spec/caching/env"), json!({ "type": "array" }));
}

#[test]
fn what_a_template_is_made_for_does_not_change() {
    let selector = |count: i32| json!({ "count": count, "model": "MI300X" });
    let before = template(
        "AIMServiceTemplate",
        &json!({ "aimImageName": "a", "metric": "latency", "gpuSelector": selector(1) }),
    );
    for crd in [crd(), cluster_crd()] {
        for (spec, want) in [
            (json!({ "aimImageName": "a" }), &[][..]),
            (json!({ "aimImageName": "a", "metric": "latency", "precision": "fp4" }), &[]),
            (json!({ "aimImageName": "a", "runtimeConfigName": "b" }), &[]),
            (json!({ "aimImageName": "b" }), &["image name is immutable"]),
            (json!({ "aimImageName": "a", "metric": "throughput" }), &["metric is immutable"]),
            (
                json!({ "aimImageName": "a", "gpuSelector": selector(2) }),
                &["gpuSelector is immutable"],
            ),
        ] {
            let after = template("AIMServiceTemplate", &spec);
            assert_eq!(broken_rules(&crd, &after, Some(&before)), want, "{spec}");
        }
    }
}

fn status() -> Value {
    json!({
        "observedGeneration": 1,
        "resolvedRuntimeConfig": { "name": "default", "scope": "Cluster" },
        "status": "Available",
        "modelSources": [{
            "name": "acme/tiny-lm-7b-fp8",
            "sourceUri": "hf://acme/tiny-lm-7b-fp8",
            "size": "13475459891",
        }],
        "profile": {
            "engine_args": { "tensor-parallel-size": 2, "nested": [null, { "a": 1.5 }] },
            "env_vars": { "VLLM_USE_V1": "1" },
            "metadata": {
                "engine": "vllm",
                "gpu": "MI300X",
                "gpu_count": 2,
                "metric": "latency",
                "precision": "fp8",
            },
        },
    })
}

#[test]
fn a_full_object_is_written_as_it_was_read() {
    let common = json!({
        "aimImageName": "tiny-lm",
        "metric": "latency",
        "precision": "fp8",
        "gpuSelector": { "count": 2, "model": "MI300X" },
        "runtimeConfigName": "default",
        "resources": { "requests": { "cpu": "4" } },
    });
    let mut cluster = template("AIMClusterServiceTemplate", &common);
    cluster["status"] = status();
    let read: AimClusterServiceTemplate = serde_json::from_value(cluster.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), cluster);

    let mut namespaced = template("AIMServiceTemplate", &common);
    namespaced["status"] = status();
    for (name, value) in [
        ("caching", json!({ "enabled": true, "env": [{ "name": "A" }, { "name": "A" }] })),
        ("env", json!([{ "name": "HF_TOKEN", "value": "t" }])),
        ("imagePullSecrets", json!([{ "name": "s1" }])),
    ] {
        namespaced["spec"][name] = value;
    }
    let read_too: AimServiceTemplate = serde_json::from_value(namespaced.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read_too).unwrap(), namespaced);
    assert_eq!(read_too.spec.common, read.spec.common);
}

#[test]
fn g14_a_small_spec_is_written_with_nothing_else() {
    let spec = AimServiceTemplateSpec {
        common: TemplateSpec {
            aim_image_name: "tiny-lm".to_owned(),
            runtime_config_name: Some(DEFAULT_RUNTIME_CONFIG.to_owned()),
            ..Default::default()
        },
        ..Default::default()
    };
    assert_eq!(
        serde_json::to_value(&spec).unwrap(),
        json!({ "aimImageName": "tiny-lm", "runtimeConfigName": "default" })
    );
}

#[test]
fn an_empty_profile_is_read() {
    for (profile, want) in [
        (json!({ "metadata": {} }), Some(ProfileMetadata::default())),
        (json!({ "metadata": {}, "engine_args": null }), Some(ProfileMetadata::default())),
        (json!({}), None),
    ] {
        let status: TemplateStatus = serde_json::from_value(json!({ "profile": profile })).unwrap();
        let want = Profile { metadata: want, ..Default::default() };
        assert_eq!(status.profile, Some(want), "{profile}");
    }
    assert_eq!(
        serde_json::from_value::<TemplateStatus>(json!({})).unwrap(),
        TemplateStatus::default()
    );
}

#[test]
fn an_object_with_odd_values_or_none_is_still_readable() {
    let odd = json!({
        "metadata": { "name": "odd" },
        "spec": {
            "metric": "speed",
            "gpuSelector": {},
            "runtimeConfigName": "",
            "resources": { "limits": { "amd.com/gpu": 2 } },
            "former": [1],
        },
        "status": {
            "status": "Paused",
            "modelSources": [{ "sourceUri": "", "size": 1024 }, {}],
            "profile": { "metadata": { "precision": "fp4", "gpu_count": -1 } },
        },
    });
    let read: AimClusterServiceTemplate = serde_json::from_value(odd.clone()).unwrap();
    let common = &read.spec.common;
    assert_eq!(
        (common.aim_image_name.as_str(), common.parameters.metric.as_deref()),
        ("", Some("speed"))
    );
    let limits = common.resources.as_ref().and_then(|resources| resources.limits.as_ref()).unwrap();
    assert_eq!(limits["amd.com/gpu"], Quantity("2".to_owned()));
    let status = read.status.unwrap();
    assert_eq!(status.model_sources[0].size, Quantity("1024".to_owned()));
    assert_eq!(status.model_sources[1], ModelSource::default());
    let namespaced: AimServiceTemplate = serde_json::from_value(odd).unwrap();
    assert_eq!(&namespaced.spec.common, common);

    let bare = json!({ "metadata": {} });
    let read: AimServiceTemplate = serde_json::from_value(bare.clone()).unwrap();
    assert_eq!(read, AimServiceTemplate::default());
    let read: AimClusterServiceTemplate = serde_json::from_value(bare).unwrap();
    assert_eq!(read, AimClusterServiceTemplate::default());
    let wrong = json!({ "metadata": {}, "spec": { "aimImageName": 7 } });
    assert!(serde_json::from_value::<AimClusterServiceTemplate>(wrong).is_err());
}
