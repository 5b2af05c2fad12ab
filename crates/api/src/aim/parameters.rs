//! What a template is made for, and what a service may ask to be different.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields;

/// What a server can be tuned for.
pub const METRICS: [&str; 2] = ["latency", "throughput"];

/// The number formats that a model can be served in.
pub const PRECISIONS: [&str; 8] = ["auto", "fp4", "fp8", "fp16", "fp32", "bf16", "int4", "int8"];

/// The order of the fields is that of the text whose hash names a derived template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeParameters {
    /// What the server is tuned for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "enum" = METRICS,
        "x-kubernetes-validations" = fields::immutable("metric is immutable")
    ))]
    pub metric: Option<String>,

    /// Number format of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "enum" = PRECISIONS,
        "x-kubernetes-validations" = fields::immutable("precision is immutable")
    ))]
    pub precision: Option<String>,

    /// The devices of one replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "x-kubernetes-validations" = fields::immutable("gpuSelector is immutable")
    ))]
    pub gpu_selector: Option<GpuSelector>,
}

/// A number of devices of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GpuSelector {
    /// Number of devices.
    #[serde(default)]
    #[schemars(!default, range(min = 1))]
    pub count: i32,

    /// Model of the devices, such as `MI300X`.
    #[serde(default)]
    #[schemars(!default, length(min = 1))]
    pub model: String,
}
