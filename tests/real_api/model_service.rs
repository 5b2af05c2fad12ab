//! ModelServices: their children on a real API server with the real definitions of the foreign kinds.

/// From a manifest to Ready, and back to nothing.
mod converge;
/// Forms of the pool, the route and the mesh, and the way from one to another.
mod forms;
/// What somebody edits or deletes comes back.
mod heal;
/// What is refused, and by whom.
mod input;
/// APIs that come and go.
mod optional;
/// Names that two services share, and objects that somebody else made.
mod ownership;
/// What the predecessor made is taken over without replacing a pod.
mod predecessor;
/// Nothing is written where nothing is to be done.
mod quiet;
/// Changes of pods: those that do not come to an end, and those of two roles at once.
mod rollout;
/// Who decides how many pods there are.
mod scale;

use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_tests::{Space, eventually, kubelet, until};

/// Whatever this operator makes, pods included.
const OURS: &str = "app.kubernetes.io/managed-by=model-operator";

/// Every kind of child but Secrets, which are counted nowhere.
const KINDS: [(&str, &str); 13] = [
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("apps/v1", "Deployment"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("inference.networking.k8s.io/v1", "InferencePool"),
    ("monitoring.coreos.com/v1", "PodMonitor"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("networking.istio.io/v1", "DestinationRule"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
];

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

async fn read(space: &Space, name: &str) -> Value {
    serde_json::to_value(space.get::<ModelService>(name).await.unwrap()).unwrap()
}

/// Waits for the condition of the current generation.
async fn wait(space: &Space, name: &str, type_: &str, status: &str, reason: &str) -> Value {
    let what = format!("{type_}={status} {reason} of {name}");
    eventually(
        &what,
        || read(space, name),
        |object| {
            let found = condition(object, type_);
            found["status"] == status
                && found["reason"] == reason
                && found["observedGeneration"] == object["metadata"]["generation"]
        },
    )
    .await
}

fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array();
    all.into_iter().flatten().find(|c| c["type"] == type_).unwrap_or(&Value::Null)
}

fn of_kind(space: &Space, kind: &str) -> Api<DynamicObject> {
    let known = KINDS.iter().find(|(_, known)| *known == kind);
    // The others, pods and Secrets, are of the core.
    let (api_version, _) = known.copied().unwrap_or(("v1", kind));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if kind.starts_with("Cluster") {
        Api::all_with(space.client.clone(), &resource)
    } else {
        Api::namespaced_with(space.client.clone(), &space.name, &resource)
    }
}

async fn find(space: &Space, kind: &str, name: &str) -> Option<Value> {
    let found = of_kind(space, kind).get_opt(name).await.unwrap();
    found.map(|object| serde_json::to_value(object).unwrap())
}

/// Waits for the object to satisfy the check.
async fn see(space: &Space, kind: &str, name: &str, check: impl Fn(&Value) -> bool) -> Value {
    until(&format!("{kind} {name}"), || async {
        match find(space, kind, name).await {
            Some(object) if check(&object) => Ok(object),
            seen => Err(format!("{seen:?}")),
        }
    })
    .await
}

async fn gone(space: &Space, kind: &str, name: &str) {
    let what = format!("the end of {kind} {name}");
    eventually(&what, || find(space, kind, name), Option::is_none).await;
}

/// A merge patch by somebody else.
async fn edit(space: &Space, kind: &str, name: &str, patch: &Value) -> Value {
    let params = PatchParams { field_manager: Some("somebody".into()), ..Default::default() };
    let edited = of_kind(space, kind).patch(name, &params, &Patch::Merge(patch)).await;
    serde_json::to_value(edited.unwrap()).unwrap()
}

async fn delete(space: &Space, kind: &str, name: &str) {
    drop(of_kind(space, kind).delete(name, &DeleteParams::background()).await.unwrap());
}

/// What is left of an object when everything is taken away that another one of the same content
/// need not share, and what the control plane adds.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    let fields = [
        ("/metadata", "uid"),
        ("/metadata", "resourceVersion"),
        ("/metadata", "generation"),
        ("/metadata", "creationTimestamp"),
        ("/metadata", "managedFields"),
        ("/metadata/annotations", "deployment.kubernetes.io/revision"),
        ("/spec", "clusterIP"),
        ("/spec", "clusterIPs"),
        ("", "status"),
    ];
    for (parent, field) in fields {
        let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
        parent.and_then(|parent| parent.remove(field));
    }
    if object["metadata"]["annotations"] == json!({}) {
        object["metadata"].as_object_mut().unwrap().remove("annotations");
    }
    object
}

/// Objects of a kind by name; those of the cluster too.
async fn names(space: &Space, kind: &str) -> Vec<String> {
    let found = of_kind(space, kind).list(&ListParams::default().labels(OURS)).await.unwrap();
    let ours = format!("{}-", space.name);
    let names = found.items.iter().map(ResourceExt::name_any);
    names.filter(|name| !kind.starts_with("Cluster") || name.starts_with(&ours)).collect()
}

/// Every child there is, as `Kind name`.
async fn children(space: &Space) -> Vec<String> {
    let mut all = Vec::new();
    for (_, kind) in KINDS {
        let found = names(space, kind).await;
        all.extend(found.into_iter().map(|name| format!("{kind} {name}")));
    }
    all
}

/// Makes pods ready as they come, until the service is.
async fn make_ready(space: &Space, name: &str) -> Value {
    until(&format!("readiness of {name}"), || async {
        run_pods(space).await;
        let object = read(space, name).await;
        let ready = condition(&object, "Ready");
        let current = ready["observedGeneration"] == object["metadata"]["generation"];
        let is_ready = ready["status"] == "True" && current;
        if is_ready { Ok(object) } else { Err(object["status"].to_string()) }
    })
    .await
}

/// Makes the pods of all roles and of the picker run.
async fn run_pods(space: &Space) {
    kubelet::run_all(space, OURS).await;
}

/// Selects the serving pods of a role.
fn pods_of(name: &str, role: &str) -> String {
    format!("llm-d.ai/model={name},llm-d.ai/role={role}")
}

/// A service with every kind of child there is.
fn everything() -> Value {
    json!({
        "prefill": { "replicas": 1 }, "routingProxy": {},
        "inferencePool": { "endpointPicker": { "replicas": 3 } },
        "monitoring": { "podMonitor": { "enabled": true } },
    })
}
