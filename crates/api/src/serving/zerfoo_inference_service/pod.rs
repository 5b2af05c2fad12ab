//! The parts of the spec that shape a pod.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules;
use crate::duration::GoDuration;

/// Compute resources of one pod. Empty or absent means "no request, no limit".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// Cores, such as `4` or `500m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxLength" = 64, "x-kubernetes-validations" = rules::quantity("resources cpu")))]
    pub cpu: Option<String>,

    /// Memory, such as `16Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxLength" = 64, "x-kubernetes-validations" = rules::quantity("resources memory")))]
    pub memory: Option<String>,

    /// Device memory over all devices of a pod, such as `24Gi`. Setting it requests devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxLength" = 64, "x-kubernetes-validations" = rules::quantity("resources gpuMemory")))]
    pub gpu_memory: Option<String>,
}

impl Resources {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How the pods are probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheck {
    /// HTTP path of the startup and readiness probes, and of the liveness probe unless it is
    /// `/readyz`.
    #[serde(default = "default_path")]
    #[schemars(extend("maxLength" = 1024, "x-kubernetes-validations" = rules::health_check_path()))]
    pub path: String,

    /// HTTP path of the liveness probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "maxLength" = 1024,
        "x-kubernetes-validations" = rules::absolute_path("healthCheck livenessPath")
    ))]
    pub liveness_path: Option<String>,

    /// Time between two probes: a duration such as `10s`, or an integer of nanoseconds.
    #[serde(default = "default_interval")]
    #[schemars(extend("x-kubernetes-validations" = rules::duration("healthCheck interval")))]
    pub interval: GoDuration,

    /// Time after which a probe has failed: a duration such as `5s`, or an integer of nanoseconds.
    #[serde(default = "default_timeout")]
    #[schemars(extend("x-kubernetes-validations" = rules::duration("healthCheck timeout")))]
    pub timeout: GoDuration,
}

impl Default for HealthCheck {
    fn default() -> Self {
        Self {
            path: default_path(),
            liveness_path: None,
            interval: default_interval(),
            timeout: default_timeout(),
        }
    }
}

fn default_path() -> String {
    "/readyz".to_owned()
}

fn default_interval() -> GoDuration {
    GoDuration::from("10s")
}

fn default_timeout() -> GoDuration {
    GoDuration::from("5s")
}

/// Who may call the server: holders of a key, or anyone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::auth()))]
pub struct Auth {
    /// Secret that holds the key callers present as a bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_secret_ref: Option<SecretKeyRef>,

    /// Serve without authentication, knowingly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_no_auth: Option<bool>,
}

/// One entry of a Secret in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// Where downloaded models are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::cache()))]
pub struct Cache {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<EmptyDirCache>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<PersistentVolumeCache>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<HostPathCache>,
    /// Fetch one quantisation before the server starts, instead of every file of the repository.
    /// Of the server's aliases not all can be fetched; a repository id always can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Prefetch>,
}

/// Scratch space of the pod; models are fetched again by every new pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmptyDirCache {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_limit: Option<Quantity>,
}

/// A claim that the pods share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeCache {
    #[schemars(length(min = 1, max = 253))]
    pub claim_name: String,
}

/// A directory of the node, one of those that the operator allows or below one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostPathCache {
    #[serde(default = "default_host_path")]
    #[schemars(extend(
        "maxLength" = 1024,
        "x-kubernetes-validations" = rules::absolute_path("cache hostPath path")
    ))]
    pub path: String,
}

/// Where the server's own cache filler puts models on a node.
pub const DEFAULT_HOST_PATH: &str = "/var/lib/zerfoo/models";

fn default_host_path() -> String {
    DEFAULT_HOST_PATH.to_owned()
}

/// What the init container fetches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prefetch {
    /// Quantisation to fetch, such as `Q4_K_M`.
    #[schemars(length(max = 64), regex(pattern = rules::QUANT_PATTERN))]
    pub quant: String,
}

/// Which devices hold `resources.gpuMemory`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    #[serde(default)]
    pub vendor: GpuVendor,

    /// Devices per pod.
    #[serde(default = "super::one")]
    #[schemars(range(min = 1, max = 1024))]
    pub count: i32,

    /// How much smaller than its nominal size a device may report itself, in percent.
    #[serde(default = "default_tolerance")]
    #[schemars(range(min = 0, max = 99))]
    pub memory_tolerance_percent: i32,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub runtime_class_name: Option<String>,
}

impl Default for Gpu {
    fn default() -> Self {
        Self {
            vendor: GpuVendor::Nvidia,
            count: 1,
            memory_tolerance_percent: default_tolerance(),
            runtime_class_name: None,
        }
    }
}

fn default_tolerance() -> i32 {
    8
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GpuVendor {
    #[default]
    Nvidia,
    Amd,
}
