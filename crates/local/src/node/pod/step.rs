//! The next actions.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container as Spec, Pod};

use super::{
    Action, Cause, Known, Note, Policy, Role, Setting, State, Step, Stop, Why, containers,
    full_name, grace,
};

/// An end or a refusal is shown as it is for this long, then as the wait that follows it.
pub(super) const SETTLE: SignedDuration = SignedDuration::from_secs(1);
/// What a sidecar has at least, when the main containers took all the time.
const LEAST: SignedDuration = SignedDuration::from_secs(2);
const OVERDUE: &str = "Pod was active on the node longer than the specified deadline";

/// What is to be done now. What is decided is kept in `known`, so it is decided once.
pub fn step(pod: &Pod, known: &mut Known, now: Timestamp) -> Step {
    let mut step = Step::default();
    note_stop(pod, known, now, &mut step);
    if known.stop.is_some() {
        stop(pod, known, now, &mut step);
    } else if !known.over {
        go_on(pod, known, now, &mut step);
    } else if !known.is_still() {
        // Said to be over by somebody else: nothing of it may go on.
        known.stop = Some(Stop { why: Why::Finished, by: now });
        stop(pod, known, now, &mut step);
    }
    step
}

/// The seconds for which the pod may be active, as a point in time.
fn deadline(pod: &Pod, known: &Known) -> Option<Timestamp> {
    let seconds = pod.spec.as_ref()?.active_deadline_seconds?;
    known.since.checked_add(SignedDuration::from_secs(seconds)).ok()
}

fn note_stop(pod: &Pod, known: &mut Known, now: Timestamp, step: &mut Step) {
    let by = now + SignedDuration::from_secs(grace(pod).clamp(0, i64::from(u32::MAX)));
    if pod.metadata.deletion_timestamp.is_some() {
        match &mut known.stop {
            // Only a deletion may hurry it.
            Some(stop) => stop.by = stop.by.min(by),
            None => known.stop = Some(Stop { why: Why::Deleted, by }),
        }
        return;
    }
    if known.stop.is_some() || known.over {
        return;
    }
    if known.is_finished(pod) {
        known.stop = Some(Stop { why: Why::Finished, by });
        return;
    }
    match deadline(pod, known) {
        Some(deadline) if deadline <= now => {
            step.notes.push(Note::normal("DeadlineExceeded", OVERDUE));
            known.stop = Some(Stop { why: Why::Deadline, by });
        }
        Some(deadline) => step.wake(deadline),
        None => {}
    }
}

/// Main containers first, then sidecars one by one in reverse order.
fn stop(pod: &Pod, known: &mut Known, now: Timestamp, step: &mut Step) {
    let Some(Stop { by, why }) = known.stop.clone() else { return };
    let running = |known: &Known, sidecars: bool| -> Vec<String> {
        let all = containers(pod).rev().filter(|(role, _)| (*role == Role::Sidecar) == sidecars);
        all.map(|(_, spec)| spec.name.clone()).filter(|name| known.runs(name)).collect()
    };
    let mains = running(known, false);
    for name in &mains {
        end(known, name, by, step);
    }
    if !mains.is_empty() {
        return;
    }
    if let Some(last) = running(known, true).first() {
        let told = known.containers.get(last).and_then(|known| known.stopping);
        let by = match known.hurried {
            true => by,
            false => told.unwrap_or_else(|| by.max(now + LEAST)),
        };
        end(known, last, by, step);
        return;
    }
    if !known.over && why != Why::Shutdown {
        known.over = true;
        step.actions.push(Action::Release);
    }
    if pod.metadata.deletion_timestamp.is_some() && why != Why::Shutdown {
        step.actions.push(Action::Remove);
    }
}

