//! How ended pods get into the counts of a Job: each once, whatever is interrupted.
//!
//! First the status names them, then their finalizer goes, then they are counted.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::{JobCondition, JobStatus},
    core::v1::Pod,
};

use super::{
    conditions,
    decide::{Decision, Known, Work, is_tracked},
    reasons,
};
use crate::controllers::pods::{is_ready, phase};

/// How many may be named at once.
const UNCOUNTED: usize = 500;

/// After the work on its pods.
pub(super) struct Account {
    /// With the pods that are about to be counted.
    pub(super) status: JobStatus,
    pub(super) release: Vec<Arc<Pod>>,
    /// `Complete` or `Failed`, when all of them are counted and nothing runs.
    pub(super) end: Option<JobCondition>,
    /// Reason and message about a suspension.
    pub(super) event: Option<(&'static str, &'static str)>,
}

impl Known<'_> {
    /// When so many of the pods in question have been made or deleted.
    pub(super) fn account(&self, decision: &Decision, done: usize) -> Account {
        let counts = self.counts();
        let done_count = i64::try_from(done).unwrap_or(i64::MAX);
        let (mut active, mut ready, mut terminating) =
            (counts.active, counts.ready, counts.terminating);
        match &decision.work {
            Work::None => {}
            Work::Create(_) => active += done_count,
            Work::End(pods) | Work::Drop(pods) => {
                active -= done_count;
                terminating += done_count;
                let gone = pods.iter().take(done).filter(|pod| is_ready(pod)).count();
                ready -= i64::try_from(gone).unwrap_or_default();
            }
        }
        let mut status = self.status();
        status.start_time.clone_from(&decision.start_time);
        let mut event = None;
        let end = match &decision.end {
            // Some could not be deleted: it is too early to say so.
            Some(_) if matches!(&decision.work, Work::End(pods) if pods.len() != done) => None,
            Some(end) => Some(end.clone()),
            None if self.is_complete(counts.succeeded, active) => {
                let (reason, message) = reasons::COMPLETIONS;
                Some(conditions::new(conditions::SUCCESS_CRITERIA_MET, reason, message, self.now))
            }
            None => {
                event = self.suspend_or_resume(&mut status);
                None
            }
        };
        status.active = shown(active);
        status.ready = Some(number(ready));
        status.terminating = Some(number(terminating));
        let release = self.name_ended(&mut status, end.as_ref());
        if let Some(end) = &end {
            conditions::set(&mut status, end.clone());
        }
        let end = end.map(|end| closing(&end, self.now));
        Account { status, release, end, event }
    }

    fn is_complete(&self, succeeded: i64, active: i64) -> bool {
        let wanted = self.spec.completions.map_or(1, i64::from);
        succeeded >= wanted && active == 0
    }

    fn suspend_or_resume(&self, status: &mut JobStatus) -> Option<(&'static str, &'static str)> {
        if self.is_leaving() {
            return None;
        }
        if self.is_suspended() {
            let text = "Job suspended";
            let new = conditions::new(conditions::SUSPENDED, "JobSuspended", text, self.now);
            let changed = conditions::set(status, new);
            if changed {
                status.start_time = None;
            }
            return changed.then_some(("Suspended", text));
        }
        let text = "Job resumed";
        let new = conditions::new(conditions::SUSPENDED, "JobResumed", text, self.now);
        let changed = conditions::set(status, JobCondition { status: "False".into(), ..new });
        if changed {
            // The deadline counts from here.
            status.start_time = Some(crate::controllers::stamp(self.now));
        }
        changed.then_some(("Resumed", text))
    }

    /// Puts those that have ended into the status, and says whose finalizer may go.
    fn name_ended(&self, status: &mut JobStatus, end: Option<&JobCondition>) -> Vec<Arc<Pod>> {
        let tracked = self.pods.iter().filter(|pod| is_tracked(pod));
        let uids: BTreeSet<String> =
            tracked.clone().filter_map(|pod| pod.metadata.uid.clone()).collect();
        count_released(status, &uids);
        let fails = end.is_some_and(|end| end.type_ == conditions::FAILURE_TARGET);
        let mut uncounted = status.uncounted_terminated_pods.take().unwrap_or_default();
        let mut release = Vec::new();
        for pod in tracked {
            let is_failed = self.is_failed(pod);
            let is_succeeded = phase(pod) == "Succeeded";
            if !(is_failed || is_succeeded || self.is_leaving() || end.is_some()) {
                continue;
            }
            release.push(pod.clone());
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            let named = |list: &Option<Vec<String>>| list.iter().flatten().any(|one| *one == uid);
            if named(&uncounted.succeeded) || named(&uncounted.failed) {
                continue;
            }
            // Whatever still runs when the Job fails has failed.
            match (is_succeeded, is_failed || fails) {
                (true, _) => uncounted.succeeded.get_or_insert_default().push(uid),
                (false, true) => uncounted.failed.get_or_insert_default().push(uid),
                (false, false) => {}
            }
            let length = |list: &Option<Vec<String>>| list.as_ref().map_or(0, Vec::len);
            if length(&uncounted.succeeded) + length(&uncounted.failed) >= UNCOUNTED {
                break;
            }
        }
        status.uncounted_terminated_pods = Some(uncounted);
        release
    }
}

/// Counts those that are named and have no finalizer any more: `tracked` are the uids of the others.
pub(super) fn count_released(status: &mut JobStatus, tracked: &BTreeSet<String>) {
    let Some(uncounted) = &mut status.uncounted_terminated_pods else { return };
    let count = |list: &mut Option<Vec<String>>, counted: &mut Option<i32>| {
        let before = list.as_ref().map_or(0, Vec::len);
        if let Some(list) = list {
            list.retain(|uid| tracked.contains(uid));
        }
        let released = before - list.as_ref().map_or(0, Vec::len);
        list.take_if(|list| list.is_empty());
        let released = i32::try_from(released).unwrap_or(i32::MAX);
        if released > 0 {
            *counted = Some(counted.unwrap_or_default().saturating_add(released));
        }
    };
    count(&mut uncounted.succeeded, &mut status.succeeded);
    count(&mut uncounted.failed, &mut status.failed);
}

/// Adds the last condition, if nothing is left to be waited for.
pub(super) fn close(status: &mut JobStatus, end: &JobCondition) -> bool {
    let waits = status.uncounted_terminated_pods.as_ref().is_some_and(|uncounted| {
        uncounted.succeeded.iter().chain(&uncounted.failed).flatten().next().is_some()
    });
    if waits || status.terminating.unwrap_or_default() > 0 {
        return false;
    }
    conditions::set(status, end.clone());
    if end.type_ == conditions::COMPLETE {
        status.completion_time.clone_from(&end.last_transition_time);
    }
    true
}

/// What follows the condition that says how it ends.
fn closing(end: &JobCondition, now: Timestamp) -> JobCondition {
    let kind = match end.type_ == conditions::SUCCESS_CRITERIA_MET {
        true => conditions::COMPLETE,
        false => conditions::FAILED,
    };
    let (reason, message) = (end.reason.as_deref(), end.message.as_deref());
    conditions::new(kind, reason.unwrap_or_default(), message.unwrap_or_default(), now)
}

fn number(count: i64) -> i32 {
    i32::try_from(count.max(0)).unwrap_or(i32::MAX)
}

/// Zero is left out.
fn shown(count: i64) -> Option<i32> {
    Some(number(count)).filter(|count| *count != 0)
}

#[cfg(test)]
mod tests;
