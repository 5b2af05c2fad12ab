//! What is worth an event: only what has happened since the stored status.

use windlass_api::aim::template::TemplateKind;
use windlass_engine::conditions::EventType;
use windlass_engine::events::EventNote;

use super::compose::{Observed, Outcome};
use super::health::parse_failure;
use super::reasons;
use crate::aim::runtime_config::Resolved;

pub(super) fn news<K: TemplateKind>(template: &K, observed: &Observed) -> Vec<EventNote> {
    let config = config(template, observed);
    config.into_iter().chain(discovery(template, observed)).collect()
}

fn note(type_: EventType, reason: &str, message: impl Into<String>) -> EventNote {
    EventNote {
        type_,
        reason: reason.to_owned(),
        message: message.into(),
        action: "Reconcile".to_owned(),
    }
}

/// Which runtime config is in effect, if that is news.
fn config<K: TemplateKind>(template: &K, observed: &Observed) -> Option<EventNote> {
    let stored = template.status();
    let known = stored.and_then(|status| status.resolved_runtime_config.as_ref());
    let seen = stored.and_then(|status| status.observed_generation);
    // Of a config that is missing nothing is stored, so another name for it shows only in the spec.
    let is_edited = seen != template.meta().generation;
    match &observed.config {
        Resolved::Found(config) if known != Some(&config.reference) => {
            let reference = &config.reference;
            let name = reference.name.as_deref().unwrap_or_default();
            let source = match &reference.namespace {
                Some(namespace) if config.is_filled => format!("namespace/{namespace}, cluster"),
                Some(namespace) => format!("namespace/{namespace}"),
                None => "cluster".to_owned(),
            };
            let message = format!("Using AIMRuntimeConfig \"{name}\" from {source}");
            Some(note(EventType::Normal, reasons::EVENT_CONFIG_RESOLVED, message))
        }
        Resolved::Nothing if is_edited || known.is_some() => {
            let message =
                "Default AIMRuntimeConfig not found, proceeding with controller defaults.";
            Some(note(EventType::Warning, reasons::EVENT_DEFAULT_CONFIG_NOT_FOUND, message))
        }
        // Those of a namespace say it in a condition.
        Resolved::Missing { name }
            if template.meta().namespace.is_none() && (is_edited || known.is_some()) =>
        {
            let message = format!(
                "AIMRuntimeConfig \"{name}\" not found, proceeding with controller defaults."
            );
            Some(note(EventType::Warning, reasons::EVENT_CONFIG_NOT_FOUND, message))
        }
        _ => None,
    }
}

fn discovery<K: TemplateKind>(template: &K, observed: &Observed) -> Option<EventNote> {
    let is_news = observed.is_news();
    match &observed.outcome {
        Outcome::Running { .. } if is_news => {
            let message = "Discovery job is running";
            Some(note(EventType::Normal, reasons::EVENT_DISCOVERY_STARTED, message))
        }
        Outcome::JobFailed if is_news => {
            let message = "Discovery job failed";
            Some(note(EventType::Warning, reasons::DISCOVERY_FAILED, message))
        }
        Outcome::ParseFailed { message, .. } if is_news => {
            let reason = reasons::DISCOVERY_PARSE_FAILED;
            Some(note(EventType::Warning, reason, parse_failure(message)))
        }
        Outcome::Discovered if !observed.is_stored(template) => {
            let message = "Model sources discovered successfully";
            Some(note(EventType::Normal, reasons::EVENT_DISCOVERY_SUCCEEDED, message))
        }
        _ => None,
    }
}
