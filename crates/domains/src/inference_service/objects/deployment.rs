//! The Deployment of a track and its pods.

mod pod;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use windlass_api::serving::zerfoo_inference_service::ZerfooInferenceServiceSpec;

use crate::inference_service::Settings;
use crate::inference_service::names::{
    DRAIN_STARTED_ANNOTATION, MODEL_REF_ANNOTATION, Names, Reach, Track,
};
use crate::inference_service::traffic::{self, CanaryPlan, Template};
use crate::inference_service::validate::Wanted;

pub(crate) use pod::{API_KEY_VARIABLE, PORT_NAME};

/// What all Deployments of a service have in common.
#[derive(Clone, Copy)]
pub(crate) struct Blueprint<'a> {
    pub names: &'a Names,
    pub spec: &'a ZerfooInferenceServiceSpec,
    pub wanted: &'a Wanted,
    pub settings: &'a Settings,
}

pub(crate) fn primary(blueprint: Blueprint<'_>, replicas: Option<i32>) -> Deployment {
    from_spec(blueprint, Track::Primary, &blueprint.wanted.model, replicas)
}

pub(crate) fn canary(blueprint: Blueprint<'_>, plan: &CanaryPlan) -> Deployment {
    match &plan.template {
        Template::Spec { model } => from_spec(blueprint, Track::Canary, model, Some(plan.replicas)),
        Template::Live(live) => as_it_is(blueprint.names, live, plan),
    }
}

fn from_spec(
    blueprint: Blueprint<'_>,
    track: Track,
    model: &str,
    replicas: Option<i32>,
) -> Deployment {
    let Blueprint { names, wanted, .. } = blueprint;
    Deployment {
        metadata: metadata(names, track, model),
        spec: Some(DeploymentSpec {
            replicas,
            selector: LabelSelector {
                match_labels: Some(names.selector(Reach::Only(track))),
                ..Default::default()
            },
            progress_deadline_seconds: Some(wanted.probes.progress_deadline_seconds),
            strategy: Some(strategy(wanted.gpu.is_some())),
            template: pod::template(blueprint, track, model),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn metadata(names: &Names, track: Track, model: &str) -> ObjectMeta {
    ObjectMeta {
        annotations: Some(BTreeMap::from([(MODEL_REF_ANNOTATION.to_owned(), model.to_owned())])),
        ..names.metadata(names.track(track), Some(track))
    }
}

fn strategy(uses_gpu: bool) -> DeploymentStrategy {
    // A surge pod needs devices that are usually all taken, and would wait for ever.
    let (surge, unavailable) = if uses_gpu { (0, 1) } else { (1, 0) };
    DeploymentStrategy {
        type_: Some("RollingUpdate".to_owned()),
        rolling_update: Some(RollingUpdateDeployment {
            max_surge: Some(IntOrString::Int(surge)),
            max_unavailable: Some(IntOrString::Int(unavailable)),
        }),
    }
}

/// A canary that has left the spec: only its size and its drain may change.
fn as_it_is(names: &Names, live: &Deployment, plan: &CanaryPlan) -> Deployment {
    let model = traffic::model_ref(live).unwrap_or_default();
    let mut metadata = metadata(names, Track::Canary, model);
    if let (Some(started), Some(annotations)) = (plan.drain_started, &mut metadata.annotations) {
        annotations.insert(DRAIN_STARTED_ANNOTATION.to_owned(), started.to_string());
    }
    Deployment {
        metadata,
        spec: live
            .spec
            .clone()
            .map(|spec| DeploymentSpec { replicas: Some(plan.replicas), ..spec }),
        status: None,
    }
}
