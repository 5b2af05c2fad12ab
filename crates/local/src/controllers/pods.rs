//! Facts about pods, and how their controllers make and delete them.

use std::cmp::Reverse;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{ContainerStatus, Pod, PodCondition, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, Preconditions},
};

use super::{Context, Kind, owners::reference, posting};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// How many pods are made at once at most. The first attempt is made with one, so that a mistake in
/// the template is not made many times.
const BURST: usize = 500;

pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(super) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

fn is_leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Neither finished nor on its way out.
pub(super) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_leaving(pod)
}

/// Still running after its deletion.
pub(super) fn is_terminating(pod: &Pod) -> bool {
    !is_finished(pod) && is_leaving(pod)
}

pub(super) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

fn readiness(pod: &Pod) -> Option<&PodCondition> {
    condition(pod, "Ready").filter(|condition| condition.status == "True")
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    readiness(pod).is_some()
}

/// How long it takes until the pod has been ready for so many seconds; `None` if it is not ready.
pub(super) fn wait_for_available(
    pod: &Pod,
    seconds: i32,
    now: Timestamp,
) -> Option<SignedDuration> {
    let ready = readiness(pod)?;
    if seconds <= 0 {
        return Some(SignedDuration::ZERO);
    }
    let span = SignedDuration::from_secs(seconds.into());
    let Some(Time(since)) = ready.last_transition_time else { return Some(span) };
    let left = span.saturating_sub(now.duration_since(since));
    Some(left.max(SignedDuration::ZERO))
}

/// Sorts those first that are missed least: not placed, not started, not ready, cheap, young.
pub(super) fn removal_order(pod: &Pod) -> impl Ord + use<> {
    let spec = pod.spec.as_ref();
    let is_placed = spec.and_then(|spec| spec.node_name.as_deref()).is_some_and(|n| !n.is_empty());
    let stage = match phase(pod) {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    let cost = pod.annotations().get(DELETION_COST).and_then(|cost| cost.parse::<i32>().ok());
    let ready_since = readiness(pod).map(|ready| time(ready.last_transition_time.as_ref()));
    let created = time(pod.metadata.creation_timestamp.as_ref());
    (
        is_placed,
        stage,
        ready_since.is_some(),
        cost.unwrap_or_default(),
        Reverse(ready_since),
        Reverse(restarts(pod)),
        Reverse(created),
        pod.metadata.name.clone(),
    )
}

/// Nobody knows since when: not for long.
fn time(time: Option<&Time>) -> Timestamp {
    time.map_or(Timestamp::MAX, |time| time.0)
}

/// The most that any of its containers was restarted.
fn restarts(pod: &Pod) -> i32 {
    let Some(status) = &pod.status else { return 0 };
    let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
    all.map(|container: &ContainerStatus| container.restart_count).max().unwrap_or_default()
}

/// A pod as this template says, of this owner.
pub(super) fn from_template<K>(owner: &K, template: &PodTemplateSpec) -> Pod
where
    K: Resource<DynamicType = ()>,
{
    let meta = template.metadata.clone().unwrap_or_default();
    let prefix = format!("{}-", owner.meta().name.as_deref().unwrap_or_default());
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(prefix),
            namespace: owner.meta().namespace.clone(),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            owner_references: Some(vec![reference(owner)]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        ..Pod::default()
    }
}

/// What became of an attempt to make or delete several.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) done: usize,
    pub(super) error: Option<kube::Error>,
}

impl Context {
    /// In growing batches; the first failure ends it.
    pub(super) async fn create_pods<K: Kind>(&self, owner: &K, pod: &Pod, count: usize) -> Outcome {
        let mut outcome = Outcome::default();
        let mut left = count.min(BURST);
        let mut batch = 1;
        while left > 0 && outcome.error.is_none() {
            batch = batch.min(left);
            for made in join_all((0..batch).map(|_| self.create_pod(owner, pod))).await {
                match made {
                    Ok(()) => outcome.done += 1,
                    Err(error) => outcome.error = Some(error),
                }
            }
            left -= batch;
            batch *= 2;
        }
        outcome.error = outcome.error.filter(|error| !is_for_ended_namespace(error));
        outcome
    }

    async fn create_pod<K: Kind>(&self, owner: &K, pod: &Pod) -> Result<(), kube::Error> {
        let api = self.api::<Pod>(&owner.namespace().unwrap_or_default());
        match api.create(&posting(), pod).await {
            Ok(made) => {
                let name = made.name_any();
                self.caches.pods.note(made);
                let message = format!("Created pod: {name}");
                self.events.normal(owner, "SuccessfulCreate", &message).await;
                Ok(())
            }
            Err(error) => {
                if !is_for_ended_namespace(&error) {
                    let message = format!("Error creating: {}", told(&error));
                    self.events.warning(owner, "FailedCreate", &message).await;
                }
                Err(error)
            }
        }
    }

    /// One that is gone already counts as deleted.
    pub(super) async fn delete_pod<K: Kind>(
        &self,
        owner: &K,
        pod: &Pod,
    ) -> Result<(), kube::Error> {
        let name = pod.name_any();
        let api = self.api::<Pod>(&owner.namespace().unwrap_or_default());
        let only = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
        match api.delete(&name, &DeleteParams::default().preconditions(only)).await {
            Ok(answer) => {
                self.caches.pods.note_deletion(pod, answer);
                let message = format!("Deleted pod: {name}");
                self.events.normal(owner, "SuccessfulDelete", &message).await;
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.caches.pods.forget(pod);
                Ok(())
            }
            Err(error) => {
                let message = format!("Error deleting: {}", told(&error));
                self.events.warning(owner, "FailedDelete", &message).await;
                Err(error)
            }
        }
    }
}

/// What the API said.
pub(super) fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}

/// Nothing can be made there any more, and need not be.
pub(super) fn is_for_ended_namespace(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests;
