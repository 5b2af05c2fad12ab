//! The phase of a pod, from the statuses of its containers.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::{Known, Role, State, Why, containers};

/// `is_over`: nothing runs and nothing will.
pub(super) fn of(
    pod: &Pod,
    known: &Known,
    inits: &[ContainerStatus],
    mains: &[ContainerStatus],
    is_over: bool,
) -> &'static str {
    if is_over {
        return verdict(pod, known);
    }
    let is_sidecar =
        |name: &str| containers(pod).any(|(role, spec)| role == Role::Sidecar && spec.name == name);
    let has_ended = |status: &ContainerStatus| {
        let ended = |state: &Option<k8s_openapi::api::core::v1::ContainerState>| {
            state.as_ref().is_some_and(|state| state.terminated.is_some())
        };
        ended(&status.state) || ended(&status.last_state)
    };
    let initialised = known.is_initialised(pod);
    let pending_init = inits.iter().any(|init| match is_sidecar(&init.name) {
        true => init.started != Some(true) && !initialised,
        // One that has failed is about to be tried again.
        false => !init.ready && !initialised,
    });
    let runs = |status: &ContainerStatus| {
        status.state.as_ref().is_some_and(|state| state.running.is_some())
    };
    let waits = mains.iter().any(|main| !runs(main) && !has_ended(main));
    if pending_init || waits { "Pending" } else { "Running" }
}

/// How a pod ends whose containers have all ended or will never start.
fn verdict(pod: &Pod, known: &Known) -> &'static str {
    if let Some(stop) = &known.stop
        && matches!(stop.why, Why::Deadline | Why::Evicted(_))
    {
        return "Failed";
    }
    let all = containers(pod).filter(|(role, _)| *role != Role::Sidecar);
    let mut states = all.map(|(_, spec)| known.containers.get(&spec.name).map(|own| &own.state));
    let succeeded = states.all(|state| match state {
        Some(State::Ended(ended)) => ended.exit_code == 0,
        _ => false,
    });
    if succeeded { "Succeeded" } else { "Failed" }
}
