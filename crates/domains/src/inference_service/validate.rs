//! From a spec as written to values that can be trusted.
//!
//! The rules and texts are those of the schema. They are repeated here because an object may have
//! been stored before a rule existed.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use windlass_api::duration::GoDuration;
use windlass_api::serving::zerfoo_inference_service::{
    Canary, MODEL_REF_PATTERN, QUANT_PATTERN, ZerfooInferenceService, ZerfooInferenceServiceSpec,
};
use windlass_engine::quantity;

use super::Settings;
use super::gpu::{self, Demand};
use super::objects::deployment::API_KEY_VARIABLE;
use super::probes::{Probes, Times};

pub(super) use auth::Access;

mod auth;
mod cache;
#[cfg(test)]
mod tests;

/// `<name>-primary` must fit into the 63 characters of a Service's name.
const MAX_NAME: usize = 55;

/// The first rule that a spec breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operator: invalid spec: {0}")]
pub struct InvalidSpec(pub Rule);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    #[error("modelRef is required")]
    ModelRefRequired,
    #[error("replicas must be >= 1")]
    Replicas,
    #[error("minReplicas ({min}) must be <= maxReplicas ({max})")]
    ReplicaBounds { min: i32, max: i32 },
    #[error("canary modelRef is required")]
    CanaryModelRefRequired,
    #[error("canary weight must be 0-100, got {0}")]
    CanaryWeight(i32),
    #[error("healthCheck path is required")]
    HealthPathRequired,
    #[error("{0} must be > 0")]
    DurationNotPositive(&'static str),
    #[error("{0} must be a duration such as 10s or 1m30s")]
    DurationMalformed(&'static str),
    #[error("metadata.name must be a DNS-1035 label of at most {MAX_NAME} characters")]
    Name,
    #[error("{0} must match {MODEL_REF_PATTERN}")]
    ModelRefMalformed(&'static str),
    #[error("{0} must not contain ..")]
    ModelRefEscapes(&'static str),
    #[error("{0} must be >= 0")]
    Negative(&'static str),
    #[error("canary replicas must be >= 1")]
    CanaryReplicas,
    #[error("{0} must start with /")]
    RelativePath(&'static str),
    #[error("{0} must be a positive quantity or empty")]
    Quantity(&'static str),
    #[error("resources gpuMemory needs {0} MiB per device, more than any known device has")]
    NoSuchDevice(i64),
    #[error("auth needs either apiKeySecretRef or allowNoAuth: true")]
    AuthAmbiguous,
    #[error("auth is required by the operator, set auth.apiKeySecretRef")]
    AuthRequired,
    #[error("auth is required by the operator, so extraArgs must not have --allow-no-auth")]
    AuthSwitchedOff,
    #[error(
        "auth is required by the operator, so extraArgs may use variables only as --flag=$(NAME)"
    )]
    ArgumentUnclear,
    #[error("env must not set {API_KEY_VARIABLE}, which auth.apiKeySecretRef sets")]
    ApiKeyReplaced,
    #[error("cache may use only one of emptyDir, persistentVolumeClaim and hostPath")]
    CacheAmbiguous,
    #[error("cache hostPath is forbidden by the operator")]
    HostPathForbidden,
    #[error("cache hostPath path must be {} or below, without . and ..", .0.join(" or "))]
    HostPathOutside(Vec<String>),
    #[error(
        "{0} is an alias whose repository the operator does not know; to prefetch it, give the \
         Hugging Face repository id instead"
    )]
    PrefetchOfAlias(&'static str),
    #[error("cache prefetch quant must match {QUANT_PATTERN}")]
    Quant,
    #[error("cache persistentVolumeClaim claimName is required")]
    ClaimNameRequired,
    #[error("image must not be empty or contain white space")]
    Image,
    #[error("{what} must be {min}-{max}")]
    Range { what: &'static str, min: i32, max: i32 },
    #[error("{0} needs name and key")]
    ReferenceIncomplete(&'static str),
}

impl Rule {
    /// The path of the field that breaks the rule.
    pub fn field(&self) -> String {
        let below_spec = match self {
            Self::Name => return "metadata.name".to_owned(),
            Self::ModelRefRequired => "modelRef",
            Self::Replicas => "replicas",
            Self::ReplicaBounds { .. } => "minReplicas",
            Self::CanaryModelRefRequired => "canary.modelRef",
            Self::CanaryWeight(_) => "canary.weight",
            Self::CanaryReplicas => "canary.replicas",
            Self::HealthPathRequired => "healthCheck.path",
            Self::NoSuchDevice(_) => "resources.gpuMemory",
            Self::AuthAmbiguous | Self::AuthRequired => "auth",
            Self::AuthSwitchedOff | Self::ArgumentUnclear => "extraArgs",
            Self::ApiKeyReplaced => "env",
            Self::CacheAmbiguous => "cache",
            Self::Quant => "cache.prefetch.quant",
            Self::ClaimNameRequired => "cache.persistentVolumeClaim.claimName",
            Self::Image => "image",
            Self::HostPathForbidden => "cache.hostPath",
            Self::HostPathOutside(_) => "cache.hostPath.path",
            Self::DurationNotPositive(name)
            | Self::DurationMalformed(name)
            | Self::ModelRefMalformed(name)
            | Self::ModelRefEscapes(name)
            | Self::Negative(name)
            | Self::RelativePath(name)
            | Self::PrefetchOfAlias(name)
            | Self::Range { what: name, .. }
            | Self::ReferenceIncomplete(name)
            | Self::Quantity(name) => name,
        };
        // The texts write `canary modelRef` where the path is `canary.modelRef`.
        format!("spec.{}", below_spec.replace(' ', "."))
    }
}

/// The judged part of a spec. What needs no judgement is read from the object itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub model: String,
    pub replicas: i32,
    pub bounds: Option<Bounds>,
    pub canary: Option<WantedCanary>,
    pub probes: Probes,
    pub cpu: Option<Quantity>,
    pub memory: Option<Quantity>,
    pub gpu: Option<Demand>,
    pub access: Access,
    pub remarks: Vec<Remark>,
}

/// Limits of the autoscaler, both at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub min: i32,
    pub max: i32,
}

impl Bounds {
    pub(super) fn clamp(self, replicas: i32) -> i32 {
        replicas.clamp(self.min, self.max)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WantedCanary {
    pub model: String,
    /// Between 0 and 100.
    pub weight: i32,
    pub replicas: Option<i32>,
}

/// Legal, but hardly what was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remark {
    UnauthenticatedEndpoint,
    AutoscalingIncomplete,
    ProbeTimeoutExceedsInterval,
}

pub(super) fn validate(
    service: &ZerfooInferenceService,
    settings: &Settings,
) -> Result<Wanted, InvalidSpec> {
    judge(service, settings).map_err(InvalidSpec)
}

fn judge(service: &ZerfooInferenceService, settings: &Settings) -> Result<Wanted, Rule> {
    let spec = &service.spec;
    let (interval, timeout) = original_rules(spec)?;

    check_name(service)?;
    check_model_ref("modelRef", &spec.model_ref)?;
    if let Some(canary) = &spec.canary {
        check_model_ref("canary modelRef", &canary.model_ref)?;
        check(canary.replicas.is_none_or(|replicas| replicas >= 1), Rule::CanaryReplicas)?;
    }
    check(spec.min_replicas >= 0, Rule::Negative("minReplicas"))?;
    check(spec.max_replicas >= 0, Rule::Negative("maxReplicas"))?;
    check_paths(spec)?;
    let times =
        Times { interval, timeout, startup: positive("startupTimeout", &spec.startup_timeout)? };
    let cpu = positive_quantity("resources cpu", spec.resources.cpu.as_deref())?;
    let memory = positive_quantity("resources memory", spec.resources.memory.as_deref())?;
    let gpu = gpu_demand(spec, settings)?;
    check_schema_rules(spec)?;
    cache::check_cache(spec, settings)?;
    let (access, unknowingly) = auth::access(spec, settings)?;

    Ok(Wanted {
        model: spec.model_ref.clone(),
        replicas: spec.replicas,
        bounds: bounds(spec),
        canary: spec.canary.as_ref().map(wanted_canary),
        probes: Probes::new(&spec.health_check, times),
        cpu,
        memory,
        gpu,
        remarks: remarks(spec, times, unknowingly),
        access,
    })
}

/// The rules that have always been there, in their order. Yields interval and timeout.
fn original_rules(spec: &ZerfooInferenceServiceSpec) -> Result<(i64, i64), Rule> {
    check(!spec.model_ref.is_empty(), Rule::ModelRefRequired)?;
    check(spec.replicas >= 1, Rule::Replicas)?;
    let (min, max) = (spec.min_replicas, spec.max_replicas);
    check(min <= 0 || max <= 0 || min <= max, Rule::ReplicaBounds { min, max })?;
    if let Some(Canary { model_ref, weight, .. }) = &spec.canary {
        check(!model_ref.is_empty(), Rule::CanaryModelRefRequired)?;
        check((0..=100).contains(weight), Rule::CanaryWeight(*weight))?;
    }
    check(!spec.health_check.path.is_empty(), Rule::HealthPathRequired)?;
    let interval = positive("healthCheck interval", &spec.health_check.interval)?;
    let timeout = positive("healthCheck timeout", &spec.health_check.timeout)?;
    Ok((interval, timeout))
}

fn check(holds: bool, rule: Rule) -> Result<(), Rule> {
    if holds { Ok(()) } else { Err(rule) }
}

fn positive(what: &'static str, duration: &GoDuration) -> Result<i64, Rule> {
    let nanoseconds = duration.nanoseconds().map_err(|_| Rule::DurationMalformed(what))?;
    check(nanoseconds > 0, Rule::DurationNotPositive(what))?;
    Ok(nanoseconds)
}

fn check_name(service: &ZerfooInferenceService) -> Result<(), Rule> {
    let name = service.metadata.name.as_deref().unwrap_or_default().as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let holds = name.len() <= MAX_NAME
        && name.first().is_some_and(u8::is_ascii_lowercase)
        && name.last().is_some_and(is_word)
        && name.iter().all(|byte| is_word(byte) || *byte == b'-');
    check(holds, Rule::Name)
}

/// The pattern is spelled out by hand: a regular expression engine for one rule does not pay.
fn check_model_ref(what: &'static str, model_ref: &str) -> Result<(), Rule> {
    let bytes = model_ref.as_bytes();
    let is_inner =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'/' | b'-');
    let matches =
        bytes.first().is_some_and(u8::is_ascii_alphanumeric) && bytes.iter().all(is_inner);
    check(matches, Rule::ModelRefMalformed(what))?;
    check(!model_ref.contains(".."), Rule::ModelRefEscapes(what))
}

fn check_paths(spec: &ZerfooInferenceServiceSpec) -> Result<(), Rule> {
    let health_check = &spec.health_check;
    let routing = spec.routing.as_ref().map(|routing| &routing.path_prefix);
    let host_path = spec.cache.as_ref().and_then(|cache| cache.host_path.as_ref());
    for (what, path) in [
        ("healthCheck path", Some(&health_check.path)),
        ("healthCheck livenessPath", health_check.liveness_path.as_ref()),
        ("routing pathPrefix", routing),
        ("cache hostPath path", host_path.map(|host_path| &host_path.path)),
    ] {
        check(path.is_none_or(|path| path.starts_with('/')), Rule::RelativePath(what))?;
    }
    Ok(())
}

fn positive_quantity(what: &'static str, text: Option<&str>) -> Result<Option<Quantity>, Rule> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    check(quantity::parse(text).is_some_and(quantity::Nano::is_positive), Rule::Quantity(what))?;
    Ok(Some(Quantity(text.to_owned())))
}

fn gpu_demand(
    spec: &ZerfooInferenceServiceSpec,
    settings: &Settings,
) -> Result<Option<Demand>, Rule> {
    let what = "resources gpuMemory";
    let Some(Quantity(text)) = positive_quantity(what, spec.resources.gpu_memory.as_deref())?
    else {
        return Ok(None);
    };
    let bytes = quantity::parse(&text).ok_or(Rule::Quantity(what))?.ceil();
    let gpu = spec.gpu.clone().unwrap_or_default();
    gpu::demand(bytes, &gpu, &settings.gpu)
        .map(Some)
        .map_err(|too_large| Rule::NoSuchDevice(too_large.mebibytes))
}

/// What the schema checks by length, pattern and range. The API server may have stored worse before
/// it did.
fn check_schema_rules(spec: &ZerfooInferenceServiceSpec) -> Result<(), Rule> {
    let blank = |text: &String| text.is_empty() || text.contains(char::is_whitespace);
    check(!spec.image.as_ref().is_some_and(blank), Rule::Image)?;
    check_range("port", spec.port, 1, 65535)?;
    let gpu = spec.gpu.clone().unwrap_or_default();
    check_range("gpu count", gpu.count, 1, 1024)?;
    check_range("gpu memoryTolerancePercent", gpu.memory_tolerance_percent, 0, 99)?;
    let key = spec.auth.as_ref().and_then(|auth| auth.api_key_secret_ref.as_ref());
    let token = spec.hugging_face_token_secret_ref.as_ref();
    for (what, reference) in [("auth apiKeySecretRef", key), ("huggingFaceTokenSecretRef", token)] {
        let whole = reference.is_none_or(|it| !it.name.is_empty() && !it.key.is_empty());
        check(whole, Rule::ReferenceIncomplete(what))?;
    }
    Ok(())
}

fn check_range(what: &'static str, number: i32, min: i32, max: i32) -> Result<(), Rule> {
    check((min..=max).contains(&number), Rule::Range { what, min, max })
}

fn bounds(spec: &ZerfooInferenceServiceSpec) -> Option<Bounds> {
    let (min, max) = (spec.min_replicas, spec.max_replicas);
    (min > 0 && max > 0).then_some(Bounds { min, max })
}

fn wanted_canary(canary: &Canary) -> WantedCanary {
    WantedCanary {
        model: canary.model_ref.clone(),
        weight: canary.weight,
        replicas: canary.replicas,
    }
}

fn remarks(spec: &ZerfooInferenceServiceSpec, times: Times, unknowingly: bool) -> Vec<Remark> {
    let one_bound = (spec.min_replicas > 0) != (spec.max_replicas > 0);
    [
        (unknowingly, Remark::UnauthenticatedEndpoint),
        (one_bound, Remark::AutoscalingIncomplete),
        (times.timeout > times.interval, Remark::ProbeTimeoutExceedsInterval),
    ]
    .into_iter()
    .filter_map(|(holds, remark)| holds.then_some(remark))
    .collect()
}
