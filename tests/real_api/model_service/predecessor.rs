use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_tests::{Operator, Space, eventually, operator::Setup};

use super::{cluster, create, wait};

/// As the predecessor writes: a plain create or update of the whole object.
async fn write(space: &Space, object: &Value) {
    let (group, version) =
        object["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap_or(("", "v1"));
    let kind = object["kind"].as_str().unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> =
        Api::namespaced_with(space.client.clone(), &space.name, &resource);
    let params = PostParams { field_manager: Some("manager".to_owned()), ..Default::default() };
    api.create(&params, &serde_json::from_value(object.clone()).unwrap()).await.unwrap();
}

/// What the predecessor makes of the service's decode pods: no probes, a version label, plain HTTP.
fn decode(service: &ModelService) -> Value {
    let standard = json!({
        "app.kubernetes.io/name": "a", "app.kubernetes.io/component": "model-decode",
        "app.kubernetes.io/part-of": "otterscale-system",
        "app.kubernetes.io/managed-by": "model-operator",
    });
    let mut selector = standard.clone();
    for (key, value) in [("inferenceServing", "true"), ("model", "a"), ("role", "decode")] {
        selector[format!("llm-d.ai/{key}")] = json!(value);
    }
    let (mut labels, mut pod_labels) = (standard, selector.clone());
    labels["app.kubernetes.io/version"] = json!("v1.0.1");
    pod_labels["app.kubernetes.io/version"] = json!("v1.0.1");
    let security =
        json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } });
    let script = "set -euo pipefail\nexport KITOPS_HOME=\"${KITOPS_HOME:-/tmp/model-oci}\"\n\
                  mkdir -p \"$KITOPS_HOME\"\n\
                  kit unpack \"$OCI_MODEL_IMAGE\" --plain-http -o -d \"$MODEL_MOUNT_PATH\"\n";
    let env = |pairs: &[(&str, &str)]| -> Vec<Value> {
        pairs.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
    };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "a-decode", "labels": labels,
            "ownerReferences": [{
                "apiVersion": "model.otterscale.io/v1alpha1", "kind": "ModelService", "name": "a",
                "uid": service.metadata.uid, "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": selector },
            "template": {
                "metadata": { "labels": pod_labels },
                "spec": {
                    "automountServiceAccountToken": false,
                    "securityContext": {
                        "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
                    "initContainers": [{
                        "name": "model-unpack", "image": "ghcr.io/kitops-ml/kitops:v1.11.0",
                        "command": ["/bin/sh", "-c"], "args": [script],
                        "env": env(&[
                            ("OCI_MODEL_IMAGE", "registry.example.com/models/qwen3-32b:v1"),
                            ("MODEL_MOUNT_PATH", "/models"), ("KITOPS_HOME", "/tmp/model-oci"),
                        ]),
                        "volumeMounts": [
                            { "name": "model-tmp", "mountPath": "/tmp/model-oci" },
                            { "name": "model", "mountPath": "/models" },
                        ],
                        "securityContext": security,
                    }],
                    "containers": [{
                        "name": "vllm", "image": "vllm/vllm-openai:v0.8.0",
                        "command": ["vllm", "serve"],
                        "args": ["/models", "--port", "8000", "--served-model-name",
                            "qwen/Qwen3-32B", "--tensor-parallel-size", "4", "--max-model-len=8192"],
                        "env": env(&[("TP_SIZE", "4"), ("DP_SIZE", "1"), ("DP_SIZE_LOCAL", "1")]),
                        "ports": [{ "name": "http", "containerPort": 8000, "protocol": "TCP" }],
                        "resources": { "limits": { "nvidia.com/gpu": "4" },
                            "requests": { "nvidia.com/gpu": "4" } },
                        "volumeMounts": [
                            { "name": "model", "mountPath": "/models", "readOnly": true }],
                        "securityContext": security,
                    }],
                    "volumes": [
                        { "name": "model", "emptyDir": {} }, { "name": "model-tmp", "emptyDir": {} }],
                },
            },
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn serving_pods_of_the_predecessor_are_not_replaced() {
    let Some(cluster) = cluster().await else { return };
    let space = cluster.space("taken").await;
    let service = create(&space, "a", json!({})).await;
    write(&space, &decode(&service)).await;
    let read = || async { space.get::<Deployment>("a-decode").await.unwrap() };
    let template =
        |d: &Deployment| serde_json::to_value(&d.spec.as_ref().unwrap().template).unwrap();
    let before = read().await;

    let setup = Setup { everywhere: true, ..Setup::default() };
    let _operator = Operator::start_with(&cluster, &space, &setup).await;
    wait(&space, "a", "Ready", "False", "PodsStarting").await;
    let ours = |deployment: &Deployment| {
        let managers = deployment.managed_fields();
        managers.iter().any(|entry| entry.manager.as_deref() == Some("model-operator"))
    };
    let taken = eventually("the take-over", read, ours).await;
    assert_eq!(template(&taken), template(&before));
    assert_eq!(taken.uid(), before.uid());

    // With the next change of what the pods are, they get what is new.
    let change = json!({ "spec": { "engine": { "args": ["--max-model-len=4096"] } } });
    space.edit::<ModelService>("a", change).await;
    let is_new = |deployment: &Deployment| {
        let template = template(deployment);
        template["spec"]["containers"][0]["readinessProbe"].is_object()
            && template["metadata"]["labels"].get("app.kubernetes.io/version").is_none()
    };
    eventually("the new form", read, is_new).await;
}
