//! Health of a set of pods, with the cause where they fail.
//!
//! Only pods that still count are looked at, and a failing one is never hidden by a ready one.

mod current;
mod failure;
mod image;
mod log;
mod pending;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};

use super::Inspection;
use crate::error::Error;
use crate::state::State;

pub use log::{LogClass, classify_log};

/// Pods and what is known about them besides.
#[derive(Clone, Copy, Debug)]
pub struct PodsView<'a> {
    pub pods: &'a [Pod],
    /// Events about these pods; others are ignored.
    pub events: &'a [Event],
    /// Logs that [`log_requests`] asked for, as far as they could be read.
    pub logs: &'a BTreeMap<LogKey, String>,
}

/// A container's log worth reading; the same key means the same lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogKey {
    pub namespace: String,
    pub pod: String,
    pub container: String,
    pub container_id: String,
    pub restart_count: i32,
    /// The container runs again already, so the lines are those of its predecessor.
    pub previous: bool,
}

pub fn pods(view: &PodsView<'_>) -> Inspection {
    inspect(view).redacted()
}

fn inspect(view: &PodsView<'_>) -> Inspection {
    let pods = current::select(view.pods);
    if pods.is_empty() {
        return Inspection::failed(Error::missing_downstream("NoPods", "No pods found"));
    }
    let problem = pods
        .iter()
        .find_map(|pod| image::problem(pod, view.events))
        .or_else(|| pods.iter().find_map(|pod| failure::of_failed(pod, view.logs)))
        .or_else(|| pods.iter().find_map(|pod| failure::of_unfinished(pod, view.logs)));
    if let Some(error) = problem {
        return Inspection::failed(error);
    }
    if pods.iter().any(|pod| is_in(pod, "Succeeded") || (is_in(pod, "Running") && is_ready(pod))) {
        return Inspection::ready("PodsReady", "Pods are ready");
    }
    if pods.iter().any(|pod| is_in(pod, "Running")) {
        let message = "Pods are running, waiting for readiness";
        return Inspection::of(State::Starting, "PodsStarting", message);
    }
    let waiting: Vec<&Pod> = pods.into_iter().filter(|pod| is_in(pod, "Pending")).collect();
    if waiting.is_empty() {
        return Inspection::progressing("PodsProgressing", "Pods are progressing");
    }
    pending::inspect(&waiting, view.events)
}

/// Which logs would explain something: those of containers that ended badly for no known reason.
pub fn log_requests(pods: &[Pod]) -> Vec<LogKey> {
    current::select(pods).into_iter().filter_map(failure::log_key).collect()
}

/// What part a container plays in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Main,
    Init,
    /// Starts with the init containers and runs along with the main ones.
    Sidecar,
}

/// The main containers come first: they are what the pod is for.
fn containers(pod: &Pod) -> impl Iterator<Item = (Role, &ContainerStatus)> {
    let status = pod.status.as_ref();
    let main = status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let init =
        status.and_then(|status| status.init_container_statuses.as_deref()).unwrap_or_default();
    main.iter()
        .map(|container| (Role::Main, container))
        .chain(init.iter().map(|container| (init_role(pod, &container.name), container)))
}

fn init_role(pod: &Pod, name: &str) -> Role {
    let init = pod.spec.as_ref().and_then(|spec| spec.init_containers.as_deref());
    let restarts = init
        .unwrap_or_default()
        .iter()
        .any(|c| c.name == name && c.restart_policy.as_deref() == Some("Always"));
    if restarts { Role::Sidecar } else { Role::Init }
}

fn is_in(pod: &Pod, phase: &str) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|c| c.type_ == "Ready" && c.status == "True")
}

/// The reason a container waits, and what is said about it.
fn waiting(container: &ContainerStatus) -> Option<(&str, &str)> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    Some((waiting.reason.as_deref()?, waiting.message.as_deref().unwrap_or_default()))
}
