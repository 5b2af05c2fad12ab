//! `ModelService`: a packed model served by vLLM pods, optionally split into prefill and decode,
//! behind an endpoint picker, an inference pool and a route.
//!
//! The schema carries the same rules, in the same words, as the validation in the reconciler; the
//! reconciler repeats them for objects that were stored before a rule existed.

mod role;
mod routing;
mod rules;
mod status;

#[cfg(test)]
mod tests;

pub use role::{Parallelism, Probes, Role, SharedMemory};
pub use routing::{
    DEFAULT_EPP_PORT, EndpointPicker, FailureMode, GatewayRef, Monitoring, PodMonitoring, Pool,
    Route, RoutingProxy,
};
pub use status::{ModelServiceStatus, Phase};

use k8s_openapi::api::core::v1::{EnvVar, LocalObjectReference};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// What is to be served, and how.
#[allow(clippy::duplicated_attributes, reason = "two printer columns may have the same type")]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "model.otterscale.io",
    version = "v1alpha1",
    kind = "ModelService",
    plural = "modelservices",
    category = "otterscale",
    namespaced,
    doc = "A packed model served by vLLM behind an endpoint picker.",
    status = "ModelServiceStatus",
    derive = "PartialEq",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Model", type_ = "string", json_path = ".spec.model.name"),
    printcolumn(
        name = "Decode",
        type_ = "string",
        json_path = ".status.decodeReady",
        priority = 1
    ),
    printcolumn(
        name = "Prefill",
        type_ = "string",
        json_path = ".status.prefillReady",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::spec()))]
pub struct ModelServiceSpec {
    /// The packed model.
    pub model: Model,

    /// Settings of the vLLM server; may be empty.
    pub engine: Engine,

    /// The devices that the server runs on.
    pub accelerator: Accelerator,

    /// The pods that answer requests; without `prefill` they do all the work.
    pub decode: Role,

    /// Separate pods that read prompts. Needs `routingProxy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill: Option<Role>,

    /// Sidecar of the decode pods that hands prompts over to prefill pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing_proxy: Option<RoutingProxy>,

    /// Settings of the inference pool and its endpoint picker. Both exist without this block too,
    /// then with `FailClose` and without access to the picker's metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_pool: Option<Pool>,

    /// Gateway and host names; by default the gateway that the operator was configured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_route: Option<Route>,

    /// What Prometheus scrapes; without this block the serving pods only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring: Option<Monitoring>,
}

/// A model packed as an OCI artifact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Name under which clients ask for the model.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// OCI reference of the packed model.
    #[schemars(length(min = 1))]
    pub image: String,

    /// Where the model is unpacked to.
    #[serde(default = "default_mount_path")]
    pub mount_path: String,

    /// Secrets for pulling images. The model itself is fetched with the first one that works.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,

    /// Fetch the model over plain HTTP. By default as the operator was configured: over TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
}

/// Settings of the vLLM server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Engine {
    /// Image of the server; by default the one the operator was configured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,

    /// Further arguments, placed after the generated ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,

    /// Further environment, placed after the generated one; of two entries of one name the last
    /// counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,

    /// Port on which a serving pod is reached.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            image: None,
            image_pull_policy: None,
            args: Vec::new(),
            env: Vec::new(),
            port: default_port(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Accelerator {
    /// Decides which device resource a pod requests.
    #[serde(rename = "type")]
    pub type_: AcceleratorType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AcceleratorType {
    Nvidia,
    Amd,
    IntelGaudi,
    Google,
    Cpu,
}

/// `spec.decode.probes.startup`: the fields of our own do not lie deeper.
const DESCRIBED: usize = 4;

/// The definition to install: the derived one plus the rule on the object's name.
pub(crate) fn crd() -> CustomResourceDefinition {
    schema::finish_crd(ModelService::crd(), Some(rules::name()), |root| {
        schema::describe_down_to(root, DESCRIBED);
    })
}

/// Where the model is unpacked to unless the spec says otherwise.
pub const DEFAULT_MOUNT_PATH: &str = "/models";

fn default_mount_path() -> String {
    DEFAULT_MOUNT_PATH.to_owned()
}

fn default_port() -> i32 {
    8000
}

fn one() -> i32 {
    1
}
