//! Which pod goes to which node.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{Node, Pod};

use super::{
    super::pods::is_finished,
    fit::{Misfit, fit},
    resources::{Amounts, Counting, offered, take, wanted},
    storage::Storage,
};

const SCHEDULER: &str = "default-scheduler";

#[derive(Clone, Debug)]
pub(super) struct Decision {
    pub(super) pod: Arc<Pod>,
    pub(super) verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// To the node of this name.
    Bind(String),
    /// For this reason to none.
    Unschedulable(String),
}

/// Decides about all pods that wait, as if each were bound before the next is looked at. Where there
/// is no node, nothing is said of any pod.
pub(super) fn plan(
    nodes: &[Arc<Node>],
    pods: &[Arc<Pod>],
    storage: &Storage,
    counting: Counting,
) -> Vec<Decision> {
    if nodes.is_empty() {
        return Vec::new();
    }
    let mut free = free(nodes, pods, counting);
    let mut waiting: Vec<_> = pods.iter().filter(|pod| is_waiting(pod)).collect();
    waiting.sort_by_key(|pod| order(pod));
    let decide = |pod: &Arc<Pod>| Decision {
        pod: pod.clone(),
        verdict: match storage.missing(pod) {
            Some(reason) => Verdict::Unschedulable(without_claims(nodes.len(), &reason)),
            None => place(pod, nodes, &mut free, counting),
        },
    };
    waiting.into_iter().map(decide).collect()
}

/// Whether it needs a node from here. Gates are for others to lift.
pub(super) fn is_waiting(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let ours = spec.scheduler_name.as_deref().is_none_or(|name| name == SCHEDULER);
    let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    let leaving = pod.metadata.deletion_timestamp.is_some();
    ours && !gated && !leaving && node_name(pod).is_none() && !is_finished(pod)
}

/// What pods have left of each node.
fn free(nodes: &[Arc<Node>], pods: &[Arc<Pod>], counting: Counting) -> BTreeMap<String, Amounts> {
    let name = |node: &Node| node.metadata.name.clone().unwrap_or_default();
    let mut free: BTreeMap<_, _> =
        nodes.iter().map(|node| (name(node), offered(node, counting))).collect();
    for pod in pods.iter().filter(|pod| !is_finished(pod)) {
        if let Some(held) = node_name(pod).and_then(|name| free.get_mut(name)) {
            take(held, &wanted(pod, counting));
        }
    }
    free
}

fn place(
    pod: &Pod,
    nodes: &[Arc<Node>],
    free: &mut BTreeMap<String, Amounts>,
    counting: Counting,
) -> Verdict {
    let wanted = wanted(pod, counting);
    let mut misfits = Vec::new();
    for node in nodes {
        let name = node.metadata.name.clone().unwrap_or_default();
        let held = free.entry(name.clone()).or_default();
        match fit(pod, node, held, &wanted) {
            Ok(()) => {
                take(held, &wanted);
                return Verdict::Bind(name);
            }
            Err(misfit) => misfits.push(misfit),
        }
    }
    Verdict::Unschedulable(message(&misfits))
}

/// No node could help.
fn without_claims(count: usize, reason: &str) -> String {
    format!(
        "0/{count} nodes are available: {reason}. preemption: 0/{count} nodes are available: \
         {count} Preemption is not helpful for scheduling."
    )
}

/// As the scheduler puts it, which also says that nobody could be sent away.
fn message(misfits: &[Misfit]) -> String {
    let count = misfits.len();
    let why = histogram(misfits.iter().flat_map(Misfit::reasons));
    let preemption = histogram(misfits.iter().map(|misfit| {
        let text = match misfit {
            Misfit::Never(_) => "Preemption is not helpful for scheduling",
            Misfit::Full(_) => "No preemption victims found for incoming pod",
        };
        text.to_owned()
    }));
    format!(
        "0/{count} nodes are available: {why}. preemption: 0/{count} nodes are available: \
         {preemption}."
    )
}

fn histogram(reasons: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    let mut told: Vec<_> =
        counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    told.sort();
    told.join(", ")
}

/// The important before the others, then the old before the young.
fn order(pod: &Pod) -> (i64, Option<jiff::Timestamp>, String, String) {
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default();
    let metadata = &pod.metadata;
    (
        -i64::from(priority),
        metadata.creation_timestamp.as_ref().map(|time| time.0),
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}
