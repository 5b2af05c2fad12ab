//! `AIMTemplateCache` and `ModelCache`: models kept on volumes. Both are declared only; nothing
//! serves them.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{EnvVar, LocalObjectReference};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::absent::read_absent_as_default;
use super::reference::ResolvedReference;
use super::{DEFAULT_RUNTIME_CONFIG, fields};
use crate::schema;

/// The words of `status.status`.
const PHASES: [&str; 4] = ["Pending", "Progressing", "Available", "Failed"];

/// The models of one template.
#[allow(clippy::duplicated_attributes, reason = "two printer columns may have the same type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "aim.silogen.ai",
    version = "v1alpha1",
    kind = "AIMTemplateCache",
    root = "AimTemplateCache",
    plural = "aimtemplatecaches",
    shortname = "aimtc",
    namespaced,
    doc = "The models of a template, kept on volumes.",
    status = "TemplateCacheStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Template", type_ = "string", json_path = ".spec.templateRef"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.status"),
    printcolumn(name = "Kind", type_ = "string", json_path = ".status.resolvedTemplateKind"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct AimTemplateCacheSpec {
    /// Name of the template.
    #[serde(default)]
    #[schemars(!default, length(min = 1))]
    pub template_ref: String,

    /// Environment of what fetches the models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::env")]
    pub env: Vec<EnvVar>,

    /// Secrets for pulling images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::pull_secrets")]
    pub image_pull_secrets: Vec<LocalObjectReference>,

    /// Storage class of the volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,

    /// Name of the runtime config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_RUNTIME_CONFIG))]
    pub runtime_config_name: Option<String>,
}

read_absent_as_default!(AimTemplateCacheSpec);

/// Observed state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateCacheStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The runtime config in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_runtime_config: Option<ResolvedReference>,

    /// Overall state in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = PHASES[0], "enum" = PHASES))]
    pub status: Option<String>,

    /// Kind of the template that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_template_kind: Option<String>,
}

/// One model.
#[allow(clippy::duplicated_attributes, reason = "two printer columns may have the same type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "aim.silogen.ai",
    version = "v1alpha1",
    kind = "ModelCache",
    plural = "modelcaches",
    shortname = "mc",
    namespaced,
    doc = "A model, kept on a volume.",
    status = "ModelCacheStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Cache Size", type_ = "string", json_path = ".spec.size"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.status"),
    printcolumn(name = "PVC", type_ = "string", json_path = ".status.persistentVolumeClaim"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct ModelCacheSpec {
    /// Address of the model, such as `hf://org/model`.
    #[serde(default)]
    #[schemars(
        !default,
        length(min = 1),
        regex(pattern = r"^(hf|s3)://[^ \t\r\n]+$"),
        extend("x-kubernetes-validations" = fields::immutable("sourceUri is immutable"))
    )]
    pub source_uri: String,

    /// Size of the volume.
    #[serde(default)]
    #[schemars(!default, schema_with = "schema::quantity")]
    pub size: Quantity,

    /// Storage class of the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,

    /// Environment of what fetches the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::env")]
    pub env: Vec<EnvVar>,

    /// Secrets for pulling images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::pull_secrets")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

read_absent_as_default!(ModelCacheSpec);

/// Observed state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelCacheStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// Overall state in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = PHASES[0], "enum" = PHASES))]
    pub status: Option<String>,

    /// When the model was last served from the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Time>,

    /// Name of the claim of the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<String>,
}

pub(super) fn template_cache_crd() -> CustomResourceDefinition {
    super::finish_crd(AimTemplateCache::crd())
}

pub(super) fn model_cache_crd() -> CustomResourceDefinition {
    super::finish_crd(ModelCache::crd())
}
