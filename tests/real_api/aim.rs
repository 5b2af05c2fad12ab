//! AIM: a catalogue, templates whose images are asked by real Jobs, and services before the real
//! definitions of KServe and the Gateway API. The kubelet is the test; so is KServe's controller,
//! except where the scenario is about that.

/// What the image, the runtime config and the template become later.
mod changes;
/// What belongs to the cluster.
mod cluster;
/// How images are asked, and what becomes of the answer.
mod discovery;
/// What KServe's own controller makes of what it gets, and that its definitions know all of it.
mod kserve;
/// What the operator before this one has left.
mod predecessor;
/// One Job for each template, and nothing is written where nothing is to be done.
mod quiet;
/// Paths, gateways and what they say.
mod routing;
/// From a service to an InferenceService, and what stands in the way.
mod services;
/// What becomes of all that where something cannot be listed.
mod unlisted;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::aim::image::AimImage;
use windlass_api::aim::runtime_config::AimRuntimeConfig;
use windlass_api::aim::service::AimService;
use windlass_api::aim::template::AimServiceTemplate;
use windlass_tests::kubelet::{self, Ending};
use windlass_tests::logs::{LogNode, Output};
use windlass_tests::{Namespaced, Space, eventually};

const ENDED_WELL: Ending<'_> = Ending { exit_code: 0, message: "" };
const ENDED_BADLY: Ending<'_> = Ending { exit_code: 1, message: "no such profile" };

/// What an image prints, between lines that are not for us.
const ANSWER: &str = r#"[INFO] scanning
[{"filename": "tiny.yaml",
  "profile": {"model": "acme/tiny-lm-7b",
    "metadata": {"engine": "vllm", "gpu": "MI300X", "precision": "fp4", "gpu_count": 2, "metric": "latency"},
    "engine_args": {"tensor-parallel-size": 2}, "env_vars": {"VLLM_USE_V1": "1"}},
  "models": [{"name": "acme/tiny-lm-7b", "source": "hf://acme/tiny-lm-7b", "size_gb": 12.55}]}]
[INFO] done
"#;

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "aim.silogen.ai/v1alpha1", "kind": kind,
        "metadata": { "name": name }, "spec": spec })
}

async fn create<K: Namespaced + Serialize>(
    space: &Space,
    kind: &str,
    name: &str,
    spec: Value,
) -> K {
    space.create(&serde_json::from_value::<K>(object(kind, name, spec)).unwrap()).await
}

fn image_spec(reference: &str, template: &str) -> Value {
    json!({ "image": reference, "defaultServiceTemplate": template, "resources": {
        "requests": { "cpu": "4", "memory": "16Gi" }, "limits": { "memory": "24Gi" } } })
}

async fn create_image(space: &Space, name: &str, template: &str) {
    let spec = image_spec(&format!("registry.example.com/aim/{name}:1.4.0"), template);
    create::<AimImage>(space, "AIMImage", name, spec).await;
}

async fn create_template(space: &Space, name: &str, more: Value) {
    let mut spec = json!({ "aimImageName": "tiny-lm" });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    create::<AimServiceTemplate>(space, "AIMServiceTemplate", name, spec).await;
}

async fn create_config(space: &Space, name: &str, spec: Value) {
    create::<AimRuntimeConfig>(space, "AIMRuntimeConfig", name, spec).await;
}

async fn create_service(space: &Space, name: &str, more: Value) {
    let mut spec = json!({ "aimImageName": "tiny-lm" });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    create::<AimService>(space, "AIMService", name, spec).await;
}

async fn read<K: Namespaced + Serialize>(space: &Space, name: &str) -> Value {
    serde_json::to_value(space.get::<K>(name).await).unwrap()
}

/// Waits until the status word of the current generation is this one.
async fn wait_template(space: &Space, name: &str, phase: &str) -> Value {
    wait_for::<AimServiceTemplate>(space, name, phase, |object| object["status"]["status"] == phase)
        .await
}

/// Waits until a condition of the service has this status and reason.
async fn wait_service(space: &Space, name: &str, type_: &str, status: &str, reason: &str) -> Value {
    let what = format!("{type_}={status} {reason}");
    wait_for::<AimService>(space, name, &what, |object| {
        let found = condition(object, type_);
        found["status"] == status && found["reason"] == reason
    })
    .await
}

