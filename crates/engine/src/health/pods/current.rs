//! Which pods still count: the newest revision of each owner, without those already replaced.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::is_in;
use crate::object::controller;

const TEMPLATE_HASH: &str = "pod-template-hash";
const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

pub(super) fn select(pods: &[Pod]) -> Vec<&Pod> {
    let staying: Vec<&Pod> =
        pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
    // Pods on their way out are better than no pods at all.
    let pods = if staying.is_empty() { pods.iter().collect() } else { staying };
    let newest: Vec<&Pod> =
        pods.iter().copied().filter(|pod| is_newest_revision(pod, &pods)).collect();
    newest.iter().copied().filter(|pod| !is_replaced(pod, &newest)).collect()
}

fn is_newest_revision(pod: &Pod, pods: &[&Pod]) -> bool {
    let siblings = pods.iter().filter(|other| owner(other) == owner(pod));
    let newest = siblings.max_by_key(|sibling| created(sibling));
    newest.is_none_or(|newest| label(newest, TEMPLATE_HASH) == label(pod, TEMPLATE_HASH))
}

/// A failed pod stays as a record after its owner has made another; only the latter tells how
/// things are.
fn is_replaced(pod: &Pod, pods: &[&Pod]) -> bool {
    is_in(pod, "Failed")
        && pods.iter().any(|other| {
            !is_in(other, "Failed")
                && created(other) > created(pod)
                && owner(other) == owner(pod)
                && label(other, COMPLETION_INDEX) == label(pod, COMPLETION_INDEX)
        })
}

/// The controller behind a pod; for a ReplicaSet the Deployment behind that, known by its name.
fn owner(pod: &Pod) -> Option<&str> {
    let name = controller(&pod.metadata)?.name.as_str();
    let without_hash = label(pod, TEMPLATE_HASH)
        .and_then(|hash| name.strip_suffix(hash))
        .and_then(|name| name.strip_suffix('-'));
    Some(without_hash.unwrap_or(name))
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

fn label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.labels.as_ref()?.get(key).map(String::as_str)
}
