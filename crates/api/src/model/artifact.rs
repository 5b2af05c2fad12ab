//! `ModelArtifact` and `Artifact`: a model taken from its source and pushed to an OCI registry.
//!
//! The two kinds differ in name alone. [`ArtifactKind`] is what code that serves both works with.
//!
//! Fields that are not optional here have been required by the schema from its first version on,
//! so no stored object lacks them.

mod rules;
mod status;

#[cfg(test)]
mod tests;

pub use status::{ArtifactStatus, JobRef};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{CustomResource, CustomResourceExt, Resource};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::schema;

pub use rules::{LONG_NAME, MAX_NAME};

/// Tag that is pushed where the spec gives none.
pub const DEFAULT_TAG: &str = "latest";

/// Key of the Hugging Face token in its Secret where the spec gives none.
pub const DEFAULT_TOKEN_KEY: &str = "token";

/// A kind with the spec and the status of an artifact.
pub trait ArtifactKind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + DeserializeOwned
    + Clone
    + Send
    + Sync
    + 'static
{
    fn spec(&self) -> &ArtifactSpec;
    fn status(&self) -> Option<&ArtifactStatus>;
}

/// Which model to package, how, and where to push it.
#[allow(clippy::duplicated_attributes, reason = "two printer columns may have the same type")]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "model.otterscale.io",
    version = "v1alpha1",
    kind = "ModelArtifact",
    plural = "modelartifacts",
    category = "otterscale",
    namespaced,
    doc = "A model that is fetched, packaged and pushed to an OCI registry.",
    status = "ArtifactStatus",
    derive = "PartialEq",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Registry", type_ = "string", json_path = ".spec.target.registry"),
    printcolumn(name = "Repository", type_ = "string", json_path = ".spec.target.repository"),
    printcolumn(name = "Digest", type_ = "string", json_path = ".status.digest", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactSpec {
    /// Where the model comes from.
    pub source: Source,

    /// Where the packaged model is pushed.
    pub target: Target,

    /// How the model is packaged.
    #[serde(default = "default_format")]
    #[schemars(extend("enum" = ["ModelPack", "ModelKit"]))]
    pub format: String,

    /// The volume that the model is fetched to and packaged on.
    pub storage: Storage,
}

/// The spec of an `Artifact`, a type of its own only because one type derives one kind. It has no
/// schema: the definition of `Artifact` is that of `ModelArtifact` under another name.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "model.otterscale.io",
    version = "v1alpha1",
    kind = "Artifact",
    plural = "artifacts",
    category = "otterscale",
    namespaced,
    doc = "The same as a `ModelArtifact`, under a shorter name.",
    status = "ArtifactStatus",
    derive = "PartialEq",
    schema = "disabled"
)]
#[serde(transparent)]
pub struct AliasSpec(pub ArtifactSpec);

impl ArtifactKind for ModelArtifact {
    fn spec(&self) -> &ArtifactSpec {
        &self.spec
    }

    fn status(&self) -> Option<&ArtifactStatus> {
        self.status.as_ref()
    }
}

impl ArtifactKind for Artifact {
    fn spec(&self) -> &ArtifactSpec {
        &self.spec.0
    }

    fn status(&self) -> Option<&ArtifactStatus> {
        self.status.as_ref()
    }
}

/// Origin of a model; exactly one member is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::source()))]
pub struct Source {
    /// A repository of the Hugging Face Hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hugging_face: Option<HuggingFace>,
}

/// A repository of the Hugging Face Hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HuggingFace {
    /// Repository id, such as `microsoft/phi-4`.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9._/-]*$"))]
    pub model: String,

    /// Branch, tag or commit; by default the repository's default branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-zA-Z0-9._/-]*$"))]
    pub revision: Option<String>,

    /// Token for private and gated repositories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_secret_ref: Option<SecretKeyRef>,
}

/// A key of a Secret in the object's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[schemars(length(min = 1))]
    pub name: String,

    /// Key in the Secret; by default `token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A Secret in the object's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// Where the packaged model is pushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Host of the registry, with its port if needed, such as `ghcr.io` or `registry.local:5001`.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9._:-]*$"))]
    pub registry: String,

    /// Path in the registry, such as `myorg/models/phi-4`.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9._/-]*$"))]
    pub repository: String,

    /// Tag to push; by default `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9._-]*$"))]
    pub tag: Option<String>,

    /// Credentials of the registry: a Secret of type `kubernetes.io/dockerconfigjson`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<SecretRef>,

    /// Whether to push over plain HTTP.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure: bool,
}

/// The volume that the model is fetched to and packaged on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Size of the volume, such as `100Gi`.
    #[schemars(schema_with = "schema::quantity")]
    pub size: Quantity,

    /// Storage class of the volume; by default that of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

/// The definition of `ModelArtifact` to install: the derived one plus the rule on the object's name.
pub(crate) fn model_artifact_crd() -> CustomResourceDefinition {
    schema::finish_crd(ModelArtifact::crd(), Some(rules::name()), |_| {})
}

/// The definition of `Artifact` to install: that of `ModelArtifact` under the names of `Artifact`.
pub(crate) fn artifact_crd() -> CustomResourceDefinition {
    let named = Artifact::crd();
    let mut crd = model_artifact_crd();
    crd.metadata.name = named.metadata.name;
    crd.spec.names = named.spec.names;
    crd
}

fn default_format() -> String {
    "ModelPack".to_owned()
}

fn is_false(value: &bool) -> bool {
    !value
}
