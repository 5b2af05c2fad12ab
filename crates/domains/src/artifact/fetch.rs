//! Reads the children and what explains their state. Decides nothing; failures are kept.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::model::artifact::ArtifactKind;
use windlass_engine::fetch::{Fetched, Reader, Selector, get, list, list_now};
use windlass_engine::health::job::is_failed;

use super::names::{JOB_NAME_LABEL, Names};
use super::run::Run;

/// Answers of the API as they came.
#[derive(Clone, Debug)]
pub struct Answers {
    pub jobs: Fetched<Vec<Job>>,
    pub claim: Fetched<PersistentVolumeClaim>,
    /// Pods of all Jobs of the artifact.
    pub pods: Fetched<Vec<Pod>>,
    /// About pods that do not start, and Jobs that get no pod.
    pub events: Vec<Event>,
    /// The keys of each Secret that the Job uses; asked for only until its pod runs.
    pub secrets: BTreeMap<String, Fetched<BTreeSet<String>>>,
}

pub(super) async fn fetch<K: ArtifactKind>(reader: &dyn Reader, artifact: &K) -> Answers {
    let names = Names::of(artifact);
    let namespace = names.namespace();
    let ours = Selector { labels: names.selector(), ..Selector::default() };
    let jobs = list::<Job>(reader, namespace, &ours).await;
    let made = jobs.found().map_or(&[][..], Vec::as_slice);
    let is_ours = |job: &&Job| is_owned_by(&job.metadata, names.uid());
    let is_told = Run::wanted(artifact, &[]).is_told(artifact.status());
    let pods = if is_told || made.iter().any(|job| is_ours(&job)) {
        list::<Pod>(reader, namespace, &ours).await
    } else {
        // A Job is about to be made, and a pod of an earlier one must not be overlooked.
        list_now::<Pod>(reader, namespace, &ours).await
    };
    let running: Vec<&Job> = made.iter().filter(is_ours).filter(|job| !has_ended(job)).collect();
    let known = pods.found().map_or(&[][..], Vec::as_slice);
    let started = known
        .iter()
        .any(|pod| phase(pod) != Some("Pending") && running.iter().any(|job| is_of(pod, job)));
    let asks = !is_told && !started;
    Answers {
        secrets: if asks { secrets(reader, artifact).await } else { BTreeMap::new() },
        events: events(reader, &running, known).await,
        claim: get(reader, namespace, &names.claim()).await,
        jobs,
        pods,
    }
}

async fn events(reader: &dyn Reader, jobs: &[&Job], pods: &[Pod]) -> Vec<Event> {
    let alone = jobs.iter().filter(|job| pods.iter().all(|pod| !is_of(pod, job)));
    let alone = alone.map(|job| &job.metadata);
    let stuck = pods.iter().filter(|pod| is_stuck_on_its_node(pod)).map(|pod| &pod.metadata);
    let mut events = Vec::new();
    for about in alone.chain(stuck) {
        let uid = about.uid.as_deref().unwrap_or_default();
        let selector = Selector::field("involvedObject.uid", uid);
        // Without events there is still the object's own word.
        if let Fetched::Found(found) = list(reader, about.namespace.as_deref(), &selector).await {
            events.extend(found);
        }
    }
    events
}

/// The Job that a pod belongs to.
pub(super) fn job_of(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(JOB_NAME_LABEL).map(String::as_str)
}

pub(super) fn is_owned_by(child: &ObjectMeta, uid: &str) -> bool {
    child.owner_references.iter().flatten().any(|owner| owner.uid == uid)
}

fn is_of(pod: &Pod, job: &Job) -> bool {
    job_of(pod) == job.metadata.name.as_deref()
}

pub(super) fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// Why a pod has no node it says itself.
pub(super) fn is_stuck_on_its_node(pod: &Pod) -> bool {
    let placed = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    phase(pod) == Some("Pending") && placed && pod.metadata.deletion_timestamp.is_none()
}

pub(super) fn has_ended(job: &Job) -> bool {
    let status = job.status.as_ref();
    let some = |count: Option<i32>| count.is_some_and(|count| count > 0);
    status.is_some_and(|status| some(status.succeeded) || some(status.failed)) || is_failed(job)
}

async fn secrets<K: ArtifactKind>(
    reader: &dyn Reader,
    artifact: &K,
) -> BTreeMap<String, Fetched<BTreeSet<String>>> {
    let mut answers = BTreeMap::new();
    for name in secret_names(artifact) {
        let namespace = artifact.meta().namespace.as_deref();
        let keys = match get::<Secret>(reader, namespace, name).await {
            // The values go no further than here.
            Fetched::Found(secret) => {
                Fetched::Found(secret.data.unwrap_or_default().into_keys().collect())
            }
            Fetched::Missing => Fetched::Missing,
            Fetched::Failed(error) => Fetched::Failed(error),
        };
        answers.insert(name.to_owned(), keys);
    }
    answers
}

fn secret_names<K: ArtifactKind>(artifact: &K) -> BTreeSet<&str> {
    let spec = artifact.spec();
    let source = spec.source.hugging_face.as_ref();
    let token = source.and_then(|source| source.token_secret_ref.as_ref()).map(|r| &r.name);
    let credentials = spec.target.credentials_secret_ref.as_ref().map(|r| &r.name);
    token.into_iter().chain(credentials).map(String::as_str).collect()
}
