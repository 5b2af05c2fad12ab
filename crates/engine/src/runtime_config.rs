//! Settings that apply to many objects: found by name, merged from cluster to namespace.
//!
//! What is set counts, also when it is set to nothing: `false`, `0` and empty override like any
//! other value, and a reference replaces a reference whole.

mod env;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, LocalObjectReference};
use serde::{Deserialize, Serialize};

use crate::bytes::DEFAULT_HEADROOM_PERCENT;
use crate::error::{Error, is_not_found, reasons};
use crate::fetch::Reader;
use crate::health::Inspection;
use crate::kind::{Kind, ObjectKey};
use crate::labels::LabelRules;
use crate::names::{DEFAULT_RUNTIME_CONFIG, ENGINE_ARGS_ENV};

pub use env::merge_env;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_propagation: Option<LabelPropagation>,
    /// Deprecated: in `storage` now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_storage_class_name: Option<String>,
    /// Deprecated: in `storage` now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pvc_headroom_percent: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_storage_class_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pvc_headroom_percent: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_ref: Option<GatewayRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_template: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// A parent reference of the Gateway API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_discovery: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelPropagation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub patterns: Option<Vec<String>>,
}

/// The two kinds that hold configurations of one name.
#[derive(Clone, Debug)]
pub struct Kinds {
    pub namespaced: Kind,
    pub cluster: Kind,
}

/// Reads and merges the configuration that an object asks for; no name means the default one.
pub async fn fetch(
    reader: &dyn Reader,
    kinds: &Kinds,
    namespace: Option<&str>,
    name: Option<&str>,
) -> Result<Option<RuntimeConfig>, Error> {
    let name = name.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_RUNTIME_CONFIG);
    let namespaced = match namespace {
        Some(_) => read(reader, &kinds.namespaced, &ObjectKey::new(namespace, name)).await,
        None => Ok(None),
    };
    let cluster = read(reader, &kinds.cluster, &ObjectKey::new(None, name)).await;
    resolve(name, namespaced, cluster)
}

async fn read(
    reader: &dyn Reader,
    kind: &Kind,
    key: &ObjectKey,
) -> Result<Option<RuntimeConfig>, Error> {
    #[derive(Deserialize)]
    struct Holder {
        #[serde(default)]
        spec: RuntimeConfig,
    }
    if !reader.serves(kind) {
        return Ok(None);
    }
    let Some(object) = reader.get(kind, key).await? else { return Ok(None) };
    let holder: Holder = object.parse().map_err(|cause| {
        Error::invalid_spec("ConfigUnreadable", format!("{kind} {key} cannot be read"))
            .with_cause(cause)
    })?;
    Ok(Some(holder.spec))
}

/// The settings that hold for an object, out of what was found under one name in its namespace and
/// in the cluster.
///
/// Nobody has to provide a config named `default`; any other name was asked for and must exist.
pub fn resolve(
    name: &str,
    namespaced: Result<Option<RuntimeConfig>, Error>,
    cluster: Result<Option<RuntimeConfig>, Error>,
) -> Result<Option<RuntimeConfig>, Error> {
    let namespaced = found(namespaced)?.map(migrate);
    let cluster = found(cluster)?.map(migrate);
    match (cluster, namespaced) {
        (Some(cluster), Some(namespaced)) => Ok(Some(merge(cluster, namespaced))),
        (None, None) if name != DEFAULT_RUNTIME_CONFIG => Err(not_found(name)),
        (cluster, namespaced) => Ok(namespaced.or(cluster)),
    }
}

/// Deprecated fields fill what the block that replaced them leaves open.
pub fn migrate(mut config: RuntimeConfig) -> RuntimeConfig {
    let class = config.default_storage_class_name.clone().filter(|class| !class.is_empty());
    let headroom = config.pvc_headroom_percent;
    if class.is_none() && headroom.is_none() {
        return config;
    }
    let storage = config.storage.get_or_insert_default();
    storage.default_storage_class_name = storage.default_storage_class_name.take().or(class);
    storage.pvc_headroom_percent = storage.pvc_headroom_percent.or(headroom);
    config
}

