//! What a Deployment says of itself.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSetCondition,
};

use super::{
    reasons,
    sets::{Set, Sets, desired, slack},
};
use crate::controllers::stamp;

const AVAILABLE: &str = "Available";
pub(super) const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";
/// Stands for no deadline.
const NEVER: i32 = i32::MAX;

pub(super) fn condition<'a>(
    status: &'a DeploymentStatus,
    kind: &str,
) -> Option<&'a DeploymentCondition> {
    status.conditions.as_deref()?.iter().find(|condition| condition.type_ == kind)
}

pub(super) fn new_condition(
    kind: &str,
    status: &str,
    (reason, message): (&str, &str),
    now: Timestamp,
) -> DeploymentCondition {
    DeploymentCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(stamp(now)),
        last_transition_time: Some(stamp(now)),
    }
}

/// The same status for the same reason is no news.
pub(super) fn set_condition(status: &mut DeploymentStatus, mut new: DeploymentCondition) {
    if let Some(old) = condition(status, &new.type_) {
        if old.status == new.status && old.reason == new.reason {
            return;
        }
        if old.status == new.status {
            new.last_transition_time.clone_from(&old.last_transition_time);
        }
    }
    remove_condition(status, &new.type_);
    status.conditions.get_or_insert_default().push(new);
}

fn remove_condition(status: &mut DeploymentStatus, kind: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != kind);
    }
    status.conditions.take_if(|conditions| conditions.is_empty());
}

pub(super) fn deadline(spec: &DeploymentSpec) -> Option<SignedDuration> {
    let seconds = spec.progress_deadline_seconds.filter(|seconds| *seconds != NEVER)?;
    Some(SignedDuration::from_secs(seconds.into()))
}

/// The counts, and whether enough of it is available.
pub(super) fn counted(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sets: &Sets,
    now: Timestamp,
) -> DeploymentStatus {
    let old = deployment.status.clone().unwrap_or_default();
    let available = sets.sum(Set::available);
    let wanted = sets.sum(|set| set.replicas);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: shown(sets.sum(Set::actual)),
        updated_replicas: shown(sets.new.as_ref().map_or(0, Set::actual)),
        ready_replicas: shown(sets.sum(Set::ready)),
        available_replicas: shown(available),
        unavailable_replicas: shown((wanted - available).max(0)),
        terminating_replicas: sets.terminating().map(number),
        collision_count: old.collision_count,
        conditions: old.conditions,
    };
    let new = if available >= desired(spec) - slack(spec).unavailable {
        let text = (reasons::AVAILABLE, "Deployment has minimum availability.");
        new_condition(AVAILABLE, "True", text, now)
    } else {
        let text = (reasons::UNAVAILABLE, "Deployment does not have minimum availability.");
        new_condition(AVAILABLE, "False", text, now)
    };
    set_condition(&mut status, new);
    status
}

/// All desired pods are of the newest set and available, and no others are left.
pub(super) fn is_complete(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    status: &DeploymentStatus,
) -> bool {
    let desired = desired(spec);
    let is_desired = |count: Option<i32>| i64::from(count.unwrap_or_default()) == desired;
    is_desired(status.updated_replicas)
        && is_desired(status.replicas)
        && is_desired(status.available_replicas)
        && status.observed_generation >= deployment.metadata.generation
}

fn has_progressed(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let count = |count: Option<i32>| count.unwrap_or_default();
    let of_old_sets =
        |status: &DeploymentStatus| count(status.replicas) - count(status.updated_replicas);
    count(new.updated_replicas) > count(old.updated_replicas)
        || of_old_sets(new) < of_old_sets(old)
        || count(new.ready_replicas) > count(old.ready_replicas)
        || count(new.available_replicas) > count(old.available_replicas)
}

fn is_timed_out(spec: &DeploymentSpec, status: &DeploymentStatus, now: Timestamp) -> bool {
    let Some(known) = condition(status, PROGRESSING) else { return false };
    match known.reason.as_deref() {
        Some(reasons::COMPLETE) => false,
        Some(reasons::TIMED_OUT) => true,
        _ => due(spec, known).is_some_and(|due| due < now),
    }
}

