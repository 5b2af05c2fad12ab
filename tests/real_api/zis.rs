//! Short ways to write and read ZerfooInferenceServices.

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Event},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{ResourceExt, api::ListParams};
use serde_json::{Value, json};
use windlass_api::serving::zerfoo_inference_service::ZerfooInferenceService;
use windlass_tests::{Space, eventually, kubelet, until};

/// The base case of the specification, with `more` merged into its spec.
pub(crate) fn manifest(name: &str, more: Value) -> ZerfooInferenceService {
    let mut spec = json!({
        "modelRef": "llama3-8b-q4",
        "replicas": 2,
        "resources": { "cpu": "4", "memory": "16Gi", "gpuMemory": "24Gi" },
        "healthCheck": { "path": "/healthz", "interval": "10s", "timeout": "5s" },
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    serde_json::from_value(json!({
        "apiVersion": "serving.zerfoo.com/v1alpha1",
        "kind": "ZerfooInferenceService",
        "metadata": { "name": name },
        "spec": spec,
    }))
    .unwrap()
}

pub(crate) async fn create(space: &Space, name: &str, more: Value) -> ZerfooInferenceService {
    space.create(&manifest(name, more)).await
}

pub(crate) async fn get(space: &Space, name: &str) -> ZerfooInferenceService {
    space.get(name).await.unwrap()
}

pub(crate) fn pods(name: &str, track: &str) -> String {
    format!("app={name},serving.zerfoo.com/track={track}")
}

/// Makes the pods of the primary run and waits until the object says so.
pub(crate) async fn make_ready(
    space: &Space,
    name: &str,
    replicas: usize,
) -> ZerfooInferenceService {
    kubelet::run_pods(space, &pods(name, "primary"), replicas).await;
    wait_ready(space, name).await
}

pub(crate) async fn wait_ready(space: &Space, name: &str) -> ZerfooInferenceService {
    wait_condition(space, name, "Ready", "True", "AllComponentsReady").await
}

/// Waits for a condition of the object's current generation.
pub(crate) async fn wait_condition(
    space: &Space,
    name: &str,
    type_: &str,
    status: &str,
    reason: &str,
) -> ZerfooInferenceService {
    let what = format!("{type_}={status} {reason} of {name}");
    eventually(
        &what,
        || get(space, name),
        |object| {
            let found = condition(object, type_);
            found.is_some_and(|condition| {
                condition.status == status
                    && condition.reason == reason
                    && condition.observed_generation == object.metadata.generation
            })
        },
    )
    .await
}

pub(crate) fn condition<'a>(
    object: &'a ZerfooInferenceService,
    type_: &str,
) -> Option<&'a Condition> {
    object.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == type_)
}

pub(crate) fn status(object: &ZerfooInferenceService) -> Value {
    serde_json::to_value(object.status.as_ref().unwrap()).unwrap()
}

pub(crate) async fn deployment(space: &Space, name: &str) -> Deployment {
    until(&format!("Deployment {name}"), || async {
        space.get(name).await.ok_or_else(|| "nothing".to_owned())
    })
    .await
}

/// Reasons of the Events about an object.
pub(crate) async fn events(space: &Space, name: &str) -> Vec<String> {
    let fields = format!("involvedObject.name={name}");
    let found = space.api::<Event>().list(&ListParams::default().fields(&fields)).await.unwrap();
    found.items.into_iter().filter_map(|event| event.reason).collect()
}

pub(crate) fn uid_of<K: kube::Resource>(object: &K) -> String {
    object.uid().unwrap()
}
