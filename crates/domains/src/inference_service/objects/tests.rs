use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};
use windlass_api::serving::zerfoo_inference_service::Autoscaling;

use super::*;
use crate::inference_service::Settings;
use crate::inference_service::fixture::{base, names, service_with, wanted};
use crate::inference_service::gpu::Mapping;
use crate::inference_service::names::{Reach, Track};
use crate::inference_service::objects::deployment::Blueprint;
use crate::inference_service::validate::{Bounds, validate};

fn primary_as(change: Value, settings: &Settings) -> Value {
    let service = service_with(change);
    let wanted = validate(&service, settings).unwrap();
    let names = names();
    let blueprint = Blueprint { names: &names, spec: &service.spec, wanted: &wanted, settings };
    serde_json::to_value(deployment::primary(blueprint, Some(2))).unwrap()
}

fn primary(change: Value) -> Value {
    primary_as(change, &Settings::default())
}

fn pod(change: Value) -> Value {
    primary(change)["spec"]["template"]["spec"].take()
}

fn server(change: Value) -> Value {
    pod(change)["containers"][0].take()
}

#[test]
fn k01_the_base_becomes_this_deployment() {
    let labels = json!({
        "app": "my-llama",
        "app.kubernetes.io/component": "inference",
        "app.kubernetes.io/instance": "my-llama",
        "app.kubernetes.io/managed-by": "zerfoo-inference-service-controller",
        "app.kubernetes.io/name": "zerfoo",
        "serving.zerfoo.com/inference-service.name": "my-llama",
        "serving.zerfoo.com/track": "primary",
    });
    let amounts = json!({ "cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1" });
    let probe = |failures: i32| {
        json!({
            "httpGet": { "path": "/healthz", "port": "http" },
            "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": failures,
        })
    };
    let want = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "my-llama-primary",
            "namespace": "default",
            "labels": labels,
            "annotations": { "serving.zerfoo.com/model-ref": "llama3-8b-q4" },
        },
        "spec": {
            "replicas": 2,
            "selector": {
                "matchLabels": { "app": "my-llama", "serving.zerfoo.com/track": "primary" },
            },
            "progressDeadlineSeconds": 2400,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 1 },
            },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "automountServiceAccountToken": false,
                    "terminationGracePeriodSeconds": 60,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000,
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "containers": [{
                        "name": "zerfoo",
                        "image": "ghcr.io/zerfoo/zerfoo:0.1.0",
                        "args": [
                            "serve", "--port", "8080", "--cache-dir", "/models",
                            "--allow-no-auth", "llama3-8b-q4",
                        ],
                        "env": [{ "name": "HOME", "value": "/tmp" }],
                        "ports": [{ "name": "http", "containerPort": 8080 }],
                        "startupProbe": probe(180),
                        "readinessProbe": probe(3),
                        "livenessProbe": probe(6),
                        "resources": { "requests": amounts, "limits": amounts },
                        "securityContext": {
                            "readOnlyRootFilesystem": true,
                            "allowPrivilegeEscalation": false,
                            "capabilities": { "drop": ["ALL"] },
                        },
                        "volumeMounts": [
                            { "name": "models", "mountPath": "/models" },
                            { "name": "tmp", "mountPath": "/tmp" },
                        ],
                    }],
                    "volumes": [
                        { "name": "models", "emptyDir": {} },
                        { "name": "tmp", "emptyDir": {} },
                    ],
                    "affinity": { "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{ "matchExpressions": [{
                                "key": "nvidia.com/gpu.memory",
                                "operator": "Gt",
                                "values": ["22608"],
                            }] }],
                        },
                    } },
                    "tolerations": [
                        { "key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule" },
                    ],
                },
            },
        },
    });
    assert_eq!(primary(json!({})), want);
}

#[test]
fn k04_the_readiness_path_is_not_asked_for_life() {
    let server = server(json!({ "healthCheck": { "path": "/readyz" } }));
    for (probe, want) in
        [("startupProbe", "/readyz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")]
    {
        assert_eq!(server[probe]["httpGet"]["path"], want, "{probe}");
    }
}

