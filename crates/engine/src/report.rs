//! Tells people what happened: Events for users, log lines for operators. Never before it is stored.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter as Source},
};

use crate::{
    apply::Correction,
    conditions::{self, ConditionSet, ConditionUpdate},
    domain::EventSource,
    error::chain,
    events::{self, EventNote, LogNote},
    kind::ObjectKey,
};

/// A state that lasts is told again this often, not on every pass. Within the time that the recorder
/// remembers an event, so that it counts up one event instead of making many.
const RECURRING: SignedDuration = SignedDuration::from_mins(5);

pub struct Reporter {
    recorder: Recorder,
    action: Option<&'static str>,
    corrections: bool,
    /// When a lasting condition of an object was last told of.
    told: Mutex<HashMap<(ObjectKey, String), Timestamp>>,
}

impl Reporter {
    pub fn new(client: Client, source: &EventSource, instance: &str) -> Self {
        let EventSource { controller, action, corrections } = *source;
        let source =
            Source { controller: controller.to_owned(), instance: Some(instance.to_owned()) };
        let recorder = Recorder::new(client, source);
        Self { recorder, action, corrections, told: Mutex::default() }
    }

    pub async fn conditions(
        &self,
        about: &ObjectReference,
        before: &[Condition],
        set: &ConditionSet,
        now: Timestamp,
    ) {
        let key = ObjectKey::new(about.namespace.as_deref(), about.name.as_deref().unwrap_or(""));
        let due = |type_: &str| self.is_due(&key, type_, before, set, now);
        for note in events::logs_for(before, set, due) {
            log(&note);
        }
        for note in events::events_for(before, set, due) {
            self.publish(about, &note).await;
        }
        self.note_told(&key, before, set, now);
    }

    pub async fn notices(&self, about: &ObjectReference, notes: &[EventNote]) {
        for note in notes {
            self.publish(about, note).await;
        }
    }

    pub async fn corrections(&self, about: &ObjectReference, corrections: &[Correction]) {
        for Correction { kind, key, difference } in corrections {
            let holder = difference.holder.as_deref().unwrap_or("somebody");
            let path = &difference.path;
            tracing::info!(%kind, child = %key, %path, holder, "took back a changed field");
            if !self.corrections {
                continue;
            }
            let message = format!("{kind} {}: {path} was changed by {holder}, set back", key.name);
            let note = EventNote {
                type_: conditions::EventType::Normal,
                reason: "DriftCorrected".to_owned(),
                message,
                action: "Apply".to_owned(),
            };
            self.publish(about, &note).await;
        }
    }

    /// The object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().retain(|(known, _), _| known != key);
    }

    async fn publish(&self, about: &ObjectReference, note: &EventNote) {
        let event = Event {
            type_: match note.type_ {
                conditions::EventType::Normal => EventType::Normal,
                conditions::EventType::Warning => EventType::Warning,
            },
            reason: note.reason.clone(),
            note: Some(note.message.clone()).filter(|text| !text.is_empty()),
            action: self.action.map_or_else(|| note.action.clone(), str::to_owned),
            secondary: None,
        };
        // An event is a courtesy: the state it speaks of is stored already.
        if let Err(error) = self.recorder.publish(&event, about).await {
            tracing::warn!(reason = note.reason, error = chain(&error), "cannot publish an event");
        }
    }

    /// A condition found as an earlier run of the operator left it has been told of: starting anew
    /// is no news.
    fn is_due(
        &self,
        key: &ObjectKey,
        type_: &str,
        before: &[Condition],
        set: &ConditionSet,
        now: Timestamp,
    ) -> bool {
        let unchanged = set.get(type_).is_some_and(|condition| is_known(condition, before));
        match self.lock().get(&(key.clone(), type_.to_owned())) {
            Some(last) => !unchanged || now.duration_since(*last) >= RECURRING,
            None => !unchanged,
        }
    }

    fn note_told(
        &self,
        about: &ObjectKey,
        before: &[Condition],
        set: &ConditionSet,
        now: Timestamp,
    ) {
        let mut told = self.lock();
        for condition in set.iter() {
            let key = (about.clone(), condition.type_.clone());
            let fresh = told.get(&key).is_some_and(|last| now.duration_since(*last) < RECURRING);
            if !(fresh && is_known(condition, before)) {
                told.insert(key, now);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(ObjectKey, String), Timestamp>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_known(condition: &ConditionUpdate, before: &[Condition]) -> bool {
    before.iter().any(|old| {
        old.type_ == condition.type_
            && old.status == condition.status.as_str()
            && old.reason == condition.reason
    })
}

fn log(note: &LogNote) {
    let LogNote { condition, status, reason, message, .. } = note;
    match note.level {
        conditions::LogLevel::Error => {
            tracing::error!(condition, status, reason, detail = message, "condition");
        }
        conditions::LogLevel::Info => {
            tracing::info!(condition, status, reason, detail = message, "condition");
        }
        conditions::LogLevel::Debug => {
            tracing::debug!(condition, status, reason, detail = message, "condition");
        }
    }
}
