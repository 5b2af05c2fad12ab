//! Flags of ModelServices, named as the Go original names them.

use clap::{ArgAction, Args, ValueEnum};
use windlass_domains::model_service::{
    Dialect, MetricsRbac, ModelServiceDomain, Provider, Settings, Tracing,
};

const HEADING: &str = "ModelService";

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = HEADING)]
#[group(id = "model-service")]
pub(crate) struct Flags {
    /// Image of the server where a ModelService names none
    #[arg(
        long,
        env = "WINDLASS_DEFAULT_ENGINE_IMAGE",
        default_value = "ghcr.io/llm-d/llm-d-cuda:v0.5.1",
        value_parser = crate::names::image
    )]
    pub(crate) default_engine_image: String,
    /// Image of the endpoint picker where a ModelService names none
    #[arg(
        long,
        env = "WINDLASS_DEFAULT_EPP_IMAGE",
        default_value = "ghcr.io/llm-d/llm-d-inference-scheduler:v0.6.0",
        value_parser = crate::names::image
    )]
    pub(crate) default_epp_image: String,
    /// Image of the routing proxy where a ModelService names none
    #[arg(
        long,
        env = "WINDLASS_DEFAULT_ROUTING_PROXY_IMAGE",
        default_value = "ghcr.io/llm-d/llm-d-routing-sidecar:v0.6.0",
        value_parser = crate::names::image
    )]
    pub(crate) default_routing_proxy_image: String,
    /// Gateway of ModelServices that name none; empty gives them no route
    #[arg(
        long,
        env = "WINDLASS_DEFAULT_GATEWAY_NAME",
        default_value = "otterscale-llm-d-infra-inference-gateway"
    )]
    pub(crate) default_gateway_name: String,
    /// Namespace of that gateway
    #[arg(
        long,
        env = "WINDLASS_DEFAULT_GATEWAY_NAMESPACE",
        default_value = "llm-d",
        value_parser = crate::names::dns_label
    )]
    pub(crate) default_gateway_namespace: String,
    /// What carries the traffic between gateways and endpoint pickers: istio, gke or none
    #[arg(long, env = "WINDLASS_PROVIDER", default_value = "istio")]
    pub(crate) provider: Provider,
    /// Reading the metrics of endpoint pickers needs a token
    #[arg(
        long, env = "WINDLASS_METRICS_ENDPOINT_AUTH", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = true, action = ArgAction::Set
    )]
    pub(crate) metrics_endpoint_auth: bool,
    /// Which endpoint pickers may check such tokens: those of services with an inferencePool, or all
    #[arg(long, env = "WINDLASS_EPP_METRICS_RBAC", default_value = "with-pool")]
    pub(crate) epp_metrics_rbac: RbacFlag,
    /// Form of the endpoint pickers' configuration: of the scheduler up to v0.8, or of llm-d's router
    #[arg(long, env = "WINDLASS_EPP_CONFIG_DIALECT", default_value = "inference-extension")]
    pub(crate) epp_config_dialect: DialectFlag,
    /// Fetch models over plain HTTP where a ModelService does not say
    #[arg(
        long, env = "WINDLASS_PLAIN_HTTP", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = false, action = ArgAction::Set
    )]
    pub(crate) plain_http: bool,
    /// OpenTelemetry for endpoint pickers and routing proxies
    #[arg(
        long, env = "WINDLASS_TRACING_ENABLED", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = false, action = ArgAction::Set
    )]
    pub(crate) tracing_enabled: bool,
    /// Where traces are sent by OTLP
    #[arg(long, env = "WINDLASS_TRACING_OTEL_ENDPOINT", default_value = "")]
    pub(crate) tracing_otel_endpoint: String,
    /// Sampler of the traces
    #[arg(long, env = "WINDLASS_TRACING_SAMPLER", default_value = "parentbased_traceidratio")]
    pub(crate) tracing_sampler: String,
    /// Argument of the sampler
    #[arg(long, env = "WINDLASS_TRACING_SAMPLER_ARG", default_value = "0.01")]
    pub(crate) tracing_sampler_arg: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RbacFlag {
    WithPool,
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DialectFlag {
    InferenceExtension,
    LlmD,
}

/// An image, or nothing where that leaves a step out.
pub(super) fn optional_image(text: &str) -> Result<String, String> {
    if text.is_empty() { Ok(String::new()) } else { crate::names::image(text) }
}

impl Default for Flags {
    /// As on a command line without any; the environment has no say.
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            default_engine_image: settings.default_engine_image,
            default_epp_image: settings.default_epp_image,
            default_routing_proxy_image: settings.default_routing_proxy_image,
            default_gateway_name: settings.default_gateway_name,
            default_gateway_namespace: settings.default_gateway_namespace,
            provider: settings.provider,
            metrics_endpoint_auth: settings.metrics_endpoint_auth,
            epp_metrics_rbac: RbacFlag::WithPool,
            epp_config_dialect: DialectFlag::InferenceExtension,
            plain_http: settings.plain_http,
            tracing_enabled: settings.tracing.enabled,
            tracing_otel_endpoint: settings.tracing.otel_endpoint,
            tracing_sampler: settings.tracing.sampler,
            tracing_sampler_arg: settings.tracing.sampler_arg,
        }
    }
}

impl Flags {
    pub(super) fn domain(&self, kit_image: &str) -> ModelServiceDomain {
        ModelServiceDomain {
            settings: Settings {
                default_engine_image: self.default_engine_image.clone(),
                default_epp_image: self.default_epp_image.clone(),
                default_routing_proxy_image: self.default_routing_proxy_image.clone(),
                kit_image: kit_image.to_owned(),
                default_gateway_name: self.default_gateway_name.clone(),
                default_gateway_namespace: self.default_gateway_namespace.clone(),
                provider: self.provider,
                metrics_endpoint_auth: self.metrics_endpoint_auth,
                metrics_rbac: match self.epp_metrics_rbac {
                    RbacFlag::WithPool => MetricsRbac::WithPool,
                    RbacFlag::Always => MetricsRbac::Always,
                },
                tracing: Tracing {
                    enabled: self.tracing_enabled,
                    otel_endpoint: self.tracing_otel_endpoint.clone(),
                    sampler: self.tracing_sampler.clone(),
                    sampler_arg: self.tracing_sampler_arg.clone(),
                },
                plain_http: self.plain_http,
                epp_dialect: match self.epp_config_dialect {
                    DialectFlag::InferenceExtension => Dialect::InferenceExtension,
                    DialectFlag::LlmD => Dialect::LlmD,
                },
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
        }
    }
}