#[test]
fn k05_without_device_memory_there_is_no_trace_of_devices() {
    let deployment = primary(json!({ "resources": { "gpuMemory": "" } }));
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod.get("affinity"), None);
    assert_eq!(pod.get("tolerations"), None);
    assert_eq!(
        pod["containers"][0]["resources"]["limits"],
        json!({ "cpu": "4", "memory": "16Gi" })
    );
    assert_eq!(
        deployment["spec"]["strategy"]["rollingUpdate"],
        json!({ "maxSurge": 1, "maxUnavailable": 0 })
    );
}

#[test]
fn empty_resources_are_left_out() {
    let nothing = json!({ "resources": { "cpu": "", "memory": "", "gpuMemory": "" } });
    assert_eq!(server(nothing).get("resources"), None);
}

#[test]
fn a_shared_device_is_requested_by_its_memory() {
    let gpu = Mapping::Memory { resource: "example.com/gpu-memory".to_owned() };
    let settings = Settings { gpu, ..Settings::default() };
    let deployment = primary_as(json!({}), &settings);
    let pod = &deployment["spec"]["template"]["spec"];
    let limits = &pod["containers"][0]["resources"]["limits"];
    assert_eq!(limits["example.com/gpu-memory"], "24576");
    assert_eq!(limits.get("nvidia.com/gpu"), None);
    assert_eq!(pod.get("affinity"), None);
}

#[test]
fn the_model_stays_last_whatever_the_user_adds() {
    let key = json!({ "apiKeySecretRef": { "name": "k", "key": "apiKey" } });
    for (change, want) in [
        (json!({ "extraArgs": ["--gpus", "0"] }), &["--gpus", "0", "--allow-no-auth"][..]),
        (json!({ "extraArgs": ["--gpus", "0"], "auth": key }), &["--gpus", "0"]),
        (json!({ "extraArgs": ["--keystore", "/k"] }), &["--keystore", "/k"]),
        (json!({ "auth": { "allowNoAuth": true } }), &["--allow-no-auth"]),
    ] {
        let args = server(change.clone())["args"].take();
        let args: Vec<String> = serde_json::from_value(args).unwrap();
        assert_eq!(args[5..args.len() - 1], *want, "{change}");
        assert_eq!(args.last().unwrap(), "llama3-8b-q4");
    }
}

#[test]
fn secrets_reach_the_server_as_variables_and_the_user_has_the_last_word() {
    let server = server(json!({
        "auth": { "apiKeySecretRef": { "name": "keys", "key": "apiKey" } },
        "huggingFaceTokenSecretRef": { "name": "hf", "key": "token" },
        "env": [{ "name": "HOME", "value": "/models" }, { "name": "EXTRA", "value": "1" }],
    }));
    let from = |name: &str, key: &str| json!({ "secretKeyRef": { "name": name, "key": key } });
    assert_eq!(
        server["env"],
        json!([
            { "name": "HOME", "value": "/models" },
            { "name": "HF_TOKEN", "valueFrom": from("hf", "token") },
            { "name": "ZERFOO_API_KEY", "valueFrom": from("keys", "apiKey") },
            { "name": "EXTRA", "value": "1" },
        ])
    );
}

/// Server-side apply refuses a list with two entries of one name.
#[test]
fn a_pull_secret_or_variable_that_is_named_twice_is_there_once() {
    let pod = pod(json!({
        "imagePullSecrets": [{ "name": "a" }, { "name": "b" }, { "name": "a" }],
        "env": [{ "name": "X", "value": "1" }, { "name": "X", "value": "2" }],
    }));
    assert_eq!(pod["imagePullSecrets"], json!([{ "name": "a" }, { "name": "b" }]));
    let env = json!([{ "name": "HOME", "value": "/tmp" }, { "name": "X", "value": "2" }]);
    assert_eq!(pod["containers"][0]["env"], env);
}

