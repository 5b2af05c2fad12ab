//! The conditions of Jobs.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};

use crate::controllers::stamp;

pub(super) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
pub(super) const FAILURE_TARGET: &str = "FailureTarget";
pub(super) const COMPLETE: &str = "Complete";
pub(super) const FAILED: &str = "Failed";
pub(super) const SUSPENDED: &str = "Suspended";

pub(super) fn new(kind: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    JobCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(stamp(now)),
        last_transition_time: Some(stamp(now)),
    }
}

pub(super) fn is_true<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a JobCondition> {
    let mut all = status.conditions.iter().flatten();
    all.find(|condition| condition.type_ == kind && condition.status == "True")
}

pub(super) fn is_finished(status: &JobStatus) -> bool {
    is_true(status, COMPLETE).or_else(|| is_true(status, FAILED)).is_some()
}

/// In its place, if there is one of the type already. Whether that changes anything.
pub(super) fn set(status: &mut JobStatus, new: JobCondition) -> bool {
    let all = status.conditions.get_or_insert_default();
    match all.iter_mut().find(|known| known.type_ == new.type_) {
        Some(known) => {
            let same = known.status == new.status
                && known.reason == new.reason
                && known.message == new.message;
            if !same {
                *known = new;
            }
            !same
        }
        // What never was need not be denied.
        None if new.status == "False" => {
            status.conditions.take_if(|all| all.is_empty());
            false
        }
        None => {
            all.push(new);
            true
        }
    }
}
