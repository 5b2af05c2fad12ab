//! From a spec as written to values that can be trusted.
//!
//! The rules and texts are those of the schema, and some that it cannot express. They are repeated
//! here because an object may have been stored before a rule existed.

use k8s_openapi::api::core::v1::ResourceRequirements;
use windlass_api::model::model_service::{
    DEFAULT_EPP_PORT, DEFAULT_MOUNT_PATH, EndpointPicker, FailureMode, ModelService,
    ModelServiceSpec, Parallelism, PodMonitoring, Role as RoleSpec,
};
use windlass_engine::quantity;

use super::names::{MAX_SERVICE_NAME, Names, Role};
use super::objects::{Blueprint, Pods, volumes};
use super::settings::{MetricsRbac, Provider, Settings};

/// Whether the endpoint picker checks the tokens of those who read its metrics, and may do so.
pub(super) fn wants_cluster_rbac(spec: &ModelServiceSpec, settings: &Settings) -> bool {
    let by_pool = spec.inference_pool.is_some();
    settings.metrics_endpoint_auth && (by_pool || settings.metrics_rbac == MetricsRbac::Always)
}

#[cfg(test)]
mod tests;

/// Tells other pods where a server hands out its caches.
pub(super) const NIXL_PORT_VARIABLE: &str = "VLLM_NIXL_SIDE_CHANNEL_PORT";

/// The first rule that a spec breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    #[error("metadata.name must have at most 59 characters, or 57 if it begins with a digit")]
    Name,
    #[error("prefill needs routingProxy, which hands prompts over to the prefill pods")]
    PrefillNeedsProxy,
    #[error("routingProxy targetPort must differ from engine port, which the proxy itself uses")]
    TargetPort,
    #[error(
        "inferencePool endpointPicker port must not be 9003 or 9090, which the endpoint picker \
         uses for health and metrics"
    )]
    EppPort,
    #[error(
        "engine env {NIXL_PORT_VARIABLE} must differ from engine port, which the proxy itself uses"
    )]
    NixlPort,
    #[error("{role} volumes must not have the name {name}, which the operator itself uses")]
    VolumeName { role: &'static str, name: String },
    #[error("{role} volumeMounts must not use {path}, which the operator itself uses")]
    MountPath { role: &'static str, path: String },
    #[error("model mountPath must not be {0}, which the operator itself uses")]
    ModelPath(String),
    #[error("{0} sharedMemory sizeLimit must be a positive quantity")]
    SharedMemory(&'static str),
}

impl Rule {
    /// The path of the field that breaks the rule.
    pub fn field(&self) -> String {
        match self {
            Self::Name => "metadata.name".to_owned(),
            Self::PrefillNeedsProxy => "spec.prefill".to_owned(),
            Self::TargetPort => "spec.routingProxy.targetPort".to_owned(),
            Self::EppPort => "spec.inferencePool.endpointPicker.port".to_owned(),
            Self::NixlPort => "spec.engine.env".to_owned(),
            Self::VolumeName { role, .. } => format!("spec.{role}.volumes"),
            Self::MountPath { role, .. } => format!("spec.{role}.volumeMounts"),
            Self::ModelPath(_) => "spec.model.mountPath".to_owned(),
            Self::SharedMemory(role) => format!("spec.{role}.sharedMemory.sizeLimit"),
        }
    }
}

/// The judged part of a spec, defaults filled in. What needs neither is read from the object itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) engine_image: String,
    pub(super) mount_path: String,
    /// Where the pods of a pool are reached.
    pub(super) port: i32,
    /// Where servers hand out their caches, if they say.
    pub(super) nixl_port: Option<i32>,
    pub(super) proxy_image: Option<String>,
    pub(super) plain_http: bool,
    pub(super) epp: Picker,
    /// Whether the picker may check tokens, which takes rights in the whole cluster.
    pub(super) cluster_rbac: bool,
    pub(super) token_secret: bool,
    /// How the serving pods are scraped, if at all.
    pub(super) pod_monitors: Option<PodMonitoring>,
    pub(super) service_monitor: bool,
}

/// The endpoint picker.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picker {
    pub(super) image: String,
    pub(super) replicas: i32,
    pub(super) port: i32,
    pub(super) failure_mode: FailureMode,
    /// `None` for the built-in ones.
    pub(super) resources: Option<ResourceRequirements>,
}

pub(super) fn validate(
    service: &ModelService,
    names: &Names,
    settings: &Settings,
) -> Result<Wanted, Rule> {
    let spec = &service.spec;
    check(names.name().len() <= MAX_SERVICE_NAME, Rule::Name)?;
    check(names.epp().len() <= MAX_SERVICE_NAME, Rule::Name)?;
    check(spec.prefill.is_none() || spec.routing_proxy.is_some(), Rule::PrefillNeedsProxy)?;
    let wanted = fill_in(spec, settings);
    check_ports(spec, &wanted)?;
    let blueprint = Blueprint { names, spec, wanted: &wanted, settings };
    for (role, pods) in roles(spec) {
        check_model_path(Pods { blueprint, role, spec: pods })?;
        check_volumes(role, pods, &wanted.mount_path)?;
        check_shared_memory(role, pods)?;
    }
    Ok(wanted)
}

/// The roles that a spec asks for.
pub(super) fn roles(spec: &ModelServiceSpec) -> impl Iterator<Item = (Role, &RoleSpec)> {
    let prefill = spec.prefill.as_ref().map(|pods| (Role::Prefill, pods));
    [(Role::Decode, &spec.decode)].into_iter().chain(prefill)
}

