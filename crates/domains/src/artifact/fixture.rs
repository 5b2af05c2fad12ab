//! The base artifact, live children, and one look at a cluster that is made of them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use windlass_api::model::artifact::{ArtifactKind, ModelArtifact};
use windlass_engine::conditions::find;
use windlass_engine::domain::{Domain, Overall};
use windlass_engine::error::Error;
use windlass_engine::events::{EventNote, events_for};
use windlass_engine::fetch::Fetched;
use windlass_engine::plan::{Plan, When};
use windlass_engine::state::{Assessment, Failure, State, decide_manual, evaluate_manual};

use super::names::{JOB_NAME_LABEL, Names};
use super::objects::claim::claim;
use super::objects::job::{Blueprint, Credentials, job};
use super::run::Run;
use super::{Answers, ArtifactDomain, Settings};

pub(super) const UID: &str = "a1";
pub(super) const DIGEST: &str =
    "sha256:abcdef1234567890abcdef1234567890abcdef1234567890abcdef1234567890";
pub(super) const CLAIM: &str = "phi-4-workspace";

pub(super) fn now() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

/// As it is written in objects.
pub(super) fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

pub(super) fn settings() -> Settings {
    Settings { version: "test".to_owned(), ..Settings::default() }
}

fn merge(target: &mut Value, change: Value) {
    match (target, change) {
        (Value::Object(target), Value::Object(change)) => {
            for (key, value) in change {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, change) => *target = change,
    }
}

/// The object with `change` merged into it; `null` takes a field away.
pub(super) fn with<K: Serialize + DeserializeOwned>(object: &K, change: Value) -> K {
    let mut value = serde_json::to_value(object).unwrap();
    merge(&mut value, change);
    serde_json::from_value(value).unwrap()
}

/// The full spec of the golden cases.
pub(super) fn base() -> ModelArtifact {
    serde_json::from_value(json!({
        "apiVersion": "model.otterscale.io/v1alpha1",
        "kind": "ModelArtifact",
        "metadata": { "name": "phi-4", "namespace": "ml-team", "uid": UID, "generation": 1 },
        "spec": {
            "source": { "huggingFace": {
                "model": "microsoft/phi-4",
                "revision": "main",
                "tokenSecretRef": { "name": "hf-token", "key": "token" },
            }},
            "target": {
                "registry": "ghcr.io",
                "repository": "myorg/models/phi-4",
                "tag": "v1.0",
                "credentialsSecretRef": { "name": "oci-creds" },
            },
            "format": "ModelPack",
            "storage": { "size": "100Gi" },
        },
    }))
    .unwrap()
}

/// The base with `change` merged into its spec.
pub(super) fn artifact_with(change: Value) -> ModelArtifact {
    with(&base(), json!({ "spec": change }))
}

/// The base as it is stored after its status was written.
pub(super) fn stored(status: Value) -> ModelArtifact {
    with(&base(), json!({ "status": status }))
}

pub(super) fn annotated(artifact: &ModelArtifact, retry: &str) -> ModelArtifact {
    with(artifact, json!({ "metadata": { "annotations": { super::RETRY_ANNOTATION: retry } } }))
}

/// The base whose run has pushed, as the status tells it.
pub(super) fn succeeded() -> ModelArtifact {
    stored(json!({
        "observedGeneration": 1,
        "phase": "Succeeded",
        "digest": DIGEST,
        "reference": "ghcr.io/myorg/models/phi-4:v1.0",
        "jobRef": { "name": job_name(&first()), "namespace": "ml-team" },
        "startTime": ago(600),
        "completionTime": ago(300),
        "conditions": [ready("True", "Succeeded", "Model artifact pushed successfully")],
    }))
}

/// The base whose run has failed, as the status tells it.
pub(super) fn failed() -> ModelArtifact {
    stored(json!({
        "observedGeneration": 1,
        "phase": "Failed",
        "jobRef": { "name": job_name(&first()), "namespace": "ml-team" },
        "startTime": ago(600),
        "completionTime": ago(300),
        "conditions": [ready("False", "JobFailed", "kit import: repository not found")],
    }))
}

pub(super) fn ready(status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
        "lastTransitionTime": ago(300),
    })
}

pub(super) fn run(generation: i64, retry: Option<&str>) -> Run {
    Run { generation, retry: retry.map(str::to_owned) }
}

pub(super) fn first() -> Run {
    run(1, None)
}

pub(super) fn job_name(run: &Run) -> String {
    Names::of(&base()).job(run)
}

fn owner(uid: &str) -> Value {
    json!([{
        "apiVersion": "model.otterscale.io/v1alpha1",
        "kind": "ModelArtifact",
        "name": "phi-4",
        "uid": uid,
        "controller": true,
        "blockOwnerDeletion": true,
    }])
}

fn live() -> Value {
    json!({ "metadata": { "ownerReferences": owner(UID), "creationTimestamp": ago(600) } })
}

