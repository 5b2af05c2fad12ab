//! What a Deployment needs next.
//!
//! One look yields one step at most: what it changes brings the next look.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet},
    core::v1::Pod,
};
use kube::ResourceExt;

use super::{
    REVISION, reasons, scale,
    sets::{Set, Sets, desired, is_rolling},
    status::{self, PROGRESSING, new_condition, set_condition},
    template,
};
use crate::controllers::{cache::controller, pods};

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) actions: Vec<Action>,
    pub(super) status: DeploymentStatus,
    /// To be noted at the Deployment.
    pub(super) revision: Option<String>,
    pub(super) again: Option<SignedDuration>,
}

#[derive(Debug)]
pub(super) enum Action {
    Create(Box<ReplicaSet>),
    Annotate { set: Arc<ReplicaSet>, annotations: BTreeMap<String, String> },
    Scale { set: Arc<ReplicaSet>, from: i64, to: i64 },
    Delete(Arc<ReplicaSet>),
}

/// What is known of a Deployment.
pub(super) struct Known<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) spec: &'a DeploymentSpec,
    pub(super) sets: Sets,
    /// All of its namespace.
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) now: Timestamp,
}

impl Known<'_> {
    pub(super) fn plan(&self) -> Plan {
        if self.deployment.metadata.deletion_timestamp.is_some() {
            return self.step(Vec::new(), self.counted(&self.sets));
        }
        let first = self.pause_or_resume().or_else(|| self.number_new());
        if let Some(plan) = first {
            return plan;
        }
        let is_paused = self.spec.paused == Some(true);
        if is_paused || scale::is_scaled(self.spec, &self.sets) {
            return self.rescale(is_paused);
        }
        match is_rolling(self.spec) {
            true => self.roll(),
            false => self.recreate(),
        }
    }

    fn step(&self, actions: Vec<Action>, status: DeploymentStatus) -> Plan {
        Plan { actions, status, revision: None, again: None }
    }

    /// A step of a rollout, whose time may run out before anything else happens.
    fn rollout(&self, actions: Vec<Action>, next: &Sets) -> Plan {
        let status = status::rolled_out(self.deployment, self.spec, next, self.now);
        let again = status::next_check(self.deployment, self.spec, &status, self.now);
        Plan { again, ..self.step(actions, status) }
    }

    fn status(&self) -> DeploymentStatus {
        self.deployment.status.clone().unwrap_or_default()
    }

    fn counted(&self, sets: &Sets) -> DeploymentStatus {
        status::counted(self.deployment, self.spec, sets, self.now)
    }

    /// Says that it is paused or not any more, so that the pause does not count as lack of progress.
    fn pause_or_resume(&self) -> Option<Plan> {
        status::deadline(self.spec)?;
        let mut status = self.status();
        let reason = status::condition(&status, PROGRESSING).and_then(|c| c.reason.clone());
        let was_paused = reason.as_deref() == Some(reasons::PAUSED);
        let text = match (self.spec.paused == Some(true), was_paused) {
            // That it has not progressed remains to be said.
            _ if reason.as_deref() == Some(reasons::TIMED_OUT) => return None,
            (true, false) => (reasons::PAUSED, "Deployment is paused"),
            (false, true) => (reasons::RESUMED, "Deployment is resumed"),
            _ => return None,
        };
        set_condition(&mut status, new_condition(PROGRESSING, "Unknown", text, self.now));
        Some(self.step(Vec::new(), status))
    }

    /// Keeps the annotations of the newest set, and the revision of the Deployment, up to date.
    fn number_new(&self) -> Option<Plan> {
        let new = self.sets.new.as_ref()?;
        let known = new.object.annotations();
        let annotations = template::annotations(self.deployment, known, self.next_revision());
        let spec = new.object.spec.as_ref()?;
        let seconds = |seconds: Option<i32>| seconds.unwrap_or_default();
        let waits = seconds(spec.min_ready_seconds) != seconds(self.spec.min_ready_seconds);
        if waits || annotations != *known {
            let set = new.object.clone();
            return Some(self.step(vec![Action::Annotate { set, annotations }], self.status()));
        }
        let mut status = self.status();
        if status::deadline(self.spec).is_some()
            && status::condition(&status, PROGRESSING).is_none()
        {
            let message = format!("Found new replica set {:?}", new.name());
            let text = (reasons::FOUND, &*message);
            set_condition(&mut status, new_condition(PROGRESSING, "True", text, self.now));
        } else if self.deployment.annotations().get(REVISION) == known.get(REVISION) {
            return None;
        }
        let revision = known.get(REVISION).cloned();
        Some(Plan { revision, ..self.step(Vec::new(), status) })
    }

    fn next_revision(&self) -> i64 {
        let last = self.sets.old.iter().map(Set::revision).max().unwrap_or_default();
        last.saturating_add(1)
    }

    fn rescale(&self, is_paused: bool) -> Plan {
        let mut next = self.sets.clone();
        scale::rescale(self.deployment, self.spec, &mut next);
        // Sets that keep their size remember the new one too, or this would never end.
        let mut actions = self.scaling(&next, true);
        if is_paused {
            actions.extend(self.surplus());
        }
        self.step(actions, self.counted(&next))
    }

    fn roll(&self) -> Plan {
        if self.sets.new.is_none() {
            return self.create();
        }
        let mut next = self.sets.clone();
        let size = scale::size_of_new(self.spec, &next);
        if let Some(new) = &mut next.new {
            new.replicas = size;
        }
        let mut actions = self.scaling(&next, false);
        if actions.is_empty() {
            scale::shrink_old(self.spec, &mut next);
            actions = self.scaling(&next, false);
        }
        self.finish(actions, &next)
    }

    fn recreate(&self) -> Plan {
        let mut next = self.sets.clone();
        next.old.iter_mut().for_each(|old| old.replicas = 0);
        let actions = self.scaling(&next, false);
        if !actions.is_empty() || self.has_old_pods() {
            return self.rollout(actions, &next);
        }
        let Some(new) = &mut next.new else { return self.create() };
        new.replicas = desired(self.spec);
        let actions = self.scaling(&next, false);
        self.finish(actions, &next)
    }

    fn finish(&self, mut actions: Vec<Action>, next: &Sets) -> Plan {
        if actions.is_empty() && status::is_complete(self.deployment, self.spec, &self.status()) {
            actions.extend(self.surplus());
        }
        self.rollout(actions, next)
    }

    fn create(&self) -> Plan {
        let revision = self.next_revision();
        let size = scale::size_of_new(self.spec, &self.sets);
        let set = template::replica_set(self.deployment, self.spec, size, revision);
        let mut status = self.status();
        if status::deadline(self.spec).is_some() {
            let message = format!("Created new replica set {:?}", set.name_any());
            let text = (reasons::CREATED, &*message);
            set_condition(&mut status, new_condition(PROGRESSING, "True", text, self.now));
        }
        let step = self.step(vec![Action::Create(Box::new(set))], status);
        Plan { revision: Some(revision.to_string()), ..step }
    }

    /// Whether anything of before may still run.
    fn has_old_pods(&self) -> bool {
        let of_old = |pod: &Pod| {
            let owner = controller(pod).map(|owner| owner.uid.as_str());
            self.sets
                .old
                .iter()
                .any(|set| owner.is_some() && set.object.metadata.uid.as_deref() == owner)
        };
        self.sets.old.iter().any(|set| set.actual() > 0)
            || self.pods.iter().any(|pod| !pods::is_finished(pod) && of_old(pod))
    }

    /// From today's sizes to those.
    fn scaling(&self, next: &Sets, remember: bool) -> Vec<Action> {
        let sizes = template::sizes(self.spec);
        let forgets = |set: &Set| {
            let known = set.object.annotations();
            sizes.iter().any(|(key, value)| known.get(key) != Some(value))
        };
        let pairs = self.sets.all().zip(next.all());
        let changed = pairs.filter(|(old, new)| {
            old.replicas != new.replicas || (remember && old.is_active() && forgets(old))
        });
        let action = |(old, new): (&Set, &Set)| Action::Scale {
            set: old.object.clone(),
            from: old.replicas,
            to: new.replicas,
        };
        changed.map(action).collect()
    }

    /// Old sets beyond those that are kept for a way back, by revision.
    fn surplus(&self) -> Vec<Action> {
        let Some(limit) = self.spec.revision_history_limit.filter(|limit| *limit != i32::MAX)
        else {
            return Vec::new();
        };
        let limit = usize::try_from(limit).unwrap_or_default();
        let alive = |set: &&Set| set.object.metadata.deletion_timestamp.is_none();
        let mut old: Vec<&Set> = self.sets.old.iter().filter(alive).collect();
        old.sort_by_key(|set| set.revision());
        let count = old.len().saturating_sub(limit);
        let is_idle = |set: &&&Set| {
            let meta = &set.object.metadata;
            let seen = set.object.status.as_ref().and_then(|status| status.observed_generation);
            set.replicas == 0 && set.actual() == 0 && meta.generation <= seen
        };
        old.iter()
            .take(count)
            .filter(is_idle)
            .map(|set| Action::Delete(set.object.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests;
