//! Group `serving.zerfoo.com`: a model served with autoscaling and a canary.

pub mod zerfoo_inference_service;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The API group; also the domain of the labels and annotations.
pub const GROUP: &str = "serving.zerfoo.com";

pub(crate) fn crds() -> Vec<CustomResourceDefinition> {
    vec![zerfoo_inference_service::crd()]
}
