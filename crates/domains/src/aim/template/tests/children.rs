//! The Job and the runtime, field by field.

use serde_json::{Value, json};
use windlass_api::aim::template::AimServiceTemplate;

use crate::aim::template::fixture::{
    Cluster, IMAGE, answered, cluster_template_with, config, image, look, template, template_with,
};

fn full() -> AimServiceTemplate {
    template_with(json!({ "metric": "latency", "gpuSelector": { "count": 2, "model": "MI300X" },
        "env": [{ "name": "HF_TOKEN", "value": "t" }], "imagePullSecrets": [{ "name": "own" }] }))
}

fn runner() -> Value {
    config(
        "default",
        json!({ "serviceAccountName": "runner", "imagePullSecrets": [{ "name": "s1" }] }),
    )
}

#[test]
fn g17_the_job_asks_the_image_with_the_parameters() {
    let seen = look(&full(), &Cluster::of([image(), runner()]));
    let job = seen.body("Job");
    assert_eq!(job["metadata"]["name"], "discover-tiny-lm-latency-4b2c0414");
    assert_eq!(job["metadata"]["namespace"], "research");
    assert_eq!(
        job["metadata"]["labels"],
        json!({ "app.kubernetes.io/name": "aim-discovery",
            "app.kubernetes.io/component": "discovery-job",
            "app.kubernetes.io/managed-by": "aim-controller",
            "aim.silogen.ai/template": "tiny-lm-latency" })
    );
    assert_eq!(
        (&job["spec"]["backoffLimit"], &job["spec"]["ttlSecondsAfterFinished"]),
        (&json!(3), &json!(60))
    );
    assert_eq!(job["spec"]["activeDeadlineSeconds"], Value::Null);
    assert!(job["spec"]["template"]["metadata"]["labels"].is_null());
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "runner");
    assert_eq!(
        pod["securityContext"],
        json!({ "runAsNonRoot": true, "runAsUser": 65532,
            "seccompProfile": { "type": "RuntimeDefault" } })
    );
    assert_eq!(pod["restartPolicy"], "Never");
    assert_eq!(
        pod["containers"],
        json!([{ "name": "discovery", "image": IMAGE, "args": ["dry-run", "--format=json"],
            "env": [{ "name": "HF_TOKEN", "value": "t" },
                { "name": "AIM_METRIC", "value": "latency" },
                { "name": "AIM_GPU_MODEL", "value": "MI300X" },
                { "name": "AIM_GPU_COUNT", "value": "2" }],
            "securityContext": { "allowPrivilegeEscalation": false, "runAsNonRoot": true,
                "capabilities": { "drop": ["ALL"] } } }])
    );
    assert_eq!(
        seen.status["resolvedRuntimeConfig"],
        json!({ "name": "default", "namespace": "research", "scope": "Namespace",
            "kind": "AIMRuntimeConfig", "uid": "config-uid" })
    );
}

#[test]
fn w17_pull_secrets_of_the_template_follow_those_of_the_config() {
    let seen = look(&full(), &Cluster::of([image(), runner()]));
    let both = json!([{ "name": "s1" }, { "name": "own" }]);
    assert_eq!(seen.body("Job")["spec"]["template"]["spec"]["imagePullSecrets"], both);
    let seen = look(&answered(&full()), &Cluster::of([image(), runner()]));
    assert_eq!(seen.body("ServingRuntime")["spec"]["imagePullSecrets"], both);
}

#[test]
fn a_template_with_nothing_of_its_own_asks_plainly() {
    let seen = look(&template(), &Cluster::of([image()]));
    let pod = &seen.body("Job")["spec"]["template"]["spec"];
    for absent in ["serviceAccountName", "imagePullSecrets"] {
        assert!(pod.get(absent).is_none(), "{absent}");
    }
    assert!(pod["containers"][0].get("env").is_none());
}

