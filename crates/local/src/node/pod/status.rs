//! The status of a pod, as the API shows it.

use jiff::{Timestamp, Unit};
use k8s_openapi::{
    api::core::v1::{
        Container as Spec, ContainerState, ContainerStateRunning, ContainerStateTerminated,
        ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodIP, PodStatus,
        ResourceRequirements, VolumeMountStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::{
    Cause, Container, Ended, Known, Policy, Reason, Refusal, Role, State, Why, backoff::text,
    conditions, containers, full_name, has_inits, phase, step::SETTLE,
};

/// What containers are named by.
const SCHEME: &str = "windlass://";

/// All that is said of the pod. What others say in it is kept.
pub fn status(pod: &Pod, known: &Known, host: &str, now: Timestamp) -> PodStatus {
    let old = pod.status.clone().unwrap_or_default();
    let of = |wanted: fn(Role) -> bool| -> Vec<ContainerStatus> {
        let all = containers(pod).filter(|(role, _)| wanted(*role));
        all.map(|(role, spec)| container(pod, known, role, spec, now)).collect()
    };
    let inits = of(|role| role != Role::Main);
    let mains = of(|role| role == Role::Main);
    let is_over = known.over && known.is_still();
    let phase = match phase::of(pod, known, &inits, &mains, is_over) {
        // What has been said to be over stays so.
        _ if matches!(old.phase.as_deref(), Some("Succeeded" | "Failed")) => {
            old.phase.clone().unwrap_or_default()
        }
        phase => phase.to_owned(),
    };
    let (reason, message) = verdict(known, is_over).unwrap_or((old.reason, old.message));
    let address = known.address.clone();
    PodStatus {
        conditions: Some(conditions::of(pod, known, &inits, &mains, &phase, now)),
        init_container_statuses: Some(inits).filter(|inits| !inits.is_empty()),
        container_statuses: Some(mains),
        phase: Some(phase),
        reason,
        message,
        observed_generation: pod.metadata.generation,
        host_ip: Some(host.to_owned()),
        host_ips: Some(vec![HostIP { ip: host.to_owned() }]),
        pod_ips: address.clone().map(|ip| vec![PodIP { ip }]),
        pod_ip: address,
        start_time: Some(time(known.since)),
        ..old
    }
}

/// Why the node ended a pod that would have gone on.
fn verdict(known: &Known, is_over: bool) -> Option<(Option<String>, Option<String>)> {
    let (reason, message) = match &known.stop.as_ref().filter(|_| is_over)?.why {
        Why::Deadline => {
            ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
        }
        Why::Evicted(message) => ("Evicted", &**message),
        _ => return None,
    };
    Some((Some(reason.to_owned()), Some(message.to_owned())))
}

fn container(pod: &Pod, known: &Known, role: Role, spec: &Spec, now: Timestamp) -> ContainerStatus {
    let fresh = Container::default();
    let own = known.containers.get(&spec.name).unwrap_or(&fresh);
    let (state, last) = state(pod, known, (role, spec), own, now);
    let completed = matches!(&own.state, State::Ended(ended) if ended.exit_code == 0);
    let id = match &own.state {
        State::Running(run) => Some(&run.id),
        State::Ended(ended) => Some(&ended.id),
        _ => own.last.as_ref().map(|last| &last.id),
    };
    ContainerStatus {
        name: spec.name.clone(),
        state: Some(state),
        last_state: Some(last),
        ready: if role == Role::Init { completed } else { own.is_running() && own.ready },
        restart_count: own.restarts,
        image: spec.image.clone().unwrap_or_default(),
        image_id: own.image_id.clone(),
        container_id: id.map(|id| format!("{SCHEME}{id}")),
        started: Some(own.is_running() && own.started),
        allocated_resources: spec.resources.as_ref().and_then(|own| own.requests.clone()),
        resources: Some(ResourceRequirements {
            claims: None,
            ..spec.resources.clone().unwrap_or_default()
        }),
        volume_mounts: mounts(spec),
        ..ContainerStatus::default()
    }
}

fn mounts(spec: &Spec) -> Option<Vec<VolumeMountStatus>> {
    let mounts = spec.volume_mounts.as_ref()?.iter().map(|mount| {
        let read_only = mount.read_only.filter(|read_only| *read_only);
        VolumeMountStatus {
            name: mount.name.clone(),
            mount_path: mount.mount_path.clone(),
            read_only,
            recursive_read_only: read_only.map(|_| "Disabled".to_owned()),
        }
    });
    Some(mounts.collect())
}

/// The present state and the one before.
fn state(
    pod: &Pod,
    known: &Known,
    (role, spec): (Role, &Spec),
    own: &Container,
    now: Timestamp,
) -> (ContainerState, ContainerState) {
    let last = own.last.as_ref().map(terminated).unwrap_or_default();
    match &own.state {
        State::Fresh if own.last.is_some() => (waiting("ContainerCreating", None), last),
        State::Fresh if has_inits(pod.spec.as_ref()) => (waiting("PodInitializing", None), last),
        State::Fresh => (waiting("ContainerCreating", None), last),
        State::Refused(refusal) => (refused(spec, refusal, now), last),
        State::Running(run) => {
            let running = ContainerStateRunning { started_at: Some(time(run.since)) };
            (ContainerState { running: Some(running), ..ContainerState::default() }, last)
        }
        State::Ended(ended) => {
            let goes_on = known.stop.is_none() && !known.over;
            match Some(ended).filter(|_| goes_on && Policy::of(pod).restarts(role, ended)) {
                Some(ended) => match backed_off(pod, spec, own, ended, now) {
                    Some(waiting) => (waiting, terminated(ended)),
                    None => (terminated(ended), last),
                },
                None => (terminated(ended), last),
            }
        }
    }
}

/// The wait for a restart, once it is to be seen as one.
fn backed_off(
    pod: &Pod,
    spec: &Spec,
    own: &Container,
    ended: &Ended,
    now: Timestamp,
) -> Option<ContainerState> {
    if ended.reason == Reason::StartError {
        return Some(waiting("RunContainerError", Some(&ended.message)));
    }
    let wait = own.backoff.wait(ended.finished);
    if wait.is_zero() || ended.finished + SETTLE > now {
        return None;
    }
    let (wait, name, pod) = (text(wait), &spec.name, full_name(pod));
    let message = format!("back-off {wait} restarting failed container={name} pod={pod}");
    Some(waiting("CrashLoopBackOff", Some(&message)))
}

fn refused(spec: &Spec, refusal: &Refusal, now: Timestamp) -> ContainerState {
    let message = &refusal.message;
    match refusal.cause {
        Cause::Pull if refusal.since + SETTLE <= now => {
            let image = spec.image.as_deref().unwrap_or_default();
            let text = format!("Back-off pulling image {image:?}: ErrImagePull: {message}");
            waiting("ImagePullBackOff", Some(&text))
        }
        Cause::Pull => waiting("ErrImagePull", Some(message)),
        Cause::NeverPull => waiting("ErrImageNeverPull", Some(message)),
        Cause::ImageName => waiting("InvalidImageName", Some(message)),
        Cause::Config => waiting("CreateContainerConfigError", Some(message)),
        Cause::Create => waiting("CreateContainerError", Some(message)),
    }
}

fn waiting(reason: &str, message: Option<&str>) -> ContainerState {
    let waiting = ContainerStateWaiting {
        reason: Some(reason.to_owned()),
        message: message.map(str::to_owned),
    };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn terminated(ended: &Ended) -> ContainerState {
    let terminated = ContainerStateTerminated {
        exit_code: ended.exit_code,
        reason: Some(ended.reason.as_str().to_owned()),
        message: Some(ended.message.clone()).filter(|message| !message.is_empty()),
        started_at: Some(time(ended.started)),
        finished_at: Some(time(ended.finished)),
        container_id: Some(format!("{SCHEME}{}", ended.id)),
        signal: None,
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

/// The id of a run, as it is kept inside.
pub(super) fn bare_id(id: &str) -> &str {
    id.strip_prefix(SCHEME).unwrap_or(id)
}

/// In whole seconds, as it will be read back.
pub(in crate::node) fn time(time: Timestamp) -> Time {
    let whole = jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Trunc);
    Time(time.round(whole).unwrap_or(time))
}
