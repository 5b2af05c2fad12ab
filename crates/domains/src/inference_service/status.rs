//! The status fields that are this kind's own.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use serde_json::{Map, Value};
use windlass_api::serving::zerfoo_inference_service::{
    CanaryPhase, CanaryStatus, PrimaryStatus, ZerfooInferenceService, ZerfooInferenceServiceStatus,
};
use windlass_engine::domain::Overall;

use super::compose::{Meaning, Observed};
use super::traffic::{CanaryPlan, Template, model_ref};

pub(super) fn status(
    object: &ZerfooInferenceService,
    observed: &Observed,
    overall: &Overall,
) -> Map<String, Value> {
    let primary = observed.answers.primary.found();
    let canary = observed.answers.canary.found();
    let meaning = observed.meaning.as_ref().ok();
    let status = ZerfooInferenceServiceStatus {
        ready: Some(overall.ready),
        replicas: Some(ready_pods(primary).saturating_add(ready_pods(canary))),
        message: Some(overall.message.clone()).filter(|message| !message.is_empty()),
        selector: Some(observed.names.scale_selector()),
        endpoint: Some(observed.names.endpoint()),
        primary: primary.map(|primary| primary_status(object, primary)),
        canary: match meaning {
            Some(meaning) => canary_status(meaning, canary),
            None => canary.map(|live| canary_as_it_is(object, observed, live)),
        },
        traffic_mode: Some(meaning.map_or(observed.as_it_is.mode, |known| known.traffic.mode)),
        ..Default::default()
    };
    // A struct of plain fields always becomes a map.
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn primary_status(object: &ZerfooInferenceService, live: &Deployment) -> PrimaryStatus {
    let counts = counts(Some(live));
    PrimaryStatus {
        model_ref: model_ref(live).unwrap_or(&object.spec.model_ref).to_owned(),
        replicas: counts.replicas.unwrap_or_default(),
        ready_replicas: counts.ready_replicas.unwrap_or_default(),
        updated_replicas: counts.updated_replicas.unwrap_or_default(),
    }
}

fn canary_status(meaning: &Meaning, live: Option<&Deployment>) -> Option<CanaryStatus> {
    let plan = meaning.traffic.canary.as_ref()?;
    let counts = counts(live);
    Some(CanaryStatus {
        model_ref: canary_model(plan).to_owned(),
        weight: plan.weight,
        effective_weight: plan.effective,
        replicas: counts.replicas.unwrap_or_default(),
        ready_replicas: counts.ready_replicas.unwrap_or_default(),
        phase: plan.phase,
    })
}

/// The spec makes no sense, but what it made before goes on.
fn canary_as_it_is(
    object: &ZerfooInferenceService,
    observed: &Observed,
    live: &Deployment,
) -> CanaryStatus {
    let counts = counts(Some(live));
    let share = observed.as_it_is.canary_share;
    CanaryStatus {
        model_ref: model_ref(live).unwrap_or_default().to_owned(),
        weight: object.spec.canary.as_ref().map_or(share, |canary| canary.weight),
        effective_weight: share,
        replicas: counts.replicas.unwrap_or_default(),
        ready_replicas: counts.ready_replicas.unwrap_or_default(),
        phase: CanaryPhase::Active,
    }
}

fn canary_model(plan: &CanaryPlan) -> &str {
    match &plan.template {
        Template::Spec { model } => model,
        Template::Live(live) => model_ref(live).unwrap_or_default(),
    }
}

fn ready_pods(deployment: Option<&Deployment>) -> i32 {
    counts(deployment).ready_replicas.unwrap_or_default()
}

fn counts(deployment: Option<&Deployment>) -> DeploymentStatus {
    deployment.and_then(|deployment| deployment.status.clone()).unwrap_or_default()
}
