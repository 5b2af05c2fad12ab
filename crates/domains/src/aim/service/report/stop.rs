//! What keeps a service with a template from being served.

use windlass_api::aim::service::AimService;
use windlass_api::aim::template::Phase;
use windlass_engine::conditions::{Status, find};
use windlass_engine::state::State;

use crate::aim::runtime_config::Resolved;
use crate::aim::service::compose::{Catalogued, Observed};
use crate::aim::service::reasons;
use crate::aim::service::resolution::Template;

/// The end of a report, all under one reason.
pub(super) struct Stop {
    pub(super) state: State,
    pub(super) reason: String,
    /// `None` if it is no failure but a matter of time.
    pub(super) failure: Option<String>,
    pub(super) runtime: String,
    pub(super) progressing: (Status, &'static str),
    pub(super) ready: String,
}

/// In this order: what is named first has to be mended first.
pub(super) fn stop(observed: &Observed, service: &AimService, template: &Template) -> Option<Stop> {
    config_missing(observed, service)
        .or_else(|| image_missing(observed))
        .or_else(|| path_invalid(observed))
        .or_else(|| template_unwell(template))
        .or_else(|| template_undiscovered(template))
        .or_else(|| without_sources(template))
}

fn config_missing(observed: &Observed, service: &AimService) -> Option<Stop> {
    let Resolved::Missing { name } = &observed.config else { return None };
    let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    Some(degraded(
        reasons::RUNTIME_CONFIG_MISSING,
        format!("AIMRuntimeConfig \"{name}\" not found in namespace \"{namespace}\""),
        "Cannot configure runtime without AIMRuntimeConfig",
        "Runtime configuration is missing",
    ))
}

fn image_missing(observed: &Observed) -> Option<Stop> {
    let Catalogued::Missing(message) = &observed.image else { return None };
    Some(degraded(
        reasons::IMAGE_NOT_FOUND,
        message.clone(),
        "Cannot create InferenceService without image",
        "Image is missing",
    ))
}

fn path_invalid(observed: &Observed) -> Option<Stop> {
    let error = observed.routing.as_ref()?.path.as_ref().err()?;
    Some(degraded(
        reasons::ROUTE_TEMPLATE_INVALID,
        error.to_string(),
        "Cannot configure HTTP routing",
        "Routing template is invalid",
    ))
}

/// The failure itself says why the service is not ready.
fn degraded(reason: &str, failure: String, runtime: &str, progressing: &'static str) -> Stop {
    Stop {
        state: State::Degraded,
        reason: reason.to_owned(),
        ready: failure.clone(),
        failure: Some(failure),
        runtime: runtime.to_owned(),
        progressing: (Status::False, progressing),
    }
}

fn template_unwell(template: &Template) -> Option<Stop> {
    let state = if template.is(Phase::Degraded) {
        State::Degraded
    } else if template.is(Phase::Failed) {
        State::Failed
    } else {
        return None;
    };
    let failure = find(&template.status.conditions, reasons::FAILURE)
        .filter(|failure| Status::parse(&failure.status) == Status::True);
    let said = |text: Option<&String>, default: &str| match text.map(String::as_str) {
        None | Some("") => default.to_owned(),
        Some(text) => text.to_owned(),
    };
    let message = said(failure.map(|failure| &failure.message), "Template is not available");
    Some(Stop {
        state,
        reason: said(failure.map(|failure| &failure.reason), reasons::TEMPLATE_DEGRADED),
        failure: Some(message),
        runtime: "Cannot create InferenceService due to template issues".to_owned(),
        progressing: (Status::False, "Service cannot proceed due to template issues"),
        ready: "Service cannot be ready due to template issues".to_owned(),
    })
}

fn template_undiscovered(template: &Template) -> Option<Stop> {
    if template.is(Phase::Available) {
        return None;
    }
    Some(Stop {
        state: State::Pending,
        reason: reasons::TEMPLATE_NOT_AVAILABLE.to_owned(),
        failure: None,
        runtime: format!("Template \"{}\" is not yet Available", template.name),
        progressing: (Status::True, "Waiting for template discovery to complete"),
        ready: "Template is not available".to_owned(),
    })
}

/// Also where there are sources, but none that can be fetched.
fn without_sources(template: &Template) -> Option<Stop> {
    if template.primary_source().is_some() {
        return None;
    }
    let name = &template.name;
    Some(Stop {
        ready: "Service cannot be ready without model sources".to_owned(),
        ..degraded(
            reasons::NO_MODEL_SOURCES,
            format!(
                "Template \"{name}\" is Available but discovery produced no usable model sources"
            ),
            "Cannot create InferenceService without model sources",
            "Service is degraded due to missing model sources",
        )
    })
}
