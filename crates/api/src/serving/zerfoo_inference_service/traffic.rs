//! The parts of the spec that decide how many pods there are and which of them answer.

use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscalerBehavior, MetricSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules;

/// A second model beside the primary one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rules::require_model_ref)]
pub struct Canary {
    /// Model that the canary serves.
    #[serde(default)]
    #[schemars(extend(
        "maxLength" = 512,
        "x-kubernetes-validations" = rules::model_ref("canary modelRef")
    ))]
    pub model_ref: String,

    /// Percentage of the traffic that goes to the canary.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-validations" = rules::canary_weight()))]
    pub weight: i32,

    /// Number of canary pods when a gateway splits the traffic; by default `spec.replicas`.
    /// Without a gateway the number of pods makes the split and this field is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub replicas: Option<i32>,
}

/// What the autoscaler looks at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaling {
    /// Wanted average CPU use in percent of the request; not used when `metrics` is given.
    #[serde(default = "default_target_cpu", rename = "targetCPUUtilizationPercentage")]
    #[schemars(range(min = 1))]
    pub target_cpu_utilization_percentage: i32,

    /// Metrics as in a HorizontalPodAutoscaler; they replace the CPU target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub metrics: Vec<MetricSpec>,

    /// Scaling behaviour as in a HorizontalPodAutoscaler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}

impl Default for Autoscaling {
    fn default() -> Self {
        Self {
            target_cpu_utilization_percentage: default_target_cpu(),
            metrics: Vec::new(),
            behavior: None,
        }
    }
}

fn default_target_cpu() -> i32 {
    80
}

/// Gateways that expose the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    /// Gateways (or, for a mesh, Services) that the route attaches to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub parent_refs: Vec<ParentRef>,

    /// Host names that the route answers to; none means all of the gateway's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub hostnames: Vec<String>,

    /// Path prefix of the requests to take.
    #[serde(default = "default_path_prefix")]
    #[schemars(extend(
        "maxLength" = 1024,
        "x-kubernetes-validations" = rules::absolute_path("routing pathPrefix")
    ))]
    pub path_prefix: String,
}

fn default_path_prefix() -> String {
    "/".to_owned()
}

/// A parent as the Gateway API names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParentRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub section_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}
