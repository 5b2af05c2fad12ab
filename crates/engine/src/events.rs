//! What to say about conditions: notes for Kubernetes events and lines for the log.
//!
//! Changes are reported once; conditions marked as recurring are repeated, but only when the caller
//! says that their interval has passed.

#[cfg(test)]
mod tests;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::conditions::{
    ConditionSet, ConditionUpdate, EventMode, EventType, LogLevel, LogMode, Status, transitions,
    truncate,
};
use crate::names::COMPONENT_SUFFIX;

/// The API server's limit on the message of an event.
const MAX_MESSAGE: usize = 1_024;
/// The API server's limit on the reason and the action of an event.
const MAX_REASON: usize = 128;

/// An event to record about the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    pub type_: EventType,
    pub reason: String,
    pub message: String,
    /// What the controller was doing; the condition type, as that is what it was working on.
    pub action: String,
}

/// A line to log about a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogNote {
    pub level: LogLevel,
    pub condition: String,
    pub status: &'static str,
    pub reason: String,
    pub message: String,
}

/// Events for what changed, then for what lasts and is due again, each in condition order.
pub fn events_for(
    old: &[Condition],
    set: &ConditionSet,
    recurring_due: impl Fn(&str) -> bool,
) -> Vec<EventNote> {
    let repeats = |c: &ConditionUpdate| c.observability.events == EventMode::Always;
    worth_saying(old, set, |c| c.observability.events != EventMode::Never, repeats, recurring_due)
        .into_iter()
        .map(event)
        .collect()
}

/// Log lines under the same rules.
pub fn logs_for(
    old: &[Condition],
    set: &ConditionSet,
    recurring_due: impl Fn(&str) -> bool,
) -> Vec<LogNote> {
    let repeats = |c: &ConditionUpdate| c.observability.logs == LogMode::Always;
    worth_saying(old, set, |c| c.observability.logs != LogMode::Never, repeats, recurring_due)
        .into_iter()
        .map(log)
        .collect()
}

fn worth_saying<'a>(
    old: &'a [Condition],
    set: &'a ConditionSet,
    speaks: impl Fn(&ConditionUpdate) -> bool,
    repeats: impl Fn(&ConditionUpdate) -> bool,
    due: impl Fn(&str) -> bool,
) -> Vec<&'a ConditionUpdate> {
    let changed: Vec<&ConditionUpdate> =
        transitions(old, set).into_iter().map(|transition| transition.new).collect();
    let is_new = |condition: &ConditionUpdate| changed.iter().any(|c| c.type_ == condition.type_);
    let lasting = set.iter().filter(|c| repeats(c) && !is_new(c) && due(&c.type_));
    changed.iter().copied().filter(|condition| speaks(condition)).chain(lasting).collect()
}

fn event(condition: &ConditionUpdate) -> EventNote {
    let how = &condition.observability;
    let mut reason = how.event_reason.clone().unwrap_or_else(|| condition.reason.clone());
    truncate(&mut reason, MAX_REASON);
    let mut message = message(condition, how.event_message.as_deref());
    truncate(&mut message, MAX_MESSAGE);
    let mut action = condition.type_.clone();
    truncate(&mut action, MAX_REASON);
    EventNote { type_: how.event_type, reason, message, action }
}

fn log(condition: &ConditionUpdate) -> LogNote {
    let how = &condition.observability;
    let level = match (how.log_level, how.event_type) {
        (LogLevel::Info, EventType::Warning) => LogLevel::Error,
        (level, _) => level,
    };
    LogNote {
        level,
        condition: condition.type_.clone(),
        status: condition.status.as_str(),
        reason: condition.reason.clone(),
        message: message(condition, how.log_message.as_deref()),
    }
}

fn message(condition: &ConditionUpdate, instead: Option<&str>) -> String {
    if let Some(text) = instead {
        return text.to_owned();
    }
    if !condition.message.is_empty() {
        return condition.message.clone();
    }
    let type_ = condition.type_.as_str();
    let subject = type_.strip_suffix(COMPONENT_SUFFIX).unwrap_or(type_);
    let verb = match condition.status {
        Status::True => "is ready",
        Status::False => "is not ready",
        Status::Unknown => "status unknown",
    };
    format!("{subject} {verb}: {}", condition.reason).trim_start().to_owned()
}
