//! The usual statuses of domains that write their own: a state and the three conditions that show it.

#[cfg(test)]
mod tests;

use crate::conditions::{ConditionSet, ConditionUpdate, Observability, Status, types};
use crate::state::State;

pub fn ready(conditions: &mut ConditionSet, reason: &str, message: &str) -> State {
    set(conditions, Some(types::READY), reason, message, Observability::info());
    State::Ready
}

pub fn progressing(conditions: &mut ConditionSet, reason: &str, message: &str) -> State {
    set(conditions, Some(types::PROGRESSING), reason, message, Observability::info());
    State::Progressing
}

pub fn degraded(conditions: &mut ConditionSet, reason: &str, message: &str) -> State {
    set(conditions, Some(types::DEGRADED), reason, message, Observability::warning());
    State::Degraded
}

/// Terminal; shows like [`degraded`].
pub fn failed(conditions: &mut ConditionSet, reason: &str, message: &str) -> State {
    set(conditions, Some(types::DEGRADED), reason, message, Observability::warning());
    State::Failed
}

pub fn not_available(conditions: &mut ConditionSet, reason: &str, message: &str) -> State {
    set(conditions, None, reason, message, Observability::default());
    State::NotAvailable
}

/// Of the three at most one is true, and that one speaks.
fn set(
    conditions: &mut ConditionSet,
    holds: Option<&str>,
    reason: &str,
    message: &str,
    how: Observability,
) {
    for type_ in [types::READY, types::PROGRESSING, types::DEGRADED] {
        let holds = holds == Some(type_);
        let how = if holds { how.clone() } else { Observability::default() };
        conditions.set(ConditionUpdate::new(type_, Status::from(holds), reason, message).with(how));
    }
}