/// Tells a container to end, or to end sooner.
fn end(known: &mut Known, name: &str, by: Timestamp, step: &mut Step) {
    let Some(container) = known.containers.get_mut(name) else { return };
    let by = container.doomed.map_or(by, |doomed| doomed.min(by));
    match container.stopping {
        Some(told) if told <= by => return,
        Some(_) => {}
        None => {
            step.notes.push(Note::normal("Killing", format!("Stopping container {name}")).of(name));
        }
    }
    container.stopping = Some(by);
    step.actions.push(Action::Stop { container: name.to_owned(), by });
}

fn go_on(pod: &Pod, known: &mut Known, now: Timestamp, step: &mut Step) {
    match known.setting {
        Setting::Due => return step.actions.push(Action::Prepare),
        Setting::Failed { retry, .. } if retry <= now => return step.actions.push(Action::Prepare),
        Setting::Failed { retry, .. } => return step.wake(retry),
        Setting::Ready => {}
    }
    let initialised = known.is_initialised(pod) && !known.restored;
    for (role, spec) in containers(pod) {
        if role == Role::Init && initialised {
            continue;
        }
        drive(pod, known, (role, spec), now, step);
        if role != Role::Main && !initialised && !has_passed(known, role, spec) {
            return;
        }
    }
}

/// The next container may start.
fn has_passed(known: &Known, role: Role, spec: &Spec) -> bool {
    let Some(container) = known.containers.get(&spec.name) else { return false };
    match (&container.state, role) {
        (State::Running(_), Role::Sidecar) => container.started,
        (State::Ended(ended), Role::Init) => ended.exit_code == 0,
        _ => false,
    }
}

/// What one container needs.
fn drive(
    pod: &Pod,
    known: &mut Known,
    (role, spec): (Role, &Spec),
    now: Timestamp,
    step: &mut Step,
) {
    let policy = Policy::of(pod);
    let Some(container) = known.containers.get_mut(&spec.name) else { return };
    let name = &spec.name;
    match &container.state {
        State::Fresh => step.actions.push(Action::Start(name.clone())),
        State::Running(run) => {
            let image = spec.image.as_deref().unwrap_or_default();
            if container.doomed.is_none() && run.image != image {
                container.doomed = Some(now + SignedDuration::from_secs(grace(pod)));
                container.outdated = true;
                let text = format!("Container {name} definition changed, will be restarted");
                step.notes.push(Note::normal("Killing", text).of(name));
            }
            if let Some(by) = container.doomed
                && container.stopping.is_none()
            {
                container.stopping = Some(by);
                step.actions.push(Action::Stop { container: name.clone(), by });
            }
        }
        State::Refused(refusal) if refusal.retry <= now => {
            step.actions.push(Action::Start(name.clone()));
        }
        State::Refused(refusal) => {
            step.wake(refusal.retry);
            if refusal.cause == Cause::Pull && !container.told {
                if refusal.since + SETTLE > now {
                    return step.wake(refusal.since + SETTLE);
                }
                container.told = true;
                let image = spec.image.as_deref().unwrap_or_default();
                let text = format!("Back-off pulling image {image:?}");
                step.notes.push(Note::normal("BackOff", text).of(name));
                step.notes.push(Note::warning("Failed", "Error: ImagePullBackOff").of(name));
            }
        }
        State::Ended(ended) if !container.restarts(policy, role, ended) => {}
        State::Ended(_) if container.outdated => step.actions.push(Action::Start(name.clone())),
        State::Ended(ended) => {
            let due = ended.finished + container.backoff.wait(ended.finished);
            if due <= now {
                container.backoff.restart(ended.finished, now);
                return step.actions.push(Action::Start(name.clone()));
            }
            step.wake(due);
            if container.told {
                return;
            }
            if ended.finished + SETTLE > now {
                return step.wake(ended.finished + SETTLE);
            }
            container.told = true;
            let pod = full_name(pod);
            let text = format!("Back-off restarting failed container {name} in pod {pod}");
            step.notes.push(Note::warning("BackOff", text).of(name));
        }
    }
}
