//! What the operator reports.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Observed state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelServiceStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// `Pending`, `Running`, `Ready` or `Failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,

    /// Decode pods that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode_ready: Option<i32>,

    /// Decode pods that are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode_replicas: Option<i32>,

    /// Prefill pods that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill_ready: Option<i32>,

    /// Prefill pods that are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill_replicas: Option<i32>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// The overall state as this kind has always named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing runs yet.
    Pending,
    /// Pods exist, and not all of them are ready.
    Running,
    Ready,
    /// Pods cannot come up; the Ready condition names the cause.
    Failed,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Ready => "Ready",
            Self::Failed => "Failed",
        }
    }
}