#[test]
fn the_cache_is_the_volume_that_was_chosen() {
    for (cache, want) in [
        (json!({}), json!({ "emptyDir": {} })),
        (
            json!({ "emptyDir": { "sizeLimit": "50Gi" } }),
            json!({ "emptyDir": { "sizeLimit": "50Gi" } }),
        ),
        (
            json!({ "persistentVolumeClaim": { "claimName": "models" } }),
            json!({ "persistentVolumeClaim": { "claimName": "models" } }),
        ),
        (
            json!({ "hostPath": {} }),
            json!({ "hostPath": { "path": "/var/lib/zerfoo/models", "type": "DirectoryOrCreate" } }),
        ),
    ] {
        let mut want = want;
        want["name"] = "models".into();
        assert_eq!(pod(json!({ "cache": cache }))["volumes"][0], want);
    }
}

#[test]
fn a_prefetch_pulls_one_quantisation_without_a_device() {
    let pod = pod(json!({
        "modelRef": "llama-3-8b-q4",
        "cache": { "prefetch": { "quant": "Q4_K_M" } },
        "huggingFaceTokenSecretRef": { "name": "hf", "key": "token" },
        "auth": { "apiKeySecretRef": { "name": "keys", "key": "apiKey" } },
        "env": [{ "name": "HUGGINGFACE_API_URL", "value": "https://mirror.example.com" }],
    }));
    let init = &pod["initContainers"][0];
    assert_eq!(
        init["args"],
        json!([
            "pull",
            "--quant",
            "Q4_K_M",
            "--cache-dir",
            "/models",
            "meta-llama/Llama-3.1-8B-Instruct-GGUF",
        ])
    );
    // The server resolves its aliases itself, to the same directory.
    let args = pod["containers"][0]["args"].as_array().unwrap();
    assert_eq!(args.last().unwrap(), "llama-3-8b-q4");
    let variables: Vec<_> =
        init["env"].as_array().unwrap().iter().map(|variable| &variable["name"]).collect();
    assert_eq!(variables, ["HOME", "HF_TOKEN", "HUGGINGFACE_API_URL"]);
    assert_eq!(init["resources"]["limits"], json!({ "cpu": "4", "memory": "16Gi" }));
}

#[test]
fn constraints_of_the_user_are_kept_and_joined() {
    let term = |key: &str| json!({ "key": key, "operator": "Exists" });
    let pod = pod(json!({
        "affinity": {
            "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    { "matchExpressions": [term("a")] },
                    { "matchFields": [term("b")] },
                ],
            } },
            "podAntiAffinity": {},
        },
        "tolerations": [{ "key": "mine", "operator": "Exists" }],
        "nodeSelector": { "zone": "a" },
        "gpu": { "runtimeClassName": "nvidia" },
    }));
    let gpu = json!({ "key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["22608"] });
    let required =
        &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(
        required["nodeSelectorTerms"],
        json!([
            { "matchExpressions": [term("a"), gpu] },
            { "matchExpressions": [gpu], "matchFields": [term("b")] },
        ])
    );
    assert_eq!(pod["affinity"]["podAntiAffinity"], json!({}));
    assert_eq!(pod["tolerations"][1], json!({ "key": "mine", "operator": "Exists" }));
    assert_eq!(pod["nodeSelector"], json!({ "zone": "a" }));
    assert_eq!(pod["runtimeClassName"], "nvidia");
}

#[test]
fn labels_of_the_user_cannot_unhook_the_pods() {
    let deployment = primary(json!({
        "podLabels": { "app": "other", "team": "ml" },
        "podAnnotations": { "note": "x" },
    }));
    let metadata = &deployment["spec"]["template"]["metadata"];
    assert_eq!(metadata["labels"]["app"], "my-llama");
    assert_eq!(metadata["labels"]["team"], "ml");
    assert_eq!(metadata["annotations"], json!({ "note": "x" }));
}

#[test]
fn the_two_tracks_select_disjoint_pods() {
    let service = base();
    let (wanted, names, settings) = (wanted(&service), names(), Settings::default());
    let blueprint =
        Blueprint { names: &names, spec: &service.spec, wanted: &wanted, settings: &settings };
    let plan = crate::inference_service::traffic::CanaryPlan {
        phase: windlass_api::serving::zerfoo_inference_service::CanaryPhase::Active,
        template: crate::inference_service::traffic::Template::Spec { model: "b".to_owned() },
        replicas: 1,
        weight: 10,
        share: 0,
        effective: 0,
        available: false,
        drain_started: None,
    };
    let selector = |deployment: Deployment| deployment.spec.unwrap().selector.match_labels;
    let canary = deployment::canary(blueprint, &plan);
    assert_eq!(canary.metadata.name.as_deref(), Some("my-llama-canary"));
    assert_eq!(selector(canary), Some(names.selector(Reach::Only(Track::Canary))));
    assert_ne!(
        selector(deployment::primary(blueprint, None)),
        Some(names.selector(Reach::Only(Track::Canary)))
    );
}

#[test]
fn services_reach_what_they_are_told_to() {
    let app = json!({ "app": "my-llama" });
    let on = |track: &str| json!({ "app": "my-llama", "serving.zerfoo.com/track": track });
    for (service, name, selector) in [
        (service::stable(&names(), Reach::Both), "my-llama-svc", app),
        (service::stable(&names(), Reach::Only(Track::Canary)), "my-llama-svc", on("canary")),
        (service::for_track(&names(), Track::Primary), "my-llama-primary", on("primary")),
        (service::for_track(&names(), Track::Canary), "my-llama-canary", on("canary")),
    ] {
        let service = serde_json::to_value(service).unwrap();
        assert_eq!(service["metadata"]["name"], name);
        assert_eq!(
            service["spec"],
            json!({
                "type": "ClusterIP",
                "selector": selector,
                "ports": [{ "name": "http", "port": 80, "targetPort": "http" }],
            })
        );
    }
}

#[test]
fn s05_the_autoscaler_targets_the_primary() {
    let bounds = Bounds { min: 2, max: 10 };
    let scaler = autoscaler::autoscaler(&names(), bounds, &Autoscaling::default());
    let scaler = serde_json::to_value(scaler).unwrap();
    assert_eq!(scaler["metadata"]["name"], "my-llama-hpa");
    assert_eq!(
        scaler["spec"],
        json!({
            "scaleTargetRef": {
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "my-llama-primary",
            },
            "minReplicas": 2,
            "maxReplicas": 10,
            "metrics": [{
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": { "type": "Utilization", "averageUtilization": 80 },
                },
            }],
        })
    );
}

