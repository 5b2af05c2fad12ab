//! Conditions: their time moves only with their status.

use serde_json::{Value, json};

use crate::gateway::listed::text;

/// A condition as it should be. Without trouble its reason is its type.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) type_: &'static str,
    pub(super) holds: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Held {
    pub(super) fn yes(type_: &'static str, message: &str) -> Self {
        Self { type_, holds: true, reason: type_, message: message.to_owned() }
    }

    pub(super) fn not(type_: &'static str, reason: &'static str, message: String) -> Self {
        Self { type_, holds: false, reason, message }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp<'a> {
    pub(super) generation: i64,
    pub(super) now: &'a str,
}

/// Those of other types stay.
pub(super) fn merged(before: &[Value], held: &[Held], stamp: Stamp<'_>) -> Vec<Value> {
    let mut after = before.to_vec();
    for held in held {
        let known = after.iter_mut().find(|condition| text(condition, "/type") == held.type_);
        match known {
            Some(known) => *known = held.condition(Some(known), stamp),
            None => after.push(held.condition(None, stamp)),
        }
    }
    after
}

impl Held {
    fn condition(&self, before: Option<&Value>, stamp: Stamp<'_>) -> Value {
        let status = if self.holds { "True" } else { "False" };
        let since = before.filter(|before| text(before, "/status") == status);
        let since = since.map(|before| text(before, "/lastTransitionTime"));
        json!({
            "type": self.type_,
            "status": status,
            "reason": self.reason,
            "message": self.message,
            "observedGeneration": stamp.generation,
            "lastTransitionTime": since.filter(|since| !since.is_empty()).unwrap_or(stamp.now),
        })
    }
}
