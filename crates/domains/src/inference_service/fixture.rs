//! The base service and live objects that the tests start from.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde_json::{Value, json};
use windlass_api::serving::zerfoo_inference_service::ZerfooInferenceService;
use windlass_engine::fetch::Fetched;

use super::fetch::Answers;
use super::names::{DRAIN_STARTED_ANNOTATION, Names, Reach, Track};
use super::objects::deployment::{self, Blueprint};
use super::objects::service;
use super::validate::{Wanted, validate};
use super::{CONTROLLER, Settings};

pub(super) fn now() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

/// The base with `change` merged into its spec.
pub(super) fn service_with(change: Value) -> ZerfooInferenceService {
    fn merge(target: &mut Value, change: Value) {
        match (target, change) {
            (Value::Object(target), Value::Object(change)) => {
                for (key, value) in change {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
            (target, change) => *target = change,
        }
    }
    let mut object = json!({
        "apiVersion": "serving.zerfoo.com/v1alpha1",
        "kind": "ZerfooInferenceService",
        "metadata": { "name": "my-llama", "namespace": "default", "generation": 1 },
        "spec": {
            "modelRef": "llama3-8b-q4",
            "replicas": 2,
            "resources": { "cpu": "4", "memory": "16Gi", "gpuMemory": "24Gi" },
            "healthCheck": { "path": "/healthz", "interval": "10s", "timeout": "5s" },
        },
    });
    merge(&mut object["spec"], change);
    serde_json::from_value(object).unwrap()
}

pub(super) fn base() -> ZerfooInferenceService {
    service_with(json!({}))
}

pub(super) fn names() -> Names {
    Names::of(&base())
}

pub(super) fn wanted(service: &ZerfooInferenceService) -> Wanted {
    validate(service, &Settings::default()).unwrap()
}

/// What a Deployment of the base reports.
#[derive(Clone, Copy)]
pub(super) struct Pods {
    pub(super) wanted: i32,
    pub(super) updated: i32,
    pub(super) available: i32,
}

impl Pods {
    pub(super) fn all(count: i32) -> Self {
        Self { wanted: count, updated: count, available: count }
    }
}

/// A Deployment of the base as our controller made it, serving `model`.
pub(super) fn live(track: Track, model: &str, pods: Pods) -> Deployment {
    let service = service_with(json!({ "modelRef": model }));
    let wanted = wanted(&service);
    let settings = Settings::default();
    let names = names();
    let blueprint =
        Blueprint { names: &names, spec: &service.spec, wanted: &wanted, settings: &settings };
    let mut deployment = deployment::primary(blueprint, Some(pods.wanted));
    if track == Track::Canary {
        deployment.metadata = names.metadata(names.track(track), Some(track));
        deployment.metadata.annotations = Some(BTreeMap::from([(
            super::names::MODEL_REF_ANNOTATION.to_owned(),
            model.to_owned(),
        )]));
    }
    deployment.metadata.generation = Some(1);
    deployment.status = Some(DeploymentStatus {
        observed_generation: Some(1),
        replicas: Some(pods.wanted),
        updated_replicas: Some(pods.updated),
        ready_replicas: Some(pods.available),
        available_replicas: Some(pods.available),
        ..Default::default()
    });
    held_by(deployment, CONTROLLER)
}

/// Adds to who holds the Deployment's size.
pub(super) fn held_by(mut deployment: Deployment, manager: &str) -> Deployment {
    let entry = ManagedFieldsEntry {
        manager: Some(manager.to_owned()),
        fields_v1: Some(FieldsV1(json!({ "f:spec": { "f:replicas": {} } }))),
        ..Default::default()
    };
    deployment.metadata.managed_fields.get_or_insert_default().push(entry);
    deployment
}

pub(super) fn drained_since(mut deployment: Deployment, started: Timestamp) -> Deployment {
    let annotations = deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(DRAIN_STARTED_ANNOTATION.to_owned(), started.to_string());
    deployment
}

pub(super) fn stable_service(reach: Reach) -> Service {
    service::stable(&names(), reach)
}

/// A cluster with none of our objects; `routes` tells whether it knows routes.
pub(super) fn empty_cluster(routes: bool) -> Answers {
    Answers {
        primary: Fetched::Missing,
        canary: Fetched::Missing,
        service: Fetched::Missing,
        primary_service: Fetched::Missing,
        canary_service: Fetched::Missing,
        autoscaler: Fetched::Missing,
        route: routes.then_some(Fetched::Missing),
        pods: Fetched::Found(Vec::new()),
        events: Vec::new(),
        logs: BTreeMap::new(),
        secrets: Vec::new(),
    }
}
