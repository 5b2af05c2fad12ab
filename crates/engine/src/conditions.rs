//! Status conditions: what they are called, how they are set, and what changed between two passes.
//!
//! A pass writes into a [`ConditionSet`]; times are worked out once, against the stored list, when
//! the set is committed. So setting a condition twice, or to what it already was, moves nothing.
//! True is always the good side.

mod observability;
#[cfg(test)]
mod tests;

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

pub use observability::{EventMode, EventType, LogLevel, LogMode, Observability};

/// Condition types that the engine itself sets.
pub mod types {
    pub const READY: &str = "Ready";
    pub const DEPENDENCIES_REACHABLE: &str = "DependenciesReachable";
    pub const AUTH_VALID: &str = "AuthValid";
    pub const CONFIG_VALID: &str = "ConfigValid";
    pub const RECONCILIATION_PAUSED: &str = "ReconciliationPaused";
    /// With [`DEGRADED`], set by controllers that write their own status.
    pub const PROGRESSING: &str = "Progressing";
    pub const DEGRADED: &str = "Degraded";

    /// Types that speak for the object as a whole rather than for one component.
    pub const PARENT: [&str; 4] = [READY, DEPENDENCIES_REACHABLE, AUTH_VALID, CONFIG_VALID];
}

/// Reasons of the conditions in [`types`].
pub mod reasons {
    pub const REACHABLE: &str = "Reachable";
    pub const INFRASTRUCTURE_ERROR: &str = "InfrastructureError";
    pub const AUTH_ERROR: &str = "AuthError";
    pub const AUTHENTICATION_VALID: &str = "AuthenticationValid";
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// An object of the wanted name exists and is not ours.
    pub const NOT_OWNED: &str = "NotOwned";
    pub const REFERENCE_NOT_FOUND: &str = "ReferenceNotFound";
    pub const CONFIGURATION_VALID: &str = "ConfigurationValid";
    pub const ALL_COMPONENTS_READY: &str = "AllComponentsReady";
    pub const PROGRESSING: &str = "Progressing";
    /// Reason of a component that has nothing to say but that it is ready.
    pub const READY: &str = "Ready";
    /// Stands in for a reason that the API server would refuse.
    pub const UNKNOWN: &str = "Unknown";
}

/// Messages of the conditions in [`types`].
pub mod messages {
    pub const REACHABLE: &str = "All dependencies are reachable";
    pub const NOT_REACHABLE: &str = "Cannot reach dependencies";
    pub const AUTH_ERROR: &str = "Authentication or authorization failure";
    pub const AUTH_VALID: &str = "Authentication and authorization successful";
    pub const INVALID_SPEC: &str = "Configuration validation failed";
    pub const REFERENCE_NOT_FOUND: &str = "Referenced resource not found";
    pub const CONFIG_VALID: &str = "Configuration is valid";
    pub const ALL_COMPONENTS_READY: &str = "All components are ready";
    pub const PROGRESSING: &str = "Waiting for components to become ready";
    pub const INFRASTRUCTURE_ERROR: &str = "Infrastructure error - waiting for retry";
}

/// The API server's limit on the message of a condition.
const MAX_MESSAGE: usize = 32_768;
/// The API server's limit on the reason of a condition.
const MAX_REASON: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    True,
    False,
    Unknown,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Anything but the two definite words is unknown, as it is for other readers of conditions.
    pub fn parse(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

impl From<bool> for Status {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A condition as somebody wants it, and how loudly to speak of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionUpdate {
    pub type_: String,
    pub status: Status,
    pub reason: String,
    pub message: String,
    pub observability: Observability,
}

impl ConditionUpdate {
    pub fn new(
        type_: impl Into<String>,
        status: Status,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_: type_.into(),
            status,
            reason: reason.into(),
            message: message.into(),
            observability: Observability::default(),
        }
    }

    pub fn with(mut self, observability: Observability) -> Self {
        self.observability = observability;
        self
    }
}

/// The conditions of one object during one pass: those stored, then those set, in that order.
///
/// Types are unique, and every reason and message is one that the API server accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConditionSet {
    entries: Vec<ConditionUpdate>,
}

