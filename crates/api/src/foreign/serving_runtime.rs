//! `ServingRuntime` and `ClusterServingRuntime` of KServe, version v1alpha1.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{Container, LocalObjectReference, Volume};
use kube::CustomResource;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "serving.kserve.io",
    version = "v1alpha1",
    kind = "ServingRuntime",
    plural = "servingruntimes",
    namespaced,
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct ServingRuntimeSpec {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supported_model_formats: Vec<ModelFormat>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    #[serde(default)]
    pub containers: Vec<Container>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
}

/// The spec of a `ClusterServingRuntime`, a type of its own only because one type derives one kind.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "serving.kserve.io",
    version = "v1alpha1",
    kind = "ClusterServingRuntime",
    plural = "clusterservingruntimes",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(transparent)]
pub struct ClusterServingRuntimeSpec(pub ServingRuntimeSpec);

/// What a runtime can load, or what a model is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFormat {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}
