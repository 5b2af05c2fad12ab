//! What the operator reports, and what the image has said about itself.
//!
//! The words in a profile are the image's own. The schema sets no limits to them: a word that it
//! refused would keep the whole status from being written.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::aim::reference::ResolvedReference;
use crate::schema;

/// Observed state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The runtime config in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_runtime_config: Option<ResolvedReference>,

    /// The image in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_image: Option<ResolvedReference>,

    /// Overall state in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "default" = Phase::Pending.as_str(),
        "enum" = Phase::ALL.map(Phase::as_str)
    ))]
    pub status: Option<String>,

    /// Where the models are that the image serves; the first one with an address counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_sources: Vec<ModelSource>,

    /// How the image serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,

    /// How the image was last asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<Discovery>,
}

/// How the image was last asked, so that it is asked again neither needlessly nor without end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Discovery {
    /// Stands for the image and the parameters that `modelSources` and `profile` are the answer to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,

    /// Stands for what the last try that gave no answer was asked with, and ran with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_inputs: Option<String>,

    /// Tries in a row with these that gave no answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,

    /// When the last of them ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure_time: Option<Time>,

    /// The uid of its Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failed_job: Option<String>,

    /// What was wrong with its output; absent if the Job itself has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,

    /// Whether the output could not be read at all: it is tried again while the Job lasts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,

    /// The uid of the Job that was last told to be running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_job: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A model that is to be fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelSource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Address of the model, such as `hf://org/model`.
    #[serde(default)]
    #[schemars(!default)]
    pub source_uri: String,

    /// Room that the model takes.
    #[serde(default)]
    #[schemars(!default, schema_with = "schema::quantity")]
    pub size: Quantity,
}

/// How the image serves. The names of the fields are those of the image's own report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Arguments of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub engine_args: Option<Value>,

    /// Environment of the engine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env_vars: BTreeMap<String, String>,

    /// What the profile is made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ProfileMetadata>,
}

/// What a profile is made for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileMetadata {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,

    /// Model of the devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,

    /// Devices of one replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<i32>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
}

/// The words of `status.status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Pending,
    Progressing,
    /// The image has said how it serves.
    Available,
    Degraded,
    Failed,
}

impl Phase {
    pub(super) const ALL: [Self; 5] =
        [Self::Pending, Self::Progressing, Self::Available, Self::Degraded, Self::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Progressing => "Progressing",
            Self::Available => "Available",
            Self::Degraded => "Degraded",
            Self::Failed => "Failed",
        }
    }
}
