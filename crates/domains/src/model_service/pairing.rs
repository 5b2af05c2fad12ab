//! Prefill and decode pods of one service change together.
//!
//! Caches travel from prefill to decode pods, and make sense only between pods of one revision: same
//! model, same engine, same arguments. Both Deployments roll on their own, so while a change of both is
//! under way old and new pods of either role exist side by side, and the endpoint picker, which
//! chooses a decode and a prefill pod for a request, cannot be told which of them belong together.
//!
//! So during such a change the picker gets no prefill pods to choose from. The pool is narrowed to
//! decode pods first; a decode pod that is handed no prefill pod does the whole work itself, as it
//! always does for short prompts. Only when the pool is narrow are both templates changed, and when
//! both rollouts are complete the pool takes in both roles again. At no time can a request meet pods
//! of two revisions, and at no time is there nobody to answer. The picker learns of the narrowed pool
//! and of new pods from the same API server, and a new pod has yet to load its model before it is
//! ready; so it cannot know a new pod and still use the old pool.
//!
//! What the pool selects is all the memory this needs: a restart of the operator goes on where the
//! last one stopped, and a rollout that does not come to its end leaves decode pods serving alone.
//! A change of one role only (its resources, say) does not separate the two. Where the pool was
//! deleted or widened in the middle of a change, or another operator began one, the old pods tell.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use windlass_api::foreign::inference_pool::InferencePool;

use super::names::{ROLE_LABEL, Role};
use super::replicas;

#[cfg(test)]
mod tests;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairing {
    /// The pool has the pods of all roles.
    Paired,
    /// The pool has decode pods only.
    Apart {
        /// The pool is not narrow yet, so the Deployments must stay as they are.
        hold: bool,
    },
}

impl Pairing {
    /// The role that the pool is limited to.
    pub(super) fn only(self) -> Option<Role> {
        match self {
            Self::Paired => None,
            Self::Apart { .. } => Some(Role::Decode),
        }
    }

    pub(super) fn holds(self) -> bool {
        self == Self::Apart { hold: true }
    }
}

/// A role as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) live: Option<&'a Deployment>,
    /// Whether the live Deployment is of the wanted revision.
    pub(super) is_wanted: bool,
}

/// For services with both roles. `pool` is the live one, if there is one.
pub(super) fn decide(decode: Seen<'_>, prefill: Seen<'_>, pool: Option<&InferencePool>) -> Pairing {
    let both_change = decode.live.is_some() && !decode.is_wanted && !prefill.is_wanted;
    let both_roll = has_old_pods(decode) && has_old_pods(prefill);
    match pool {
        // Without a pool no request finds its way, so there is nothing to wait for. Nor does it tell
        // what it was in the middle of, so any old pod counts.
        None if both_change || may_roll(decode) || may_roll(prefill) => {
            Pairing::Apart { hold: false }
        }
        None => Pairing::Paired,
        Some(pool) if !is_narrow(pool) && both_change => Pairing::Apart { hold: true },
        // Somebody has widened it, or the operator before us began.
        Some(pool) if !is_narrow(pool) && both_roll => Pairing::Apart { hold: false },
        Some(pool) if !is_narrow(pool) => Pairing::Paired,
        Some(_) if is_complete(decode) && is_complete(prefill) => Pairing::Paired,
        Some(_) => Pairing::Apart { hold: false },
    }
}

fn is_narrow(pool: &InferencePool) -> bool {
    pool.spec.selector.match_labels.contains_key(ROLE_LABEL)
}

fn status<'a>(seen: Seen<'a>) -> Option<&'a DeploymentStatus> {
    seen.live?.status.as_ref()
}

fn count(number: Option<i32>) -> i32 {
    number.unwrap_or_default()
}

fn has_old_pods(seen: Seen<'_>) -> bool {
    status(seen).is_some_and(|status| count(status.replicas) > count(status.updated_replicas))
}

/// There are old pods, or the Deployment has changed and it is not known yet whether there are.
fn may_roll(seen: Seen<'_>) -> bool {
    let unseen = |status: &DeploymentStatus| {
        let generation = seen.live.and_then(|live| live.metadata.generation);
        count(status.replicas) > 0 && status.observed_generation < generation
    };
    has_old_pods(seen) || status(seen).is_some_and(unseen)
}

/// All pods are of the wanted revision, and those of the old one are gone.
fn is_complete(seen: Seen<'_>) -> bool {
    let Some(live) = seen.live.filter(|_| seen.is_wanted) else { return false };
    let Some(status) = &live.status else { return false };
    let size = replicas::size(live);
    status.observed_generation >= live.metadata.generation
        && count(status.updated_replicas) >= size
        && count(status.replicas) <= count(status.updated_replicas)
        && count(status.available_replicas) >= size
}