#[test]
fn w31_of_two_variables_of_one_name_the_computed_one_counts() {
    let template = template_with(json!({ "metric": "latency", "env": [
        { "name": "AIM_METRIC", "value": "mine" }, { "name": "A", "value": "1" },
        { "name": "A", "value": "2" }] }));
    let seen = look(&template, &Cluster::of([image()]));
    assert_eq!(
        seen.body("Job")["spec"]["template"]["spec"]["containers"][0]["env"],
        json!([{ "name": "A", "value": "2" }, { "name": "AIM_METRIC", "value": "latency" }])
    );
}

#[test]
fn a_template_of_the_cluster_asks_in_the_namespace_of_the_operator() {
    let seen = look(&cluster_template_with(json!({})), &Cluster::of([image()]));
    assert_eq!(seen.body("Job")["metadata"]["namespace"], "kaiwo-system");
}

#[test]
fn the_runtime_serves_what_the_image_has_said() {
    let seen = look(&answered(&template()), &Cluster::of([image()]));
    let runtime = seen.body("ServingRuntime");
    assert_eq!(
        runtime["metadata"],
        json!({ "name": "tiny-lm-latency", "namespace": "research", "labels": {
            "app.kubernetes.io/name": "aim-runtime",
            "app.kubernetes.io/component": "serving-runtime",
            "app.kubernetes.io/managed-by": "aim-controller",
            "aim.silogen.ai/model-id": "tiny-lm" } })
    );
    let gpu = json!({ "amd.com/gpu": "2" });
    assert_eq!(
        runtime["spec"],
        json!({ "supportedModelFormats": [{ "name": "aim", "version": "1" }],
            "containers": [{ "name": "kserve-container", "image": IMAGE,
                "env": [{ "name": "AIM_MODEL_ID", "value": "acme/tiny-lm-7b-fp8" },
                    { "name": "VLLM_ENABLE_METRICS", "value": "true" }],
                "resources": { "requests": gpu, "limits": gpu },
                "ports": [{ "containerPort": 8000, "name": "http", "protocol": "TCP" }],
                "volumeMounts": [{ "name": "dshm", "mountPath": "/dev/shm" }] }],
            "volumes": [{ "name": "dshm",
                "emptyDir": { "medium": "Memory", "sizeLimit": "8Gi" } }] })
    );
}

#[test]
fn w18_a_model_without_a_name_is_known_by_its_image() {
    let mut template = answered(&template());
    let model_id = |template: &AimServiceTemplate| {
        let seen = look(template, &Cluster::of([image()]));
        seen.body("ServingRuntime")["spec"]["containers"][0]["env"][0]["value"].clone()
    };
    template.status.as_mut().unwrap().model_sources[0].name = None;
    assert_eq!(model_id(&template), "tiny-lm");
    template.status.as_mut().unwrap().model_sources.clear();
    assert_eq!(model_id(&template), "tiny-lm");
}

#[test]
fn w25_the_image_in_effect_is_told() {
    let seen = look(&template(), &Cluster::of([image()]));
    assert_eq!(
        seen.status["resolvedImage"],
        json!({ "name": "tiny-lm", "scope": "Cluster", "kind": "AIMClusterImage",
            "uid": "image-uid" })
    );
}

/// Otherwise each pass that writes would have to compare everything once more.
#[test]
fn the_same_cluster_gives_the_same_plan() {
    let template = answered(&full());
    let cluster = Cluster::of([image(), runner()]);
    assert_eq!(look(&template, &cluster).plan, look(&template, &cluster).plan);
}

#[test]
fn a_secret_that_is_named_twice_is_used_once() {
    let template = template_with(json!({ "imagePullSecrets": [{ "name": "a" }, { "name": "a" }] }));
    let config =
        config("default", json!({ "imagePullSecrets": [{ "name": "s" }, { "name": "s" }] }));
    let seen = look(&template, &Cluster::of([image(), config]));
    let secrets = &seen.body("Job")["spec"]["template"]["spec"]["imagePullSecrets"];
    assert_eq!(*secrets, json!([{ "name": "s" }, { "name": "a" }]));
}