#[test]
fn own_metrics_replace_the_cpu_target() {
    let settings: Autoscaling = serde_json::from_value(json!({
        "metrics": [{ "type": "Pods", "pods": {
            "metric": { "name": "requests" },
            "target": { "type": "AverageValue", "averageValue": "10" },
        } }],
        "behavior": { "scaleDown": { "stabilizationWindowSeconds": 60 } },
    }))
    .unwrap();
    let bounds = Bounds { min: 1, max: 2 };
    let scaler = serde_json::to_value(autoscaler::autoscaler(&names(), bounds, &settings)).unwrap();
    assert_eq!(scaler["spec"]["metrics"].as_array().unwrap().len(), 1);
    assert_eq!(scaler["spec"]["metrics"][0]["type"], "Pods");
    assert_eq!(scaler["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"], 60);
}

#[test]
fn the_route_names_its_parents_and_lets_answers_stream() {
    let service = service_with(json!({ "routing": {
        "parentRefs": [{ "name": "gw", "namespace": "infra" }],
        "hostnames": ["llama.example.com"],
    } }));
    let routing = service.spec.routing.unwrap();
    for (weights, want) in [
        (None, json!([{ "name": "my-llama-primary", "port": 80, "weight": 100 }])),
        (
            Some((80, 20)),
            json!([
                { "name": "my-llama-primary", "port": 80, "weight": 80 },
                { "name": "my-llama-canary", "port": 80, "weight": 20 },
            ]),
        ),
    ] {
        let route = serde_json::to_value(route::route(&names(), &routing, weights)).unwrap();
        assert_eq!(route["apiVersion"], "gateway.networking.k8s.io/v1");
        assert_eq!(route["kind"], "HTTPRoute");
        assert_eq!(
            route["spec"],
            json!({
                "parentRefs": [{ "name": "gw", "namespace": "infra" }],
                "hostnames": ["llama.example.com"],
                "rules": [{
                    "matches": [{ "path": { "type": "PathPrefix", "value": "/" } }],
                    "timeouts": { "request": "0s" },
                    "backendRefs": want,
                }],
            })
        );
    }
}