pub(super) fn parallelism(pods: &RoleSpec) -> Parallelism {
    pods.parallelism.unwrap_or_default()
}

/// Where the server of a role listens: behind the proxy if there is one.
pub(super) fn server_port(spec: &ModelServiceSpec, role: Role) -> i32 {
    match (&spec.routing_proxy, role) {
        (Some(proxy), Role::Decode) => proxy.target_port,
        _ => spec.engine.port,
    }
}

fn fill_in(spec: &ModelServiceSpec, settings: &Settings) -> Wanted {
    let pool = spec.inference_pool.as_ref();
    let auth = settings.metrics_endpoint_auth;
    let by_pool = pool.is_some() && auth;
    let token_secret = by_pool && settings.provider != Provider::Gke;
    let asked = spec.monitoring.as_ref().and_then(|monitoring| monitoring.pod_monitor.as_ref());
    let enabled = asked.is_some_and(|monitor| monitor.enabled);
    let proxy = spec.routing_proxy.as_ref();
    Wanted {
        engine_image: given(spec.engine.image.as_deref(), &settings.default_engine_image),
        mount_path: given(Some(&spec.model.mount_path), DEFAULT_MOUNT_PATH),
        port: spec.engine.port,
        nixl_port: nixl_port(spec),
        proxy_image: proxy
            .map(|proxy| given(proxy.image.as_deref(), &settings.default_routing_proxy_image)),
        plain_http: spec.model.insecure.unwrap_or(settings.plain_http),
        epp: picker(pool.map(|pool| &pool.endpoint_picker), settings),
        cluster_rbac: wants_cluster_rbac(spec, settings),
        token_secret,
        pod_monitors: match asked {
            None => Some(PodMonitoring { enabled: true, ..PodMonitoring::default() }),
            Some(monitor) => enabled.then(|| with_defaults(monitor)),
        },
        // Without the Secret a monitor could only be refused.
        service_monitor: enabled && pool.is_some() && (!auth || token_secret),
    }
}

/// A pool that is not spoken of fails closed, one that is fails open: so it has always been.
fn picker(asked: Option<&EndpointPicker>, settings: &Settings) -> Picker {
    let is_given = |resources: &&ResourceRequirements| {
        resources.requests.is_some() || resources.limits.is_some()
    };
    Picker {
        image: given(asked.and_then(|epp| epp.image.as_deref()), &settings.default_epp_image),
        replicas: asked.map_or(1, |epp| epp.replicas),
        port: asked.map_or(DEFAULT_EPP_PORT, |epp| epp.port),
        failure_mode: asked.map_or(FailureMode::FailClose, |epp| epp.failure_mode),
        resources: asked.and_then(|epp| epp.resources.as_ref()).filter(is_given).cloned(),
    }
}

fn with_defaults(monitor: &PodMonitoring) -> PodMonitoring {
    let default = PodMonitoring::default();
    PodMonitoring {
        enabled: true,
        port_name: given(Some(&monitor.port_name), &default.port_name),
        path: given(Some(&monitor.path), &default.path),
        interval: given(Some(&monitor.interval), &default.interval),
    }
}

/// An empty text is as good as none.
fn given(text: Option<&str>, otherwise: &str) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or(otherwise).to_owned()
}

/// Of the first entry, as it has always been; a port that is no number is the server's own affair.
fn nixl_port(spec: &ModelServiceSpec) -> Option<i32> {
    let entry = spec.engine.env.iter().find(|entry| entry.name == NIXL_PORT_VARIABLE)?;
    let digits = entry.value.as_deref().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
    digits.parse().ok().filter(|port| (1..=65535).contains(port))
}

fn check(holds: bool, rule: Rule) -> Result<(), Rule> {
    if holds { Ok(()) } else { Err(rule) }
}

fn check_ports(spec: &ModelServiceSpec, wanted: &Wanted) -> Result<(), Rule> {
    check(![9003, 9090].contains(&wanted.epp.port), Rule::EppPort)?;
    let Some(proxy) = &spec.routing_proxy else { return Ok(()) };
    check(proxy.target_port != spec.engine.port, Rule::TargetPort)?;
    check(wanted.nixl_port != Some(spec.engine.port), Rule::NixlPort)
}

fn check_model_path(pods: Pods<'_>) -> Result<(), Rule> {
    let path = &pods.blueprint.wanted.mount_path;
    let taken = volumes::taken_paths(pods).iter().any(|taken| taken == path.trim_end_matches('/'));
    check(!taken, Rule::ModelPath(path.clone()))
}

fn check_volumes(role: Role, pods: &RoleSpec, mount_path: &str) -> Result<(), Rule> {
    let role = role.as_str();
    let shares_memory = volumes::wants_shared_memory(pods);
    for volume in &pods.volumes {
        let name = volume.name.clone();
        check(!volumes::is_reserved(pods, &name), Rule::VolumeName { role, name })?;
    }
    for mount in &pods.volume_mounts {
        let path = mount.mount_path.clone();
        let is_memory = shares_memory && path == volumes::SHARED_MEMORY_PATH;
        let taken = path == mount_path || is_memory;
        check(!taken, Rule::MountPath { role, path })?;
    }
    Ok(())
}

fn check_shared_memory(role: Role, pods: &RoleSpec) -> Result<(), Rule> {
    let limit = pods.shared_memory.as_ref().and_then(|memory| memory.size_limit.as_ref());
    let positive = limit
        .is_none_or(|limit| quantity::parse(&limit.0).is_some_and(quantity::Nano::is_positive));
    check(positive, Rule::SharedMemory(role.as_str()))
}
