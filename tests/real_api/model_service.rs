//! ModelServices: their children on a real API server with the real definitions of the foreign kinds.

/// From a manifest to Ready, and back to nothing.
mod converge;
/// What the predecessor made is taken over without replacing a pod.
mod predecessor;

use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_tests::{Cluster, Space, cluster::FOREIGN, eventually, kubelet};

async fn cluster() -> Option<Cluster> {
    Cluster::private(&FOREIGN).await
}

/// The base case of the specification, with `more` merged into its spec.
fn manifest(name: &str, more: &Value) -> Value {
    let mut spec = json!({
        "model": { "name": "qwen/Qwen3-32B", "image": "registry.example.com/models/qwen3-32b:v1" },
        "engine": { "image": "vllm/vllm-openai:v0.8.0", "args": ["--max-model-len=8192"], "port": 8000 },
        "accelerator": { "type": "nvidia" },
        "decode": { "replicas": 2, "parallelism": { "tensor": 4 } },
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "model.otterscale.io/v1alpha1", "kind": "ModelService",
        "metadata": { "name": name }, "spec": spec,
    })
}

async fn create(space: &Space, name: &str, more: Value) -> ModelService {
    space.create(&serde_json::from_value(manifest(name, &more)).unwrap()).await
}

/// Waits for the condition of the current generation.
async fn wait(space: &Space, name: &str, type_: &str, status: &str, reason: &str) -> Value {
    let read =
        || async { serde_json::to_value(space.get::<ModelService>(name).await.unwrap()).unwrap() };
    let what = format!("{type_}={status} {reason} of {name}");
    eventually(&what, read, |object| {
        let found = condition(object, type_);
        found["status"] == status
            && found["reason"] == reason
            && found["observedGeneration"] == object["metadata"]["generation"]
    })
    .await
}

fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array();
    all.into_iter().flatten().find(|c| c["type"] == type_).unwrap_or(&Value::Null)
}

/// Objects of a kind by name; those of the cluster too.
async fn names(space: &Space, group: &str, version: &str, kind: &str) -> Vec<String> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = if kind.starts_with("Cluster") {
        Api::all_with(space.client.clone(), &resource)
    } else {
        Api::namespaced_with(space.client.clone(), &space.name, &resource)
    };
    let ours = ListParams::default().labels("app.kubernetes.io/managed-by=model-operator");
    let found = api.list(&ours).await.unwrap();
    found.items.into_iter().filter_map(|object| object.metadata.name).collect()
}

/// Every child there is, as `Kind name`.
async fn children(space: &Space) -> Vec<String> {
    let kinds = [
        ("", "v1", "ConfigMap"),
        ("", "v1", "Service"),
        ("", "v1", "ServiceAccount"),
        ("apps", "v1", "Deployment"),
        ("gateway.networking.k8s.io", "v1", "HTTPRoute"),
        ("inference.networking.k8s.io", "v1", "InferencePool"),
        ("monitoring.coreos.com", "v1", "PodMonitor"),
        ("monitoring.coreos.com", "v1", "ServiceMonitor"),
        ("networking.istio.io", "v1", "DestinationRule"),
        ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
        ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io", "v1", "Role"),
        ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ];
    let mut all = Vec::new();
    for (group, version, kind) in kinds {
        let found = names(space, group, version, kind).await;
        all.extend(found.into_iter().map(|name| format!("{kind} {name}")));
    }
    all
}

/// Makes the pods of all roles and of the picker run.
async fn run_pods(space: &Space) {
    kubelet::run_all(space, "app.kubernetes.io/managed-by=model-operator").await;
}
