//! What leads requests to the pods, and what watches them.

use k8s_openapi::api::core::v1::ResourceRequirements;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::one;

/// Sidecar of the decode pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoutingProxy {
    /// Image of the sidecar; by default the one the operator was configured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,

    /// Protocol that carries caches from prefill to decode pods.
    #[serde(default = "default_connector")]
    pub connector: String,

    /// Port of the server behind the sidecar, which itself takes `engine.port`.
    #[serde(default = "default_target_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub target_port: i32,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zap_encoder: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zap_log_level: Option<String>,

    /// Serve TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secure_proxy: Option<bool>,

    /// Talk TLS to prefill pods.
    #[serde(default, rename = "prefillerUseTLS", skip_serializing_if = "Option::is_none")]
    pub prefiller_use_tls: Option<bool>,

    /// Folder of the certificate in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_path: Option<String>,
}

impl Default for RoutingProxy {
    fn default() -> Self {
        Self {
            image: None,
            connector: default_connector(),
            target_port: default_target_port(),
            zap_encoder: None,
            zap_log_level: None,
            secure_proxy: None,
            prefiller_use_tls: None,
            cert_path: None,
        }
    }
}

fn default_connector() -> String {
    "nixlv2".to_owned()
}

fn default_target_port() -> i32 {
    8200
}

/// The inference pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pool {
    pub endpoint_picker: EndpointPicker,
}

/// What chooses the pod for each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointPicker {
    /// Image of the picker; by default the one the operator was configured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,

    /// Above 1 the pickers elect a leader.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,

    /// Requests or limits given here replace the built-in ones as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,

    /// Port on which gateways ask the picker.
    #[serde(default = "default_epp_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,

    /// What gateways do when the picker does not answer.
    #[serde(default)]
    pub failure_mode: FailureMode,
}

impl Default for EndpointPicker {
    fn default() -> Self {
        Self {
            image: None,
            replicas: one(),
            resources: None,
            port: DEFAULT_EPP_PORT,
            failure_mode: FailureMode::FailOpen,
        }
    }
}

/// Port of the endpoint picker unless the spec says otherwise.
pub const DEFAULT_EPP_PORT: i32 = 9002;

fn default_epp_port() -> i32 {
    DEFAULT_EPP_PORT
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailureMode {
    #[default]
    FailOpen,
    FailClose,
}

impl FailureMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FailOpen => "FailOpen",
            Self::FailClose => "FailClose",
        }
    }
}

/// How the service is reached from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    pub gateway_ref: GatewayRef,

    /// Host names that the route answers to; none means all of the gateway's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hostnames: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayRef {
    #[schemars(length(min = 1))]
    pub name: String,

    /// By default the service's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Monitoring {
    /// Given, it must say `enabled: true` to have any effect; absent, the serving pods are scraped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_monitor: Option<PodMonitoring>,
}

/// How the serving pods are scraped. Enabled, the endpoint picker is scraped too if `inferencePool`
/// is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodMonitoring {
    #[serde(default)]
    pub enabled: bool,

    #[serde(default = "default_port_name")]
    pub port_name: String,

    #[serde(default = "default_path")]
    pub path: String,

    #[serde(default = "default_interval")]
    pub interval: String,
}

impl Default for PodMonitoring {
    fn default() -> Self {
        Self {
            enabled: false,
            port_name: default_port_name(),
            path: default_path(),
            interval: default_interval(),
        }
    }
}

fn default_port_name() -> String {
    "http".to_owned()
}

fn default_path() -> String {
    "/metrics".to_owned()
}

fn default_interval() -> String {
    "30s".to_owned()
}
