//! `AIMService`: a model of the catalogue, served as a template says, and optionally reached through
//! a gateway.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, LocalObjectReference, ResourceRequirements};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::absent::read_absent_as_default;
use super::fields;
use super::parameters::RuntimeParameters;
use super::reference::ResolvedReference;
use crate::foreign::http_route::ParentReference;

/// Which model is to be served, and how.
#[allow(clippy::duplicated_attributes, reason = "two printer columns may have the same type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "aim.silogen.ai",
    version = "v1alpha1",
    kind = "AIMService",
    root = "AimService",
    plural = "aimservices",
    shortname = "aimsvc",
    namespaced,
    doc = "A model of the catalogue, served as a template says.",
    status = "ServiceStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Status", type_ = "string", json_path = ".status.status"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.aimImageName"),
    printcolumn(name = "Template", type_ = "string", json_path = ".status.resolvedTemplate.name"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct AimServiceSpec {
    /// Name of the AIMImage of the namespace, else of the AIMClusterImage.
    #[serde(default)]
    #[schemars(!default, length(min = 1))]
    pub aim_image_name: String,

    /// Name of the template; by default the one that the image names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<String>,

    /// Whether the model is to be kept on a volume.
    #[serde(default)]
    pub cache_model: bool,

    /// Number of servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 1))]
    pub replicas: Option<i32>,

    /// Name of the runtime config; by default the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_config_name: Option<String>,

    /// Resources of one server. They replace those of template and image as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fields::resources")]
    pub resources: Option<ResourceRequirements>,

    /// What differs from the template. Given, even empty, the service gets a template of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<RuntimeParameters>,

    /// Environment of the servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::env")]
    pub env: Vec<EnvVar>,

    /// Secrets for pulling the image, beside those of the runtime config.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::pull_secrets")]
    pub image_pull_secrets: Vec<LocalObjectReference>,

    /// How the service is reached through a gateway; by default as the runtime config says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
}

read_absent_as_default!(AimServiceSpec);

/// How a service is reached through a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    /// Whether there is a route. Given, this block decides and not the runtime config.
    #[serde(default)]
    pub enabled: bool,

    /// The gateway; by default that of the runtime config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fields::gateway_ref")]
    pub gateway_ref: Option<ParentReference>,

    /// Annotations of the route.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,

    /// Path of the service, with expressions in braces that are looked up in it, such as
    /// `/{.metadata.namespace}/chat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_template: Option<String>,
}

/// Observed state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The runtime config in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_runtime_config: Option<ResolvedReference>,

    /// The image that is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_image: Option<ResolvedReference>,

    /// The template in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_template: Option<ResolvedReference>,

    /// Overall state in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "default" = Phase::Pending.as_str(),
        "enum" = Phase::ALL.map(Phase::as_str)
    ))]
    pub status: Option<String>,

    /// Given while routing is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<RoutingStatus>,
}

/// How the service is reached now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoutingStatus {
    /// Path prefix on the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// The words of `status.status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Pending,
    Starting,
    Running,
    Failed,
    Degraded,
}

impl Phase {
    const ALL: [Self; 5] =
        [Self::Pending, Self::Starting, Self::Running, Self::Failed, Self::Degraded];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Starting => "Starting",
            Self::Running => "Running",
            Self::Failed => "Failed",
            Self::Degraded => "Degraded",
        }
    }
}

pub(super) fn crd() -> CustomResourceDefinition {
    super::finish_crd(AimService::crd())
}
