//! Why a pod failed, or why its containers do not stay up.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};

use super::{LogKey, Role, containers, is_in, log, pending, waiting};
use crate::error::Error;

const OUT_OF_MEMORY: &str = "OOMKilled";
const POD_FAILED: &str = "PodFailed";
const CRASHING: &str = "CrashLoopBackOff";

/// Once is an accident; from here on a container that is not ready counts as crashing even in the
/// moments in which it runs, or the verdict would flip with every attempt.
const CRASHING_RESTARTS: i32 = 2;

type Logs = BTreeMap<LogKey, String>;

/// The end of a container.
struct Ending<'a> {
    role: Role,
    container: &'a ContainerStatus,
    terminated: &'a ContainerStateTerminated,
    /// Not its current state but the one before.
    previous: bool,
}

/// The failure of a pod that has ended for good.
pub(super) fn of_failed(pod: &Pod, logs: &Logs) -> Option<Error> {
    if !is_in(pod, "Failed") {
        return None;
    }
    if let Some(error) = pod_level_failure(pod) {
        return Some(error);
    }
    let Some(ending) = worst_ending(pod) else {
        let said = pod.status.as_ref().and_then(|status| status.message.as_deref());
        let message = said.filter(|text| !text.is_empty()).unwrap_or("Pod failed");
        return Some(Error::invalid_spec(POD_FAILED, message));
    };
    Some(ending.error(pod, logs, POD_FAILED))
}

/// The failure of a pod that is still being tried.
pub(super) fn of_unfinished(pod: &Pod, logs: &Logs) -> Option<Error> {
    if is_in(pod, "Failed") || is_in(pod, "Succeeded") {
        return None;
    }
    let misconfigured = containers(pod)
        .find_map(|(_, container)| start_failure(&container.name, waiting(container)?));
    misconfigured
        .or_else(|| crash(pod).map(|ending| ending.error(pod, logs, CRASHING)))
        .or_else(|| unexplained_crash(pod))
}

/// Nothing is known of how a container ended, only that it keeps ending.
fn unexplained_crash(pod: &Pod) -> Option<Error> {
    let (_, container) = containers(pod).find(|(_, container)| is_backing_off(container))?;
    Some(Error::invalid_spec(CRASHING, format!("Container {} keeps crashing", container.name)))
}

/// The log that would explain the failure, if it needs explaining.
pub(super) fn log_key(pod: &Pod) -> Option<LogKey> {
    let ending = if is_in(pod, "Failed") {
        if pod_level_failure(pod).is_some() {
            return None;
        }
        worst_ending(pod)?
    } else {
        crash(pod)?
    };
    ending.log_key(pod)
}

/// Failures that the node decided on, which the exit codes of the killed containers only blur.
fn pod_level_failure(pod: &Pod) -> Option<Error> {
    let status = pod.status.as_ref()?;
    let reason = status.reason.as_deref().filter(|reason| !reason.is_empty())?;
    let said = status.message.as_deref().filter(|text| !text.is_empty());
    let message = said.unwrap_or("Pod failed");
    Some(match reason {
        "DeadlineExceeded" => Error::invalid_spec("PodDeadlineExceeded", message),
        "Evicted" | "NodeLost" | "NodeShutdown" | "Preempting" | "Shutdown" | "Terminated" => {
            Error::infrastructure("PodEvicted", message)
        }
        "NodeAffinity" | "UnexpectedAdmissionError" => {
            Error::infrastructure("PodRejected", message)
        }
        reason if reason.starts_with("OutOf") => Error::infrastructure("PodRejected", message),
        _ => Error::invalid_spec(POD_FAILED, message),
    })
}

