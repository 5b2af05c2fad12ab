//! The conditions of a pod, always in the same order.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};

use super::{Known, Role, Setting, status::time};

const READY_TO_START: &str = "PodReadyToStartContainers";
const INITIALIZED: &str = "Initialized";
const READY: &str = "Ready";
const CONTAINERS_READY: &str = "ContainersReady";
const SCHEDULED: &str = "PodScheduled";
const OWN: [&str; 5] = [READY_TO_START, INITIALIZED, READY, CONTAINERS_READY, SCHEDULED];

/// What is said of one condition.
#[derive(Default)]
struct Said {
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Said {
    fn yes() -> Self {
        Self { holds: true, ..Self::default() }
    }

    fn no(reason: &'static str, message: Option<String>) -> Self {
        Self { holds: false, reason: Some(reason), message }
    }
}

/// Conditions of others come first and stay as they are.
pub(super) fn of(
    pod: &Pod,
    known: &Known,
    inits: &[ContainerStatus],
    mains: &[ContainerStatus],
    phase: &str,
    now: Timestamp,
) -> Vec<PodCondition> {
    let old = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let mut all: Vec<_> =
        old.iter().filter(|known| !OWN.contains(&&*known.type_)).cloned().collect();
    let gates = ready(pod, &all, inits, mains, phase);
    let set = known.setting == Setting::Ready && !known.over;
    for (kind, said) in [
        (READY_TO_START, Said { holds: set, ..Said::default() }),
        (INITIALIZED, initialised(pod, known, inits, phase)),
        (READY, gates),
        (CONTAINERS_READY, containers_ready(pod, inits, mains, phase)),
        (SCHEDULED, Said::yes()),
    ] {
        let status = if said.holds { "True" } else { "False" };
        let before = old.iter().find(|known| known.type_ == kind && known.status == status);
        let since = before.and_then(|before| before.last_transition_time.clone());
        all.push(PodCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: said.reason.map(str::to_owned),
            message: said.message,
            last_transition_time: Some(since.unwrap_or_else(|| time(now))),
            last_probe_time: None,
            observed_generation: pod.metadata.generation,
        });
    }
    all
}

fn names<'a>(statuses: impl Iterator<Item = &'a ContainerStatus>) -> String {
    let names: Vec<_> = statuses.map(|status| &*status.name).collect();
    names.join(" ")
}

fn initialised(pod: &Pod, known: &Known, inits: &[ContainerStatus], phase: &str) -> Said {
    if phase == "Succeeded" {
        return Said { reason: Some("PodCompleted"), ..Said::yes() };
    }
    if known.is_initialised(pod) {
        return Said::yes();
    }
    let is_done = |status: &ContainerStatus| match role(pod, &status.name) {
        Some(Role::Sidecar) => status.started == Some(true),
        _ => status.ready,
    };
    match names(inits.iter().filter(|status| !is_done(status))) {
        none if none.is_empty() => Said::yes(),
        names => Said::no(
            "ContainersNotInitialized",
            Some(format!("containers with incomplete status: [{names}]")),
        ),
    }
}

fn role(pod: &Pod, name: &str) -> Option<Role> {
    super::container(pod, name).map(|(role, _)| role)
}

fn containers_ready(
    pod: &Pod,
    inits: &[ContainerStatus],
    mains: &[ContainerStatus],
    phase: &str,
) -> Said {
    match phase {
        "Succeeded" => return Said::no("PodCompleted", None),
        "Failed" => return Said::no("PodFailed", None),
        _ => {}
    }
    let sidecars = inits.iter().filter(|init| role(pod, &init.name) == Some(Role::Sidecar));
    match names(sidecars.chain(mains).filter(|status| !status.ready)) {
        none if none.is_empty() => Said::yes(),
        names => Said::no(
            "ContainersNotReady",
            Some(format!("containers with unready status: [{names}]")),
        ),
    }
}

/// The containers and the gates that others open.
fn ready(
    pod: &Pod,
    others: &[PodCondition],
    inits: &[ContainerStatus],
    mains: &[ContainerStatus],
    phase: &str,
) -> Said {
    let containers = containers_ready(pod, inits, mains, phase);
    if !containers.holds {
        return containers;
    }
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_deref());
    let closed = gates.unwrap_or_default().iter().filter_map(|gate| {
        let kind = &gate.condition_type;
        match others.iter().find(|known| known.type_ == *kind) {
            None => Some(format!(
                "corresponding condition of pod readiness gate {kind:?} does not exist."
            )),
            Some(known) if known.status != "True" => Some(format!(
                "the status of pod readiness gate {kind:?} is not \"True\", but {}",
                known.status
            )),
            Some(_) => None,
        }
    });
    let closed: Vec<_> = closed.collect();
    match closed.is_empty() {
        true => Said::yes(),
        false => Said::no("ReadinessGatesNotReady", Some(closed.join(", "))),
    }
}