async fn wait_for<K: Namespaced + Serialize>(
    space: &Space,
    name: &str,
    what: &str,
    check: impl Fn(&Value) -> bool,
) -> Value {
    let current = |object: &Value| {
        object["status"]["observedGeneration"] == object["metadata"]["generation"] && check(object)
    };
    eventually(what, || read::<K>(space, name), current).await
}

fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    static NONE: Value = Value::Null;
    let all = object["status"]["conditions"].as_array();
    all.into_iter().flatten().find(|condition| condition["type"] == type_).unwrap_or(&NONE)
}

/// The Jobs of a template that are not on their way out.
async fn jobs(space: &Space, template: &str) -> Vec<Job> {
    let params = ListParams::default().labels(&format!("aim.silogen.ai/template={template}"));
    let found = space.api::<Job>().list(&params).await.unwrap().items;
    found.into_iter().filter(|job| job.metadata.deletion_timestamp.is_none()).collect()
}

async fn wait_job(space: &Space, template: &str) -> Job {
    let found = eventually("a Job", || jobs(space, template), |jobs| jobs.len() == 1).await;
    found.into_iter().next().unwrap()
}

fn pods_of(job: &Job) -> String {
    format!("job-name={}", job.name_any())
}

/// The Job of a template runs and prints this.
async fn answer(space: &Space, node: &LogNode, template: &str, output: impl Into<Output>) {
    let job = wait_job(space, template).await;
    kubelet::end_pod_with_log(space, &pods_of(&job), node, ENDED_WELL, output).await;
}

/// A template whose image has answered.
async fn available(space: &Space, node: &LogNode, name: &str) {
    create_template(space, name, json!({})).await;
    answer(space, node, name, ANSWER).await;
    wait_template(space, name, "Available").await;
}

fn resource(kind: &str) -> ApiResource {
    let (group, version, plural) = match kind {
        "ServingRuntime" => ("serving.kserve.io", "v1alpha1", "servingruntimes"),
        "InferenceService" => ("serving.kserve.io", "v1beta1", "inferenceservices"),
        "HTTPRoute" => ("gateway.networking.k8s.io", "v1", "httproutes"),
        other => panic!("{other}"),
    };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// The child as the API server has it, or null.
async fn child(space: &Space, kind: &str, name: &str) -> Value {
    let api: Api<DynamicObject> =
        Api::namespaced_with(space.client.clone(), &space.name, &resource(kind));
    serde_json::to_value(api.get_opt(name).await.unwrap()).unwrap()
}

async fn see(space: &Space, kind: &str, name: &str, check: impl Fn(&Value) -> bool) -> Value {
    let what = format!("{kind} {name}");
    let there = |object: &Value| !object.is_null() && check(object);
    eventually(&what, || child(space, kind, name), there).await
}

async fn gone(space: &Space, kind: &str, name: &str) {
    eventually("its end", || child(space, kind, name), Value::is_null).await;
}

/// As the controller of the kind would.
async fn set_status(space: &Space, kind: &str, name: &str, status: Value) {
    let api: Api<DynamicObject> =
        Api::namespaced_with(space.client.clone(), &space.name, &resource(kind));
    let patch = kube::api::Patch::Merge(json!({ "status": status }));
    api.patch_status(name, &kube::api::PatchParams::default(), &patch).await.unwrap();
}

/// What KServe says of an InferenceService that runs.
async fn run_inference_service(space: &Space, name: &str) {
    see(space, "InferenceService", name, |_| true).await;
    let time = "2026-01-01T00:00:00Z";
    let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": time });
    set_status(space, "InferenceService", name, json!({ "conditions": [ready] })).await;
}

/// Reasons of the events about an object.
async fn events(space: &Space, name: &str) -> Vec<String> {
    let fields = format!("involvedObject.name={name}");
    let found = space.api::<Event>().list(&ListParams::default().fields(&fields)).await.unwrap();
    found.items.into_iter().filter_map(|event| event.reason).collect()
}
