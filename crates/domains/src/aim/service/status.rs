//! The status fields that are this kind's own.

use serde_json::{Map, Value};
use windlass_api::aim::reference::ResolvedReference;
use windlass_api::aim::service::{AimService, Phase, RoutingStatus, ServiceStatus};
use windlass_engine::domain::Overall;
use windlass_engine::state::State;

use super::compose::Observed;
use super::resolution;
use crate::aim::runtime_config::Resolved;

pub(super) fn status(
    service: &AimService,
    observed: &Observed,
    overall: &Overall,
) -> Map<String, Value> {
    let template = match &observed.resolution {
        Some(resolution) => resolution.reference(service),
        None => resolution::unresolved(service),
    };
    let status = ServiceStatus {
        resolved_runtime_config: runtime_config(observed),
        resolved_image: observed.image().map(|image| image.reference.clone()),
        resolved_template: Some(template),
        status: Some(phase(overall.state).as_str().to_owned()),
        routing: observed
            .routing
            .as_ref()
            .map(|routing| RoutingStatus { path: Some(routing.shown_path().as_str().to_owned()) }),
        ..Default::default()
    };
    // A struct of plain fields always becomes a map.
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Where the service has none, that of the template is reported, as it has always been.
fn runtime_config(observed: &Observed) -> Option<ResolvedReference> {
    match &observed.config {
        Resolved::Found(config) => Some(config.reference.clone()),
        Resolved::Nothing => observed.template()?.status.resolved_runtime_config.clone(),
        Resolved::Missing { .. } | Resolved::Failed(_) => None,
    }
}

fn phase(state: State) -> Phase {
    match state {
        State::Running | State::Ready => Phase::Running,
        State::Starting | State::Progressing => Phase::Starting,
        State::Pending => Phase::Pending,
        State::Degraded | State::NotAvailable => Phase::Degraded,
        State::Failed => Phase::Failed,
    }
}
