//! `AIMServiceTemplate` and `AIMClusterServiceTemplate`: one way to serve an image, and what the
//! image has said about it.

mod kind;
mod status;

#[cfg(test)]
mod tests;

pub use kind::TemplateKind;
pub use status::{Discovery, ModelSource, Phase, Profile, ProfileMetadata, TemplateStatus};

use k8s_openapi::api::core::v1::{EnvVar, LocalObjectReference, ResourceRequirements};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::absent::read_absent_as_default;
use super::parameters::RuntimeParameters;
use super::{DEFAULT_RUNTIME_CONFIG, fields};

/// What both kinds have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// Name of the AIMImage of the namespace, else of the AIMClusterImage.
    #[serde(default)]
    #[schemars(
        !default,
        length(min = 1),
        extend("x-kubernetes-validations" = fields::immutable("image name is immutable"))
    )]
    pub aim_image_name: String,

    #[serde(flatten)]
    pub parameters: RuntimeParameters,

    /// Name of the runtime config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_RUNTIME_CONFIG))]
    pub runtime_config_name: Option<String>,

    /// Resources of one server. They replace those of the image as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fields::resources")]
    pub resources: Option<ResourceRequirements>,
}

/// One way to serve an image, for the services of a namespace.
#[allow(clippy::duplicated_attributes, reason = "two printer columns may have the same type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "aim.silogen.ai",
    version = "v1alpha1",
    kind = "AIMServiceTemplate",
    root = "AimServiceTemplate",
    plural = "aimservicetemplates",
    shortname = "aimst",
    namespaced,
    doc = "One way to serve an image, for the services of a namespace.",
    status = "TemplateStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Status", type_ = "string", json_path = ".status.status"),
    printcolumn(name = "Model", type_ = "string", json_path = ".spec.aimImageName"),
    printcolumn(name = "Engine", type_ = "string", json_path = ".status.profile.metadata.engine"),
    printcolumn(name = "Metric", type_ = "string", json_path = ".status.profile.metadata.metric"),
    printcolumn(
        name = "Precision",
        type_ = "string",
        json_path = ".status.profile.metadata.precision"
    ),
    printcolumn(
        name = "GPUs/replica",
        type_ = "integer",
        json_path = ".status.profile.metadata.gpu_count"
    ),
    printcolumn(name = "GPU", type_ = "string", json_path = ".status.profile.metadata.gpu")
)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct AimServiceTemplateSpec {
    #[serde(flatten)]
    pub common: TemplateSpec,

    /// Whether models are to be kept on a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caching: Option<Caching>,

    /// Environment of the container that describes the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::env")]
    pub env: Vec<EnvVar>,

    /// Secrets for pulling the image, beside those of the runtime config.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::pull_secrets")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

read_absent_as_default!(AimServiceTemplateSpec);

/// One way to serve an image, for the services of all namespaces.
#[allow(clippy::duplicated_attributes, reason = "two printer columns may have the same type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "aim.silogen.ai",
    version = "v1alpha1",
    kind = "AIMClusterServiceTemplate",
    root = "AimClusterServiceTemplate",
    plural = "aimclusterservicetemplates",
    shortname = "aimclst",
    doc = "One way to serve an image, for the services of all namespaces.",
    status = "TemplateStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Status", type_ = "string", json_path = ".status.status"),
    printcolumn(name = "Engine", type_ = "string", json_path = ".status.profile.metadata.engine"),
    printcolumn(name = "Metric", type_ = "string", json_path = ".status.profile.metadata.metric"),
    printcolumn(
        name = "Precision",
        type_ = "string",
        json_path = ".status.profile.metadata.precision"
    ),
    printcolumn(
        name = "GPUs/replica",
        type_ = "integer",
        json_path = ".status.profile.metadata.gpu_count"
    ),
    printcolumn(name = "GPU", type_ = "string", json_path = ".status.profile.metadata.gpu")
)]
#[serde(remote = "Self")]
pub struct AimClusterServiceTemplateSpec {
    #[serde(flatten)]
    pub common: TemplateSpec,
}

read_absent_as_default!(AimClusterServiceTemplateSpec);

/// Whether models are to be kept on a volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Caching {
    #[serde(default)]
    pub enabled: bool,

    /// Environment of what fetches the models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::plain_env")]
    pub env: Vec<EnvVar>,
}

pub(super) fn crd() -> CustomResourceDefinition {
    super::finish_crd(AimServiceTemplate::crd())
}

pub(super) fn cluster_crd() -> CustomResourceDefinition {
    super::finish_crd(AimClusterServiceTemplate::crd())
}
