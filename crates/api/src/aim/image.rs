//! `AIMImage` and `AIMClusterImage`: an entry of the catalogue. The two kinds differ in name and
//! scope alone.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::absent::read_absent_as_default;
use super::reference::ResolvedReference;
use super::{DEFAULT_RUNTIME_CONFIG, fields};

/// A container image that serves a model.
#[allow(clippy::duplicated_attributes, reason = "two printer columns may have the same type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "aim.silogen.ai",
    version = "v1alpha1",
    kind = "AIMImage",
    root = "AimImage",
    plural = "aimimages",
    shortname = "aimimg",
    namespaced,
    doc = "A container image that serves a model.",
    status = "ImageStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Model ID", type_ = "string", json_path = ".metadata.name"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct AimImageSpec {
    /// Reference of the container image.
    #[serde(default)]
    #[schemars(!default, length(min = 1))]
    pub image: String,

    /// Name of the template for services that name none; may be empty.
    #[serde(default)]
    #[schemars(!default)]
    pub default_service_template: String,

    /// Name of a runtime config; nothing looks at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_RUNTIME_CONFIG))]
    pub runtime_config_name: Option<String>,

    /// Resources of one server, where neither service nor template give any.
    #[serde(default)]
    #[schemars(
        !default,
        schema_with = "fields::resources",
        extend("x-kubernetes-validations" = fields::image_resources())
    )]
    pub resources: ResourceRequirements,
}

read_absent_as_default!(AimImageSpec);

/// The spec of an `AIMClusterImage`, a type of its own only because one type derives one kind. It
/// has no schema: the definition of `AIMClusterImage` is that of `AIMImage` under other names.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "aim.silogen.ai",
    version = "v1alpha1",
    kind = "AIMClusterImage",
    root = "AimClusterImage",
    plural = "aimclusterimages",
    shortname = "aimclimg",
    status = "ImageStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(transparent)]
pub struct AimClusterImageSpec(pub AimImageSpec);

/// Declared, and written by nobody.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_runtime_config: Option<ResolvedReference>,
}

pub(super) fn crd() -> CustomResourceDefinition {
    super::finish_crd(AimImage::crd())
}

pub(super) fn cluster_crd() -> CustomResourceDefinition {
    let named = super::finish_crd(AimClusterImage::crd());
    let mut crd = crd();
    crd.metadata.name = named.metadata.name;
    crd.spec.names = named.spec.names;
    crd.spec.scope = named.spec.scope;
    crd
}
