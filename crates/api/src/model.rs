//! Group `model.otterscale.io`: models packed as OCI artifacts and served by vLLM.

pub mod artifact;
pub mod model_service;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub(crate) fn crds() -> Vec<CustomResourceDefinition> {
    vec![artifact::model_artifact_crd(), artifact::artifact_crd(), model_service::crd()]
}
