//! What a Job needs next: its end, pods to be made, or pods to be deleted.

use std::{collections::BTreeSet, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{
        batch::v1::{Job, JobCondition, JobSpec, JobStatus},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::{FINALIZER, backoff::Backoff, conditions, reasons};
use crate::controllers::pods::{is_active, is_ready, is_terminating, phase, removal_order};

/// What is known of a Job that has not ended.
pub(super) struct Known<'a> {
    pub(super) job: &'a Job,
    pub(super) spec: &'a JobSpec,
    /// Its own.
    pub(super) pods: &'a [Arc<Pod>],
    /// What was known of failures before.
    pub(super) backoff: Backoff,
    pub(super) now: Timestamp,
}

/// What is to be done about its pods.
#[derive(Debug, PartialEq)]
pub(super) enum Work {
    /// Nothing, or nothing yet.
    None,
    Create(usize),
    /// They count as failed when they are gone.
    End(Vec<Arc<Pod>>),
    /// They do not count.
    Drop(Vec<Arc<Pod>>),
}

#[derive(Debug)]
pub(super) struct Decision {
    pub(super) work: Work,
    /// `SuccessCriteriaMet` or `FailureTarget`, once it is clear how the Job ends.
    pub(super) end: Option<JobCondition>,
    pub(super) start_time: Option<Time>,
    pub(super) backoff: Backoff,
    pub(super) again: Option<SignedDuration>,
}

/// How the pods are counted.
pub(super) struct Counts {
    pub(super) active: i64,
    pub(super) ready: i64,
    pub(super) terminating: i64,
    pub(super) succeeded: i64,
    failed: i64,
}

impl Known<'_> {
    pub(super) fn status(&self) -> JobStatus {
        self.job.status.clone().unwrap_or_default()
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.job.metadata.deletion_timestamp.is_some()
    }

    /// A deleted pod may never get to say that it failed, and one without a node never does.
    pub(super) fn is_failed(&self, pod: &Pod) -> bool {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        let has_node = node.is_some_and(|node| !node.is_empty());
        let waits_for_the_end =
            has_node && self.spec.pod_replacement_policy.as_deref() == Some("Failed");
        phase(pod) == "Failed"
            || (!waits_for_the_end
                && pod.metadata.deletion_timestamp.is_some()
                && phase(pod) != "Succeeded")
    }

    fn active(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods.iter().filter(|pod| is_active(pod))
    }

    /// Ended since they were last counted: the succeeded and the failed ones.
    fn ended(&self) -> (Vec<&Pod>, Vec<&Pod>) {
        let uncounted = self.status().uncounted_terminated_pods.unwrap_or_default();
        let known: BTreeSet<&String> =
            uncounted.succeeded.iter().chain(&uncounted.failed).flatten().collect();
        let is_new = |pod: &&Arc<Pod>| {
            is_tracked(pod) && pod.metadata.uid.as_ref().is_none_or(|uid| !known.contains(uid))
        };
        let fresh: Vec<&Pod> = self.pods.iter().filter(is_new).map(|pod| &**pod).collect();
        let succeeded = |pod: &&&Pod| phase(pod) == "Succeeded";
        let failed = |pod: &&&Pod| self.is_failed(pod);
        (
            fresh.iter().filter(succeeded).copied().collect(),
            fresh.iter().filter(failed).copied().collect(),
        )
    }

    pub(super) fn counts(&self) -> Counts {
        let status = self.status();
        let uncounted = status.uncounted_terminated_pods.unwrap_or_default();
        let (succeeded, failed) = self.ended();
        let sum = |counted: Option<i32>, uncounted: &Option<Vec<String>>, fresh: usize| {
            i64::from(counted.unwrap_or_default())
                + count(uncounted.as_ref().map_or(0, Vec::len))
                + count(fresh)
        };
        Counts {
            active: count(self.active().count()),
            ready: count(self.active().filter(|pod| is_ready(pod)).count()),
            terminating: count(self.pods.iter().filter(|pod| is_terminating(pod)).count()),
            succeeded: sum(status.succeeded, &uncounted.succeeded, succeeded.len()),
            failed: sum(status.failed, &uncounted.failed, failed.len()),
        }
    }

    pub(super) fn decide(&self) -> Decision {
        let counts = self.counts();
        let (succeeded, failed) = self.ended();
        let backoff = self.backoff.after(&succeeded, &failed);
        let status = self.status();
        let start_time = match status.start_time {
            None if !self.is_suspended() => Some(crate::controllers::stamp(self.now)),
            known => known,
        };
        let mut decision =
            Decision { work: Work::None, end: None, start_time, backoff, again: None };
        decision.end = self.known_end().or_else(|| self.failure(&counts, &mut decision));
        if decision.end.is_some() {
            decision.work = Work::End(self.active().cloned().collect());
            return decision;
        }
        if !self.is_leaving() {
            let (work, wait) = self.manage(&counts, backoff);
            decision.work = work;
            decision.again = decision.again.into_iter().chain(wait).min();
        }
        decision
    }

    /// What an earlier look has found.
    fn known_end(&self) -> Option<JobCondition> {
        let status = self.status();
        let met = conditions::is_true(&status, conditions::SUCCESS_CRITERIA_MET);
        met.or_else(|| conditions::is_true(&status, conditions::FAILURE_TARGET)).cloned()
    }

    fn failure(&self, counts: &Counts, decision: &mut Decision) -> Option<JobCondition> {
        let limit = i64::from(self.spec.backoff_limit.unwrap_or(6));
        let failed = |(reason, message): (&str, &str)| {
            Some(conditions::new(conditions::FAILURE_TARGET, reason, message, self.now))
        };
        if counts.failed > limit || self.restarts().is_some_and(|n| n > 0 && n >= limit) {
            return failed(reasons::BACKOFF_LIMIT);
        }
        let allowed = SignedDuration::from_secs(self.spec.active_deadline_seconds?);
        let start = decision.start_time.as_ref().filter(|_| !self.is_suspended())?;
        let left = allowed.saturating_sub(self.now.duration_since(start.0));
        if !left.is_positive() {
            return failed(reasons::DEADLINE);
        }
        decision.again = Some(left);
        None
    }

    /// Of containers of running pods, where they are restarted in place.
    fn restarts(&self) -> Option<i64> {
        let spec = self.spec.template.spec.as_ref()?;
        if spec.restart_policy.as_deref() != Some("OnFailure") {
            return None;
        }
        let running = self.pods.iter().filter(|pod| matches!(phase(pod), "Running" | "Pending"));
        let statuses = running.filter_map(|pod| pod.status.as_ref());
        let containers = statuses.flat_map(|status| {
            status.init_container_statuses.iter().chain(&status.container_statuses).flatten()
        });
        Some(containers.map(|container| i64::from(container.restart_count)).sum())
    }

    /// Towards the wanted number of pods at once.
    fn manage(&self, counts: &Counts, backoff: Backoff) -> (Work, Option<SignedDuration>) {
        if self.is_suspended() {
            return (self.surplus(counts.active), None);
        }
        let parallelism = i64::from(self.spec.parallelism.unwrap_or(1));
        let wanted = match self.spec.completions {
            // One success is enough, and those that run may end.
            None if counts.succeeded > 0 => counts.active,
            None => parallelism,
            Some(wanted) => (i64::from(wanted) - counts.succeeded).clamp(0, parallelism.max(0)),
        };
        if counts.active > wanted {
            return (self.surplus(counts.active - wanted), None);
        }
        let ending = match self.spec.pod_replacement_policy.as_deref() {
            Some("Failed") => counts.terminating,
            _ => 0,
        };
        let missing = usize::try_from(wanted - ending - counts.active).unwrap_or_default();
        let wait = backoff.left(self.now);
        match missing {
            0 => (Work::None, None),
            _ if wait.is_positive() => (Work::None, Some(wait)),
            missing => (Work::Create(missing), None),
        }
    }

    fn surplus(&self, number: i64) -> Work {
        let number = usize::try_from(number).unwrap_or_default();
        if number == 0 {
            return Work::None;
        }
        let mut active: Vec<Arc<Pod>> = self.active().cloned().collect();
        active.sort_by_cached_key(|pod| removal_order(pod));
        active.truncate(number);
        Work::Drop(active)
    }
}

/// Whether it has not been counted yet.
pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