/// A Job of the base as we make it for a run.
pub(super) fn job_of(of: &Run, status: Value) -> Job {
    let artifact = base();
    let names = Names::of(&artifact);
    let settings = settings();
    let made = job(Blueprint {
        names: &names,
        settings: &settings,
        spec: &artifact.spec,
        run: of,
        credentials: Credentials::DockerConfig,
    });
    let uid = format!("uid-of-{}", names.job(of));
    with(&with(&made, live()), json!({ "metadata": { "uid": uid }, "status": status }))
}

pub(super) fn first_job(status: Value) -> Job {
    job_of(&first(), status)
}

/// A Job as the predecessor made it: under a random name, without marks and not held.
pub(super) fn unmarked_job(name: &str, status: Value) -> Job {
    let strip = json!({ "metadata": { "name": name, "annotations": null, "finalizers": null } });
    with(&first_job(status), strip)
}

pub(super) fn deleted<K: Serialize + DeserializeOwned>(object: &K) -> K {
    with(object, json!({ "metadata": { "deletionTimestamp": ago(1) } }))
}

pub(super) fn running() -> Value {
    json!({ "active": 1, "startTime": ago(60) })
}

/// What the status of a Job says that ended this long ago.
pub(super) fn complete(seconds_ago: i64) -> Value {
    let at = ago(seconds_ago);
    json!({
        "succeeded": 1,
        "startTime": ago(600),
        "completionTime": at,
        "conditions": [{ "type": "Complete", "status": "True", "lastTransitionTime": at }],
    })
}

pub(super) fn broken(seconds_ago: i64) -> Value {
    json!({
        "failed": 1,
        "startTime": ago(600),
        "conditions": [{
            "type": "Failed",
            "status": "True",
            "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit",
            "lastTransitionTime": ago(seconds_ago),
        }],
    })
}

pub(super) fn claim_of(of: &Run) -> PersistentVolumeClaim {
    let artifact = base();
    with(&claim(&Names::of(&artifact), "test", of, &artifact.spec.storage), live())
}

pub(super) fn unmarked_claim() -> PersistentVolumeClaim {
    with(&claim_of(&first()), json!({ "metadata": { "annotations": null } }))
}

pub(super) fn claim_owned_by(uid: &str) -> PersistentVolumeClaim {
    with(&claim_of(&first()), json!({ "metadata": { "ownerReferences": owner(uid) } }))
}

pub(super) fn pod_of(job: &Job, phase: &str) -> Pod {
    let name = job.metadata.name.clone().unwrap_or_default();
    let mut labels = Names::of(&base()).labels("test");
    labels.insert(JOB_NAME_LABEL.to_owned(), name.clone());
    serde_json::from_value(json!({
        "metadata": {
            "name": format!("{name}-pod"),
            "namespace": "ml-team",
            "uid": format!("uid-of-{name}-pod"),
            "labels": labels,
        },
        "status": { "phase": phase },
    }))
    .unwrap()
}

/// A pod whose container has ended with these words, this long ago.
pub(super) fn ended_pod(job: &Job, phase: &str, message: &str, seconds_ago: i64) -> Pod {
    let ended = terminated(i32::from(phase == "Failed"), Some(message), Some(seconds_ago));
    with(&pod_of(job, phase), json!({ "status": { "containerStatuses": [ended] } }))
}

pub(super) fn terminated(code: i32, message: Option<&str>, seconds_ago: Option<i64>) -> Value {
    let mut ended = json!({ "exitCode": code, "reason": "Completed" });
    if let Some(message) = message {
        ended["message"] = message.into();
    }
    if let Some(seconds) = seconds_ago {
        ended["finishedAt"] = ago(seconds).into();
    }
    container("kit", json!({ "terminated": ended }))
}

pub(super) fn container(name: &str, state: Value) -> Value {
    json!({
        "name": name,
        "image": "kit",
        "imageID": "kit",
        "ready": false,
        "restartCount": 0,
        "state": state,
    })
}

pub(super) fn event_about(kind: &str, object: &ObjectMeta, reason: &str, message: &str) -> Event {
    let ObjectMeta { name, uid, namespace, .. } = object;
    serde_json::from_value(json!({
        "metadata": { "name": format!("{reason}-{name:?}"), "namespace": namespace },
        "involvedObject": { "kind": kind, "name": name, "uid": uid, "namespace": namespace },
        "reason": reason,
        "message": message,
        "type": "Warning",
        "lastTimestamp": ago(5),
    }))
    .unwrap()
}

/// A cluster with nothing in it.
pub(super) fn nothing() -> Answers {
    Answers {
        jobs: Fetched::Found(Vec::new()),
        claim: Fetched::Missing,
        pods: Fetched::Found(Vec::new()),
        events: Vec::new(),
        secrets: BTreeMap::new(),
    }
}

/// A cluster with one Job, its workspace and its pods.
pub(super) fn cluster(job: Job, pods: Vec<Pod>) -> Answers {
    Answers {
        jobs: Fetched::Found(vec![job]),
        claim: Fetched::Found(claim_of(&first())),
        pods: Fetched::Found(pods),
        ..nothing()
    }
}

