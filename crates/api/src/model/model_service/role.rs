//! One set of serving pods.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DeploymentStrategy;
use k8s_openapi::api::core::v1::{
    Affinity, Probe, ResourceRequirements, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::one;

/// Decode or prefill pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// Number of pods. Left alone once an autoscaler or a person has changed the Deployment's own
    /// number, until this one changes.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,

    /// How the model is spread over devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<Parallelism>,

    /// Resources of the server; the devices are added on top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,

    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,

    /// Annotations of the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,

    /// Account of the pods; its token is not mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub runtime_class_name: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub priority_class_name: Option<String>,

    /// User of the containers, for images whose own user is root or a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub run_as_user: Option<i64>,

    /// Group that owns the pod's volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub fs_group: Option<i64>,

    /// How pods are replaced; by default as Kubernetes does. Without spare devices use a rolling
    /// update with `maxSurge: 0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<DeploymentStrategy>,

    /// How the server is probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<Probes>,

    /// Memory at `/dev/shm`; by default there is some if `parallelism.tensor` is above 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_memory: Option<SharedMemory>,

    /// Further volumes of the pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub volumes: Vec<Volume>,

    /// Where the server finds the further volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["mountPath"]
    ))]
    pub volume_mounts: Vec<VolumeMount>,
}

impl Default for Role {
    fn default() -> Self {
        Self {
            replicas: one(),
            parallelism: None,
            resources: None,
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            annotations: BTreeMap::new(),
            affinity: None,
            service_account_name: None,
            runtime_class_name: None,
            priority_class_name: None,
            run_as_user: None,
            fs_group: None,
            strategy: None,
            probes: None,
            shared_memory: None,
            volumes: Vec::new(),
            volume_mounts: Vec::new(),
        }
    }
}

/// How many parts the model is split into, and how many copies of it a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parallelism {
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub tensor: i32,

    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub data: i32,

    /// Copies in one pod; together with `tensor` this gives the number of devices.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub data_local: i32,
}

impl Default for Parallelism {
    fn default() -> Self {
        Self { tensor: 1, data: 1, data_local: 1 }
    }
}

/// Probes of the server. One that names no action asks the server's `/health`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Probes {
    /// No probes at all: a pod counts as ready before its model is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup: Option<Probe>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness: Option<Probe>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness: Option<Probe>,
}

/// Memory that the server's processes share. It counts towards the container's memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedMemory {
    /// By default there is some, as this block is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// By default limited by the memory of the node only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_limit: Option<Quantity>,
}
