//! What the operator's administrator decides for all services.

use std::str::FromStr;

use super::epp_config::Dialect;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Image of the server where a service names none.
    pub default_engine_image: String,
    /// Image of the endpoint picker where a service names none.
    pub default_epp_image: String,
    /// Image of the routing proxy where a service names none.
    pub default_routing_proxy_image: String,
    /// Image that unpacks models; empty leaves unpacking out.
    pub kit_image: String,
    /// Gateway of services that name none; empty gives them no route.
    pub default_gateway_name: String,
    pub default_gateway_namespace: String,
    pub provider: Provider,
    /// Whether reading the endpoint picker's metrics needs a token.
    pub metrics_endpoint_auth: bool,
    pub metrics_rbac: MetricsRbac,
    pub tracing: Tracing,
    /// Fetch models over plain HTTP where a service does not say.
    pub plain_http: bool,
    pub epp_dialect: Dialect,
    /// Version of the operator, a label of the children; empty leaves the label out.
    pub version: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_engine_image: "ghcr.io/llm-d/llm-d-cuda:v0.5.1".to_owned(),
            default_epp_image: "ghcr.io/llm-d/llm-d-inference-scheduler:v0.6.0".to_owned(),
            default_routing_proxy_image: "ghcr.io/llm-d/llm-d-routing-sidecar:v0.6.0".to_owned(),
            kit_image: "ghcr.io/kitops-ml/kitops:v1.11.0".to_owned(),
            default_gateway_name: "otterscale-llm-d-infra-inference-gateway".to_owned(),
            default_gateway_namespace: "llm-d".to_owned(),
            provider: Provider::Istio,
            metrics_endpoint_auth: true,
            metrics_rbac: MetricsRbac::default(),
            tracing: Tracing::default(),
            plain_http: false,
            epp_dialect: Dialect::default(),
            version: "devel".to_owned(),
        }
    }
}

/// What carries the traffic between gateways and endpoint pickers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provider {
    #[default]
    Istio,
    Gke,
    None,
}

/// A word that names no provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the provider must be istio, gke or none, got {0:?}")]
pub struct UnknownProvider(pub String);

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(text: &str) -> Result<Self, UnknownProvider> {
        match text {
            "istio" => Ok(Self::Istio),
            "gke" => Ok(Self::Gke),
            "none" => Ok(Self::None),
            other => Err(UnknownProvider(other.to_owned())),
        }
    }
}

/// Which endpoint pickers may check the tokens of those who read their metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricsRbac {
    /// Those of services with an `inferencePool` block, as it has always been. The metrics of the
    /// others cannot be read while authentication is on.
    #[default]
    WithPool,
    /// All of them, at the price of two cluster-scoped objects for each service.
    Always,
}

/// OpenTelemetry of endpoint pickers and routing proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracing {
    pub enabled: bool,
    pub otel_endpoint: String,
    pub sampler: String,
    pub sampler_arg: String,
}

impl Default for Tracing {
    fn default() -> Self {
        Self {
            enabled: false,
            otel_endpoint: String::new(),
            sampler: "parentbased_traceidratio".to_owned(),
            sampler_arg: "0.01".to_owned(),
        }
    }
}
