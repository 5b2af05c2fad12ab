//! Artifacts and ModelArtifacts: runs as the real Job controller carries them out, with pods whose
//! kubelet is the test.

/// Killed operators, Jobs that expire, results that nobody was there to read.
mod faults;
/// What is refused, and what a status says of what is missing.
mod input;
/// Objects that the predecessor made.
mod predecessor;
/// Nothing is written where nothing is to be done.
mod quiet;
/// One run after another: success, failure, change, retry.
mod runs;
/// The volume of a run, and whose it is.
mod workspace;

use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{Event, PersistentVolumeClaim},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{ResourceExt, api::ListParams};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use windlass_api::model::artifact::{ArtifactKind, ArtifactStatus, ModelArtifact};
use windlass_tests::{Namespaced, Space, eventually, kubelet::Ending, until};

const DIGEST: &str = "sha256:abcdef1234567890abcdef1234567890abcdef1234567890abcdef1234567890";
const PUSHED: Ending<'_> = Ending { exit_code: 0, message: DIGEST };
const REFUSED: Ending<'_> = Ending { exit_code: 1, message: "kit import: repository not found" };

/// Both kinds, as a test creates and reads them.
trait Kind: ArtifactKind + Serialize + DeserializeOwned + std::fmt::Debug {}
impl<K: ArtifactKind + Serialize + std::fmt::Debug> Kind for K {}

/// The full case of the specification, without its Secrets, which no pod here waits for.
fn spec() -> Value {
    json!({
        "source": { "huggingFace": { "model": "microsoft/phi-4", "revision": "main" } },
        "target": { "registry": "ghcr.io", "repository": "myorg/models/phi-4", "tag": "v1.0" },
        "format": "ModelPack",
        "storage": { "size": "100Gi" },
    })
}

fn manifest(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "model.otterscale.io/v1alpha1", "kind": kind,
        "metadata": { "name": name }, "spec": spec,
    })
}

async fn create<K: Kind>(space: &Space, name: &str) -> K {
    let object = manifest(&K::kind(&()), name, &spec());
    space.create(&serde_json::from_value::<K>(object).unwrap()).await
}

/// Waits for the status of the current generation.
async fn wait<K: Kind>(
    space: &Space,
    name: &str,
    what: &str,
    check: impl Fn(&ArtifactStatus) -> bool,
) -> ArtifactStatus {
    let read = || async { space.get::<K>(name).await.unwrap() };
    let current = |object: &K| {
        object.status().is_some_and(|status| {
            status.observed_generation == object.meta().generation && check(status)
        })
    };
    eventually(what, read, current).await.status().unwrap().clone()
}

async fn wait_phase<K: Kind>(space: &Space, name: &str, phase: &str) -> ArtifactStatus {
    wait::<K>(space, name, phase, |status| status.phase.as_deref() == Some(phase)).await
}

async fn wait_reason(space: &Space, name: &str, reason: &str) -> ArtifactStatus {
    let is = |status: &ArtifactStatus| ready(status).is_some_and(|ready| ready.reason == reason);
    wait::<ModelArtifact>(space, name, reason, is).await
}

fn ready(status: &ArtifactStatus) -> Option<&Condition> {
    status.conditions.iter().find(|condition| condition.type_ == "Ready")
}

fn message(status: &ArtifactStatus) -> &str {
    &ready(status).unwrap().message
}

/// The Job that the status names, once there is one.
async fn wait_job<K: Kind>(space: &Space, name: &str) -> Job {
    let status = wait::<K>(space, name, "a Job", |status| status.job_ref.is_some()).await;
    space.get(&status.job_ref.unwrap().name).await.unwrap()
}

async fn jobs(space: &Space, artifact: &str) -> Vec<Job> {
    let labels = format!("app.kubernetes.io/name={artifact}");
    space.api::<Job>().list(&ListParams::default().labels(&labels)).await.unwrap().items
}

/// Selects the pods of a Job.
fn pods_of(job: &Job) -> String {
    format!("batch.kubernetes.io/job-name={}", job.name_any())
}

fn env(job: &Job, name: &str) -> Option<String> {
    let containers = &job.spec.as_ref()?.template.spec.as_ref()?.containers;
    containers[0].env.as_ref()?.iter().find(|variable| variable.name == name)?.value.clone()
}

async fn claim(space: &Space, artifact: &str) -> Option<PersistentVolumeClaim> {
    space.get(&format!("{artifact}-workspace")).await
}

async fn wait_claim(space: &Space, artifact: &str) -> PersistentVolumeClaim {
    until("the workspace", || async { claim(space, artifact).await.ok_or(String::new()) }).await
}

async fn wait_gone<K: Namespaced>(space: &Space, name: &str) {
    eventually("its end", || space.get::<K>(name), Option::is_none).await;
}

/// Type, reason, note, action and source of the events about an artifact.
async fn events(space: &Space, name: &str) -> Vec<[String; 5]> {
    let fields = format!("involvedObject.name={name}");
    let found = space.api::<Event>().list(&ListParams::default().fields(&fields)).await.unwrap();
    let told = |event: Event| {
        [event.type_, event.reason, event.message, event.action, event.reporting_component]
            .map(Option::unwrap_or_default)
    };
    found.items.into_iter().map(told).collect()
}