impl ConditionSet {
    /// Stored conditions that nobody sets again stay, and stay quiet.
    pub fn from_stored(stored: &[Condition]) -> Self {
        let mut set = Self::default();
        for condition in stored {
            set.set(ConditionUpdate::new(
                &condition.type_,
                Status::parse(&condition.status),
                &condition.reason,
                &condition.message,
            ));
        }
        set
    }

    /// Replaces the condition of that type, with its observability, or appends it.
    pub fn set(&mut self, mut update: ConditionUpdate) {
        if !is_valid_reason(&update.reason) {
            reasons::UNKNOWN.clone_into(&mut update.reason);
        }
        truncate(&mut update.message, MAX_MESSAGE);
        match self.entries.iter_mut().find(|entry| entry.type_ == update.type_) {
            Some(entry) => *entry = update,
            None => self.entries.push(update),
        }
    }

    pub fn mark_true(&mut self, type_: &str, reason: &str, message: &str, how: Observability) {
        self.set(ConditionUpdate::new(type_, Status::True, reason, message).with(how));
    }

    pub fn mark_false(&mut self, type_: &str, reason: &str, message: &str, how: Observability) {
        self.set(ConditionUpdate::new(type_, Status::False, reason, message).with(how));
    }

    pub fn mark_unknown(&mut self, type_: &str, reason: &str, message: &str, how: Observability) {
        self.set(ConditionUpdate::new(type_, Status::Unknown, reason, message).with(how));
    }

    pub fn delete(&mut self, type_: &str) {
        self.entries.retain(|entry| entry.type_ != type_);
    }

    pub fn retain(&mut self, keep: impl FnMut(&ConditionUpdate) -> bool) {
        self.entries.retain(keep);
    }

    pub fn get(&self, type_: &str) -> Option<&ConditionUpdate> {
        self.entries.iter().find(|entry| entry.type_ == type_)
    }

    pub fn iter(&self) -> impl Iterator<Item = &ConditionUpdate> {
        self.entries.iter()
    }

    /// True for no types at all; an absent type is not true.
    pub fn all_true(&self, types: &[&str]) -> bool {
        types.iter().all(|type_| self.is(type_, Status::True))
    }

    pub fn any_true(&self, types: &[&str]) -> bool {
        types.iter().any(|type_| self.is(type_, Status::True))
    }

    /// An absent type is not false either.
    pub fn any_false(&self, types: &[&str]) -> bool {
        types.iter().any(|type_| self.is(type_, Status::False))
    }

    /// The list to store. A time moves only with the status of its condition.
    pub fn commit(&self, stored: &[Condition], generation: i64, now: Timestamp) -> Vec<Condition> {
        let commit_one = |entry: &ConditionUpdate| {
            let same_status = find(stored, &entry.type_)
                .filter(|condition| condition.status == entry.status.as_str());
            Condition {
                type_: entry.type_.clone(),
                status: entry.status.to_string(),
                reason: entry.reason.clone(),
                message: entry.message.clone(),
                observed_generation: Some(generation),
                last_transition_time: same_status
                    .map_or_else(|| Time(now), |condition| condition.last_transition_time.clone()),
            }
        };
        self.entries.iter().map(commit_one).collect()
    }

    fn is(&self, type_: &str, status: Status) -> bool {
        self.get(type_).is_some_and(|entry| entry.status == status)
    }
}

/// A condition that is new, or whose status or reason changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition<'a> {
    pub old: Option<&'a Condition>,
    pub new: &'a ConditionUpdate,
}

/// What changed, in the order of the new conditions. New words alone are not a change.
pub fn transitions<'a>(old: &'a [Condition], new: &'a ConditionSet) -> Vec<Transition<'a>> {
    new.iter()
        .map(|condition| Transition { old: find(old, &condition.type_), new: condition })
        .filter(|Transition { old, new }| {
            old.is_none_or(|old| old.status != new.status.as_str() || old.reason != new.reason)
        })
        .collect()
}

pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Cuts to at most `max` bytes without splitting a character.
pub(crate) fn truncate(text: &mut String, max: usize) {
    text.truncate(text.floor_char_boundary(max));
}

/// The API server's own pattern: `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`.
fn is_valid_reason(reason: &str) -> bool {
    let bytes = reason.as_bytes();
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.len() <= MAX_REASON
        && bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(word)
        && bytes.iter().all(|byte| word(byte) || matches!(byte, b',' | b':'))
}
