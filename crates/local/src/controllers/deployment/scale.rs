//! How large each ReplicaSet is to be next.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};

use super::{
    DESIRED_REPLICAS,
    sets::{Set, Sets, desired, is_rolling, slack},
};

/// The size of a set that is the newest or about to be made.
pub(super) fn size_of_new(spec: &DeploymentSpec, sets: &Sets) -> i64 {
    let desired = desired(spec);
    let current = sets.new.as_ref().map_or(0, |new| new.replicas);
    if !is_rolling(spec) || current >= desired {
        return desired;
    }
    let room = desired + slack(spec).surge - sets.sum(|set| set.replicas);
    current + room.clamp(0, desired - current)
}

/// The next step down of the old sets in a rolling update, oldest first: pods that serve nobody
/// go at once, others as new ones take over.
pub(super) fn shrink_old(spec: &DeploymentSpec, sets: &mut Sets) {
    let least = desired(spec) - slack(spec).unavailable;
    let missing = sets.new.as_ref().map_or(0, |new| new.replicas - new.available());
    let mut spare = sets.sum(|set| set.replicas) - least - missing;
    if spare <= 0 {
        return;
    }
    for set in &mut sets.old {
        let idle = (set.replicas - set.available()).clamp(0, spare.max(0));
        let idle = if set.is_active() { idle } else { 0 };
        set.replicas -= idle;
        spare -= idle;
    }
    let mut replaced = sets.sum(Set::available) - least;
    for set in &mut sets.old {
        let step = set.replicas.min(replaced).max(0);
        set.replicas -= step;
        replaced -= step;
    }
}

/// Whether the wanted number has changed since the sets were last scaled.
pub(super) fn is_scaled(spec: &DeploymentSpec, sets: &Sets) -> bool {
    let mut known = sets.all().filter(|set| set.is_active());
    known.any(|set| set.annotated(DESIRED_REPLICAS).is_some_and(|known| known != desired(spec)))
}

/// Brings the sets to the wanted number without furthering a rollout: one set alone takes all of
/// it, several share it by their sizes.
pub(super) fn rescale(deployment: &Deployment, spec: &DeploymentSpec, sets: &mut Sets) {
    let desired = desired(spec);
    let active = sets.all().filter(|set| set.is_active()).count();
    if active <= 1 {
        let mut all = sets.old.iter_mut().rev();
        let one = match active {
            1 => all.chain(&mut sets.new).find(|set| set.is_active()),
            _ => sets.new.as_mut().or_else(|| all.next()),
        };
        if let Some(one) = one {
            one.replicas = desired;
        }
        return;
    }
    if sets.new.as_ref().is_some_and(|new| is_saturated(new, desired)) {
        sets.old.iter_mut().for_each(|old| old.replicas = 0);
        return;
    }
    if is_rolling(spec) {
        share(deployment, spec, sets);
    }
}

fn is_saturated(new: &Set, desired: i64) -> bool {
    new.replicas == desired
        && new.annotated(DESIRED_REPLICAS) == Some(desired)
        && new.available() == desired
}

/// Each active set gets its part of what is added or taken, the largest the rest.
fn share(deployment: &Deployment, spec: &DeploymentSpec, sets: &mut Sets) {
    let desired = desired(spec);
    let most = desired + slack(spec).surge;
    let allowed = if desired > 0 { most } else { 0 };
    let total = sets.sum(|set| if set.is_active() { set.replicas } else { 0 });
    let change = allowed - total;
    if change == 0 {
        return;
    }
    let before = deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or_default();
    let mut all: Vec<&mut Set> =
        sets.old.iter_mut().chain(&mut sets.new).filter(|set| set.is_active()).collect();
    all.sort_by(|one, other| {
        let by_age =
            |set: &Set| (set.object.metadata.creation_timestamp.clone(), set.name().to_owned());
        let (old, young) = (by_age(one), by_age(other));
        // Of the same size, the young ones grow first and the old ones shrink first.
        let age = if change > 0 { young.cmp(&old) } else { old.cmp(&young) };
        other.replicas.cmp(&one.replicas).then(age)
    });
    let mut left = change;
    for set in &mut all {
        let part = part(set.replicas, most, set.max_before().unwrap_or(before.into()), desired);
        let part = if change > 0 { part.min(left) } else { part.max(left) };
        set.replicas += part;
        left -= part;
    }
    if let Some(largest) = all.first_mut() {
        largest.replicas = (largest.replicas + left).max(0);
    }
}

/// How much a set of this size changes when the most of all together changes.
fn part(replicas: i64, most: i64, before: i64, desired: i64) -> i64 {
    if desired == 0 {
        return -replicas;
    }
    if before == 0 {
        return 0;
    }
    // To the nearest, halves up.
    (2 * replicas * most + before).div_euclid(2 * before) - replicas
}

#[cfg(test)]
mod tests;
