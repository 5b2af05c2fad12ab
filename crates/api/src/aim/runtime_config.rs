//! `AIMRuntimeConfig` and `AIMClusterRuntimeConfig`: what services and templates run with unless
//! they say so themselves.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::LocalObjectReference;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::absent::read_absent_as_default;
use super::fields;
use crate::foreign::http_route::ParentReference;

/// What both kinds have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeConfigSpec {
    /// Storage class of volumes; nothing looks at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_storage_class_name: Option<String>,

    /// How services are reached through a gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
}

/// How services are reached through a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    /// Whether services that say nothing about routing have a route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// The gateway of services that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fields::gateway_ref")]
    pub gateway_ref: Option<ParentReference>,

    /// Path of services that give none, as a service gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_template: Option<String>,
}

/// What the services and templates of a namespace run with.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "aim.silogen.ai",
    version = "v1alpha1",
    kind = "AIMRuntimeConfig",
    root = "AimRuntimeConfig",
    plural = "aimruntimeconfigs",
    shortname = "aimrcfg",
    namespaced,
    doc = "What the services and templates of a namespace run with.",
    status = "RuntimeConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "ServiceAccount", type_ = "string", json_path = ".spec.serviceAccountName"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct AimRuntimeConfigSpec {
    #[serde(flatten)]
    pub common: RuntimeConfigSpec,

    /// Account of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// Secrets for pulling images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::pull_secrets")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

read_absent_as_default!(AimRuntimeConfigSpec);

/// What the services and templates of all namespaces run with that have no config of their own.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "aim.silogen.ai",
    version = "v1alpha1",
    kind = "AIMClusterRuntimeConfig",
    root = "AimClusterRuntimeConfig",
    plural = "aimclusterruntimeconfigs",
    shortname = "aimcrcfg",
    doc = "What services and templates run with where their namespace has no config of its own.",
    status = "RuntimeConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "DefaultStorageClass",
        type_ = "string",
        json_path = ".spec.defaultStorageClassName"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(remote = "Self")]
pub struct AimClusterRuntimeConfigSpec {
    #[serde(flatten)]
    pub common: RuntimeConfigSpec,
}

read_absent_as_default!(AimClusterRuntimeConfigSpec);

/// Declared, and written by nobody.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeConfigStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

pub(super) fn crd() -> CustomResourceDefinition {
    without_subresources(super::finish_crd(AimRuntimeConfig::crd()))
}

pub(super) fn cluster_crd() -> CustomResourceDefinition {
    without_subresources(super::finish_crd(AimClusterRuntimeConfig::crd()))
}

/// The status of these kinds is a field like any other.
fn without_subresources(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        version.subresources = None;
    }
    crd
}