/// A failed exit before a clean one, main containers before others, and of several the first to
/// end: the rest were probably stopped because of it. A sidecar is asked last.
fn worst_ending(pod: &Pod) -> Option<Ending<'_>> {
    let endings = containers(pod).filter_map(|(role, container)| {
        let terminated = container.state.as_ref()?.terminated.as_ref()?;
        Some(Ending { role, container, terminated, previous: false })
    });
    endings.min_by_key(|ending| {
        let finished = ending.terminated.finished_at.as_ref().map(|time| time.0);
        let place = match ending.role {
            Role::Main => 0,
            Role::Init => 1,
            Role::Sidecar => 2,
        };
        (ending.terminated.exit_code == 0, place, finished.is_none(), finished)
    })
}

/// A container that could not even be started.
fn start_failure(container: &str, (reason, said): (&str, &str)) -> Option<Error> {
    let message = format!("Container {container}: {said}");
    match reason {
        "CreateContainerConfigError" => Some(
            pending::missing_reference(said, &message)
                .unwrap_or_else(|| Error::invalid_spec(reason, message)),
        ),
        "CreateContainerError"
        | "RunContainerError"
        | "StartError"
        | "PreStartHookError"
        | "PostStartHookError" => Some(Error::invalid_spec(reason, message)),
        _ => None,
    }
}

fn crash(pod: &Pod) -> Option<Ending<'_>> {
    containers(pod).find_map(|(role, container)| {
        let keeps_failing = !container.ready && container.restart_count >= CRASHING_RESTARTS;
        let backing_off = is_backing_off(container);
        let now = container.state.as_ref().and_then(|state| state.terminated.as_ref());
        let before = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        let (terminated, previous) = match (now, before) {
            (Some(now), _) => (now, false),
            (None, Some(before)) => (before, !backing_off),
            (None, None) => return None,
        };
        let failed_again = keeps_failing && terminated.exit_code != 0;
        (backing_off || failed_again).then_some(Ending { role, container, terminated, previous })
    })
}

fn is_backing_off(container: &ContainerStatus) -> bool {
    waiting(container).is_some_and(|(reason, _)| reason == CRASHING)
}

impl Ending<'_> {
    fn error(&self, pod: &Pod, logs: &Logs, fallback: &str) -> Error {
        let text = self.log_key(pod).and_then(|key| logs.get(&key)).map(String::as_str);
        let mut message = self.message();
        if let Some(excerpt) = text.and_then(log::excerpt) {
            message.push_str("\n\nLog excerpt:\n");
            message.push_str(&excerpt);
        }
        if let Some(class) = text.and_then(log::classify_log) {
            return log::error(class, &message);
        }
        match self.terminated.reason.as_deref().unwrap_or_default() {
            OUT_OF_MEMORY => Error::resource_exhaustion("PodOOMKilled", message),
            "DeadlineExceeded" => Error::invalid_spec("PodDeadlineExceeded", message),
            "Evicted" => Error::infrastructure("PodEvicted", message),
            _ => Error::invalid_spec(fallback, message),
        }
    }

    fn message(&self) -> String {
        let who = match self.role {
            Role::Main => "Container",
            Role::Init => "Init container",
            Role::Sidecar => "Sidecar container",
        };
        let name = &self.container.name;
        let said = self.terminated.message.as_deref().map(str::trim).unwrap_or_default();
        let reason = self.terminated.reason.as_deref().unwrap_or("Completed");
        match (self.terminated.exit_code, said) {
            (0, "") => format!("{who} {name} terminated with reason: {reason}"),
            (0, said) => said.to_owned(),
            (code, "") => format!("{who} {name} failed with exit code {code}"),
            (code, said) => format!("{who} {name} failed with exit code {code}: {said}"),
        }
    }

    /// A container that ran out of memory had no chance to say anything.
    fn log_key(&self, pod: &Pod) -> Option<LogKey> {
        let explained = self.terminated.reason.as_deref() == Some(OUT_OF_MEMORY);
        if self.terminated.exit_code == 0 || explained {
            return None;
        }
        let id = self.terminated.container_id.clone().filter(|id| !id.is_empty())?;
        Some(LogKey {
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            pod: pod.metadata.name.clone()?,
            container: self.container.name.clone(),
            container_id: id,
            restart_count: self.container.restart_count,
            previous: self.previous,
        })
    }
}
