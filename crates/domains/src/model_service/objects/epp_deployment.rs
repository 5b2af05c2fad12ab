//! The endpoint picker.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy};
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, EnvVar, GRPCAction, PodSpec, PodTemplateSpec, Probe,
    ResourceRequirements, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::environment::{of_pod, tracing, variable};
use super::security::{locked_down, unprivileged};
use super::{Blueprint, container_port};
use crate::model_service::compose::Workload;
use crate::model_service::epp_config::ConfigFile;
use crate::model_service::names::{
    Names, REPLICAS_ANNOTATION, TOKEN_ANNOTATION, TOKEN_UID_ANNOTATION,
};

pub(super) const EXT_PROC: &str = "grpc-ext-proc";
pub(super) const METRICS: &str = "http-metrics";
pub(super) const METRICS_PORT: i32 = 9090;
const HEALTH_PORT: i32 = 9003;
const CONFIG: &str = "epp-config";
const CONFIG_PATH: &str = "/config";
/// The token Secret as the marks on the Deployment tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) generation: i64,
    /// Unknown for one that was there before.
    pub(crate) uid: Option<String>,
}

/// Longer than the longest answer that gateways wait for.
const GRACE_SECONDS: i64 = 130;

pub(crate) fn epp_deployment(
    blueprint: Blueprint<'_>,
    workload: &Workload,
    token: Option<Token>,
) -> Deployment {
    let Blueprint { names, wanted, .. } = blueprint;
    let mut annotations = BTreeMap::from(workload.marks.annotations());
    annotations.insert(REPLICAS_ANNOTATION.to_owned(), wanted.epp.replicas.to_string());
    if let Some(token) = token {
        annotations.insert(TOKEN_ANNOTATION.to_owned(), token.generation.to_string());
        let uid = token.uid.map(|uid| (TOKEN_UID_ANNOTATION.to_owned(), uid));
        annotations.extend(uid);
    }
    Deployment {
        metadata: ObjectMeta { annotations: Some(annotations), ..names.epp_metadata(names.epp()) },
        spec: Some(DeploymentSpec {
            replicas: workload.replicas,
            selector: LabelSelector {
                match_labels: Some(names.epp_pod_labels()),
                ..Default::default()
            },
            // Two pickers that do not know of each other would send requests to the same pod.
            strategy: Some(DeploymentStrategy {
                type_: Some("Recreate".to_owned()),
                ..Default::default()
            }),
            template: workload.template.clone(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

pub(crate) fn template(blueprint: Blueprint<'_>, file: ConfigFile) -> PodTemplateSpec {
    let names = blueprint.names;
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(names.epp_pod_labels()),
            annotations: Some(BTreeMap::from([("checksum/config".to_owned(), file.hash())])),
            ..Default::default()
        }),
        spec: Some(PodSpec {
            service_account_name: Some(names.epp().to_owned()),
            termination_grace_period_seconds: Some(GRACE_SECONDS),
            security_context: Some(unprivileged()),
            containers: vec![picker(blueprint, file)],
            volumes: Some(vec![Volume {
                name: CONFIG.to_owned(),
                config_map: Some(ConfigMapVolumeSource {
                    name: names.config_map(),
                    optional: Some(true),
                    ..Default::default()
                }),
                ..Default::default()
            }]),
            ..Default::default()
        }),
    }
}

fn picker(blueprint: Blueprint<'_>, file: ConfigFile) -> Container {
    let epp = &blueprint.wanted.epp;
    let service = |alone: &str, among_others: &str| {
        if epp.replicas > 1 { among_others.to_owned() } else { alone.to_owned() }
    };
    Container {
        name: "epp".to_owned(),
        image: Some(epp.image.clone()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(args(blueprint, file)),
        env: Some(env(blueprint)),
        ports: Some(vec![
            container_port(EXT_PROC, epp.port),
            container_port("grpc-health", HEALTH_PORT),
            container_port(METRICS, METRICS_PORT),
        ]),
        readiness_probe: Some(probe(service("inference-extension", "readiness"), 0, 2)),
        liveness_probe: Some(probe(service("inference-extension", "liveness"), 5, 10)),
        resources: Some(epp.resources.clone().unwrap_or_else(built_in_resources)),
        volume_mounts: Some(vec![VolumeMount {
            name: CONFIG.to_owned(),
            mount_path: CONFIG_PATH.to_owned(),
            read_only: Some(true),
            ..Default::default()
        }]),
        security_context: Some(locked_down()),
        ..Default::default()
    }
}

fn args(blueprint: Blueprint<'_>, file: ConfigFile) -> Vec<String> {
    let Blueprint { names, wanted, settings, .. } = blueprint;
    let mut args = vec![
        format!("--pool-name={}", names.name()),
        format!("--pool-namespace={}", names.namespace_or_default()),
        "--pool-group=inference.networking.k8s.io".to_owned(),
        format!("--config-file={CONFIG_PATH}/{}", file.name),
        format!("--grpc-port={}", wanted.epp.port),
        "--zap-encoder=json".to_owned(),
    ];
    if wanted.epp.replicas > 1 {
        args.push("--ha-enable-leader-election".to_owned());
    }
    args.push(format!("--tracing={}", settings.tracing.enabled));
    if !settings.metrics_endpoint_auth {
        args.push("--metrics-endpoint-auth=false".to_owned());
    }
    args
}

fn env(blueprint: Blueprint<'_>) -> Vec<EnvVar> {
    let attributes = "k8s.namespace.name=$(NAMESPACE),\
                      k8s.node.name=$(OTEL_RESOURCE_ATTRIBUTES_NODE_NAME),\
                      k8s.pod.name=$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME)";
    let details = vec![
        versioned(of_pod("OTEL_RESOURCE_ATTRIBUTES_NODE_NAME", "spec.nodeName")),
        versioned(of_pod("OTEL_RESOURCE_ATTRIBUTES_POD_NAME", "metadata.name")),
        variable("OTEL_RESOURCE_ATTRIBUTES", attributes),
    ];
    let spans = tracing(&blueprint.settings.tracing, "gateway-api-inference-extension", details);
    let mut env =
        vec![of_pod("NAMESPACE", "metadata.namespace"), of_pod("POD_NAME", "metadata.name")];
    env.extend(spans);
    env
}

fn versioned(mut variable: EnvVar) -> EnvVar {
    if let Some(field) = variable.value_from.as_mut().and_then(|from| from.field_ref.as_mut()) {
        field.api_version = Some("v1".to_owned());
    }
    variable
}

fn probe(service: String, initial_delay_seconds: i32, period_seconds: i32) -> Probe {
    Probe {
        grpc: Some(GRPCAction { port: HEALTH_PORT, service: Some(service) }),
        initial_delay_seconds: Some(initial_delay_seconds).filter(|seconds| *seconds > 0),
        period_seconds: Some(period_seconds),
        ..Default::default()
    }
}

fn built_in_resources() -> ResourceRequirements {
    let amount = |name: &str, text: &str| (name.to_owned(), Quantity(text.to_owned()));
    ResourceRequirements {
        requests: Some(BTreeMap::from([amount("cpu", "4"), amount("memory", "8Gi")])),
        limits: Some(BTreeMap::from([amount("memory", "16Gi")])),
        ..Default::default()
    }
}

/// What marks on the live Deployment tell of Prometheus' token.
pub(crate) fn token_mark(live: &Deployment) -> Option<Token> {
    let annotations = live.metadata.annotations.as_ref()?;
    let generation = annotations.get(TOKEN_ANNOTATION)?.parse().ok()?;
    Some(Token { generation, uid: annotations.get(TOKEN_UID_ANNOTATION).cloned() })
}

/// The names by which a live picker's pods are found.
pub(crate) fn pod_selector(names: &Names) -> BTreeMap<String, String> {
    names.epp_pod_labels()
}