pub(super) fn unreachable<T>() -> Fetched<T> {
    Fetched::Failed(Error::infrastructure("Timeout", "the API does not answer"))
}

pub(super) fn secrets(
    given: &[(&str, Fetched<&[&str]>)],
) -> BTreeMap<String, Fetched<BTreeSet<String>>> {
    let owned = |keys: &&[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    let answer = |keys: &Fetched<&[&str]>| match keys {
        Fetched::Found(keys) => Fetched::Found(owned(keys)),
        Fetched::Missing => Fetched::Missing,
        Fetched::Failed(error) => Fetched::Failed(error.clone()),
    };
    given.iter().map(|(name, keys)| ((*name).to_owned(), answer(keys))).collect()
}

/// One look at a cluster, judged as the engine does it.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) plan: Plan,
    pub(super) applies: bool,
    pub(super) state: State,
    pub(super) conditions: Vec<Condition>,
    pub(super) events: Vec<EventNote>,
    pub(super) news: Vec<EventNote>,
    pub(super) status: Map<String, Value>,
}

pub(super) fn look<K: ArtifactKind>(artifact: &K, answers: Answers) -> Look {
    look_after(artifact, answers, &[])
}

/// A look whose writes have failed like this.
pub(super) fn look_after<K: ArtifactKind>(
    artifact: &K,
    answers: Answers,
    failures: &[Failure],
) -> Look {
    look_as(&settings(), artifact, answers, failures)
}

pub(super) fn look_as<K: ArtifactKind>(
    settings: &Settings,
    artifact: &K,
    answers: Answers,
    failures: &[Failure],
) -> Look {
    let domain = ArtifactDomain::<K>::new(settings.clone());
    let observed = domain.compose(artifact, answers, now());
    let health = domain.health(artifact, &observed);
    let generation = artifact.meta().generation.unwrap_or_default();
    let stored = artifact.status().map(|status| status.conditions.clone()).unwrap_or_default();
    let verdict = evaluate_manual(
        health.manual.clone().unwrap(),
        &Assessment {
            components: &health.components,
            failures,
            extra: &health.conditions,
            stored: &stored,
            stored_state: None,
            generation,
            now: now(),
        },
    );
    let overall = Overall { state: verdict.state, ready: false, message: String::new() };
    Look {
        plan: domain.plan(artifact, &observed),
        applies: decide_manual(&health.components).apply,
        state: verdict.state,
        conditions: verdict.conditions.commit(&stored, generation, now()),
        events: events_for(&stored, &verdict.conditions, |_| false),
        news: health.news,
        status: domain.status(artifact, &observed, &overall),
    }
}

impl Look {
    pub(super) fn applied(&self) -> Vec<String> {
        let plan = self.plan.apply.iter();
        plan.map(|desired| format!("{} {}", desired.kind, desired.key.name)).collect()
    }

    /// Deletes of this domain always make room for something.
    pub(super) fn deleted(&self) -> Vec<String> {
        assert_eq!(self.plan.removals(When::AfterApply).count(), 0);
        self.plan.delete.iter().map(|gone| format!("{} {}", gone.kind, gone.key.name)).collect()
    }

    pub(super) fn released(&self) -> Vec<String> {
        self.plan.release.iter().map(|held| held.key.name.clone()).collect()
    }

    pub(super) fn body(&self, kind: &str) -> &Value {
        let found = self.plan.apply.iter().find(|desired| desired.kind.kind == kind);
        &found.unwrap_or_else(|| panic!("no {kind} is planned")).body
    }

    pub(super) fn looks_again_after(&self) -> Option<u64> {
        self.plan.requeue_after.map(|delay| delay.as_secs())
    }

    pub(super) fn phase(&self) -> &str {
        self.status["phase"].as_str().unwrap()
    }

    /// Status, reason and message of the one condition.
    pub(super) fn ready(&self) -> (&str, &str, &str) {
        let types: Vec<&str> = self.conditions.iter().map(|c| c.type_.as_str()).collect();
        assert_eq!(types, ["Ready"]);
        let ready = find(&self.conditions, "Ready").unwrap();
        (&ready.status, &ready.reason, &ready.message)
    }

    pub(super) fn events(&self) -> Vec<(&str, &str, &str)> {
        let all = self.events.iter().chain(&self.news);
        all.map(|e| (e.type_.as_str(), e.reason.as_str(), e.message.as_str())).collect()
    }

    /// The artifact after this look was stored, as the engine stores it.
    pub(super) fn store(&self, artifact: &ModelArtifact) -> ModelArtifact {
        let mut status = self.status.clone();
        status.insert("observedGeneration".to_owned(), json!(artifact.metadata.generation));
        status.insert("conditions".to_owned(), json!(self.conditions));
        let mut value = serde_json::to_value(artifact).unwrap();
        value["status"] = Value::Object(status);
        serde_json::from_value(value).unwrap()
    }
}
