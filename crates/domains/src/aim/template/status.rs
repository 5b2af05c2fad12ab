//! The status fields of a template beside its conditions.

use serde_json::{Map, Value, json};
use windlass_api::aim::template::Phase;
use windlass_engine::domain::Overall;
use windlass_engine::state::State;

use super::compose::Observed;

pub(super) fn status(observed: &Observed, overall: &Overall) -> Map<String, Value> {
    let mut status = Map::new();
    let mut insert = |field: &str, value: Value| {
        if !value.is_null() {
            status.insert(field.to_owned(), value);
        }
    };
    insert("status", phase(overall.state).as_str().into());
    insert("resolvedRuntimeConfig", json!(observed.config().map(|config| &config.reference)));
    insert("resolvedImage", json!(observed.image.as_ref().map(|image| &image.reference)));
    if !observed.answer.sources.is_empty() {
        insert("modelSources", json!(observed.answer.sources));
    }
    insert("profile", json!(observed.answer.profile.as_ref()));
    insert("discovery", json!(observed.record.as_ref()));
    status
}

fn phase(state: State) -> Phase {
    match state {
        State::Ready | State::Running => Phase::Available,
        State::Progressing | State::Starting => Phase::Progressing,
        State::Pending => Phase::Pending,
        State::Degraded | State::NotAvailable => Phase::Degraded,
        State::Failed => Phase::Failed,
    }
}