pub fn merge(base: RuntimeConfig, over: RuntimeConfig) -> RuntimeConfig {
    RuntimeConfig {
        storage: both(base.storage, over.storage, |base, over| Storage {
            default_storage_class_name: over
                .default_storage_class_name
                .or(base.default_storage_class_name),
            pvc_headroom_percent: over.pvc_headroom_percent.or(base.pvc_headroom_percent),
        }),
        routing: both(base.routing, over.routing, merge_routing),
        env: both(base.env, over.env, |base, over| merge_env(&base, &over, &[ENGINE_ARGS_ENV]))
            .filter(|env| !env.is_empty()),
        model: both(base.model, over.model, |base, over| Model {
            auto_discovery: over.auto_discovery.or(base.auto_discovery),
        }),
        label_propagation: both(base.label_propagation, over.label_propagation, |base, over| {
            LabelPropagation {
                enabled: over.enabled.or(base.enabled),
                patterns: over.patterns.or(base.patterns),
            }
        }),
        default_storage_class_name: over
            .default_storage_class_name
            .or(base.default_storage_class_name),
        pvc_headroom_percent: over.pvc_headroom_percent.or(base.pvc_headroom_percent),
    }
}

fn merge_routing(base: Routing, over: Routing) -> Routing {
    Routing {
        enabled: over.enabled.or(base.enabled),
        gateway_ref: over.gateway_ref.or(base.gateway_ref),
        path_template: over.path_template.or(base.path_template),
        request_timeout: over.request_timeout.or(base.request_timeout),
        annotations: both(base.annotations, over.annotations, |mut base, over| {
            base.extend(over);
            base
        }),
    }
}

/// The class to ask for; none leaves the choice to the cluster.
pub fn storage_class(explicit: Option<&str>, config: Option<&RuntimeConfig>) -> Option<String> {
    let explicit = explicit.filter(|class| !class.is_empty());
    let configured = || {
        let config = config?;
        let current = config.storage.as_ref().and_then(|s| s.default_storage_class_name.as_deref());
        current.or(config.default_storage_class_name.as_deref())
    };
    explicit.or_else(configured).filter(|class| !class.is_empty()).map(str::to_owned)
}

pub fn headroom_percent(config: Option<&RuntimeConfig>) -> u32 {
    config
        .and_then(|config| {
            let current = config.storage.as_ref().and_then(|s| s.pvc_headroom_percent);
            current.or(config.pvc_headroom_percent)
        })
        .unwrap_or(DEFAULT_HEADROOM_PERCENT)
}

pub fn label_rules(config: Option<&RuntimeConfig>) -> LabelRules {
    let Some(propagation) = config.and_then(|config| config.label_propagation.as_ref()) else {
        return LabelRules::default();
    };
    LabelRules {
        enabled: propagation.enabled.unwrap_or_default(),
        patterns: propagation.patterns.clone().unwrap_or_default(),
        ..LabelRules::default()
    }
}

/// Each once: the base in its order, then names it does not have. Lists of them are keyed by name.
pub fn merge_pull_secrets(
    base: &[LocalObjectReference],
    extra: &[LocalObjectReference],
) -> Vec<LocalObjectReference> {
    let mut merged: Vec<LocalObjectReference> = Vec::new();
    for secret in base.iter().chain(extra) {
        if !merged.iter().any(|known| known.name == secret.name) {
            merged.push(secret.clone());
        }
    }
    merged
}

/// Health of the settings themselves, once they could be read.
pub fn inspect(config: Option<&RuntimeConfig>) -> Inspection {
    match config {
        Some(_) => Inspection::ready("ConfigFound", ""),
        None => Inspection::ready("DefaultConfigNotFound", "Default config was not found"),
    }
}

fn both<T>(base: Option<T>, over: Option<T>, merge: impl FnOnce(T, T) -> T) -> Option<T> {
    match (base, over) {
        (Some(base), Some(over)) => Some(merge(base, over)),
        (base, over) => over.or(base),
    }
}

fn found(result: Result<Option<RuntimeConfig>, Error>) -> Result<Option<RuntimeConfig>, Error> {
    match result {
        Err(error) if is_not_found(&error) => Ok(None),
        result => result,
    }
}

fn not_found(name: &str) -> Error {
    Error::missing_upstream("ConfigNotFound", format!("RuntimeConfig {name} not found"))
        .with_cause(Error::missing_downstream(reasons::NOT_FOUND, "Resource not found"))
}