/// When the time for the next progress is over.
fn due(spec: &DeploymentSpec, progressing: &DeploymentCondition) -> Option<Timestamp> {
    let since = progressing.last_update_time.as_ref()?.0;
    since.checked_add(deadline(spec)?).ok()
}

/// During a rollout: with its progress, and with what keeps sets from making pods.
pub(super) fn rolled_out(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sets: &Sets,
    now: Timestamp,
) -> DeploymentStatus {
    let mut status = counted(deployment, spec, sets, now);
    if deadline(spec).is_none() {
        remove_condition(&mut status, PROGRESSING);
    } else {
        estimate_progress(deployment, spec, sets, &mut status, now);
    }
    match failure(sets) {
        Some(failure) => set_condition(&mut status, failure),
        None => remove_condition(&mut status, REPLICA_FAILURE),
    }
    status
}

fn estimate_progress(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sets: &Sets,
    status: &mut DeploymentStatus,
    now: Timestamp,
) {
    let old = deployment.status.clone().unwrap_or_default();
    let known = condition(&old, PROGRESSING);
    let was_complete =
        known.is_some_and(|known| known.reason.as_deref() == Some(reasons::COMPLETE));
    if was_complete && status.replicas == status.updated_replicas {
        return;
    }
    let subject = match &sets.new {
        Some(new) => format!("ReplicaSet {:?}", new.name()),
        None => {
            format!("Deployment {:?}", deployment.metadata.name.as_deref().unwrap_or_default())
        }
    };
    let progressing = |value: &str, reason: &str, text: &str| {
        new_condition(PROGRESSING, value, (reason, &format!("{subject} {text}.")), now)
    };
    if is_complete(deployment, spec, status) {
        let text = "has successfully progressed";
        set_condition(status, progressing("True", reasons::COMPLETE, text));
    } else if has_progressed(&old, status) {
        let mut new = progressing("True", reasons::UPDATED, "is progressing");
        // Every progress is news here: the deadline counts from the last one.
        if let Some(known) = known.filter(|known| known.status == "True") {
            new.last_transition_time.clone_from(&known.last_transition_time);
        }
        remove_condition(status, PROGRESSING);
        set_condition(status, new);
    } else if is_timed_out(spec, status, now) {
        let text = "has timed out progressing";
        set_condition(status, progressing("False", reasons::TIMED_OUT, text));
    }
}

/// Of the newest set rather than of old ones.
fn failure(sets: &Sets) -> Option<DeploymentCondition> {
    let all = sets.new.iter().chain(&sets.old);
    let conditions =
        all.filter_map(|set| set.object.status.as_ref()?.conditions.as_deref()).flatten();
    let mut failures = conditions.filter(|condition| condition.type_ == REPLICA_FAILURE);
    failures.next().map(|failure: &ReplicaSetCondition| DeploymentCondition {
        type_: failure.type_.clone(),
        status: failure.status.clone(),
        reason: failure.reason.clone(),
        message: failure.message.clone(),
        last_update_time: failure.last_transition_time.clone(),
        last_transition_time: failure.last_transition_time.clone(),
    })
}

/// When to look whether the deadline is over; `None` if nothing is under way.
pub(super) fn next_check(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<SignedDuration> {
    let known = condition(status, PROGRESSING)?;
    // Neither has a deadline any more, however long ago the last progress was.
    let is_over = matches!(known.reason.as_deref(), Some(reasons::TIMED_OUT | reasons::COMPLETE));
    let is_held = spec.paused == Some(true) || deployment.metadata.deletion_timestamp.is_some();
    if is_over || is_held || is_complete(deployment, spec, status) {
        return None;
    }
    // Times of conditions have no fractions: a little later is surely over.
    let second = SignedDuration::from_secs(1);
    let left = due(spec, known)?.duration_since(now).saturating_add(second);
    Some(left.max(second))
}

fn number(count: i64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Zero is left out.
fn shown(count: i64) -> Option<i32> {
    Some(number(count)).filter(|count| *count != 0)
}
