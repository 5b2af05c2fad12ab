//! The template that a base and the overrides of a service make up, and which templates are the same.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::EnvVar;
use serde_json::{Value, json};
use windlass_api::aim::parameters::RuntimeParameters;
use windlass_api::aim::service::AimService;
use windlass_api::aim::template::{
    AimClusterServiceTemplateSpec, AimServiceTemplateSpec, Caching, TemplateSpec,
};
use windlass_engine::quantity;

use super::resolution;
use crate::aim::runtime_config::effective_name;

pub(super) fn derive(
    service: &AimService,
    base: &AimServiceTemplateSpec,
) -> AimServiceTemplateSpec {
    let spec = &service.spec;
    let env = unique_env(&spec.env);
    let image = match base.common.aim_image_name.as_str() {
        "" => spec.aim_image_name.clone(),
        image => image.to_owned(),
    };
    let config = effective_name(resolution::config_name(service, Some(&base.common)));
    AimServiceTemplateSpec {
        common: TemplateSpec {
            aim_image_name: image,
            parameters: overridden(&base.common.parameters, spec.overrides.as_ref()),
            runtime_config_name: Some(config.to_owned()),
            resources: spec.resources.clone().or_else(|| base.common.resources.clone()),
        },
        caching: if spec.cache_model {
            Some(Caching { enabled: true, env: env.clone() })
        } else {
            base.caching.clone()
        },
        env: if env.is_empty() { base.env.clone() } else { env },
        image_pull_secrets: match spec.image_pull_secrets.as_slice() {
            [] => base.image_pull_secrets.clone(),
            own => own.to_vec(),
        },
    }
}

fn overridden(
    base: &RuntimeParameters,
    overrides: Option<&RuntimeParameters>,
) -> RuntimeParameters {
    let Some(overrides) = overrides else { return base.clone() };
    RuntimeParameters {
        metric: overrides.metric.clone().or_else(|| base.metric.clone()),
        precision: overrides.precision.clone().or_else(|| base.precision.clone()),
        gpu_selector: overrides.gpu_selector.clone().or_else(|| base.gpu_selector.clone()),
    }
}

/// Each variable once, as lists keyed by name demand. Of two the later counts, as it would in a pod.
pub(super) fn unique_env(env: &[EnvVar]) -> Vec<EnvVar> {
    let is_last = |(at, variable): &(usize, &EnvVar)| {
        env[at + 1..].iter().all(|later| later.name != variable.name)
    };
    env.iter().enumerate().filter(is_last).map(|(_, variable)| variable.clone()).collect()
}

/// Whether both serve the same image in the same way, however they run.
pub(super) fn is_for_the_same(left: &TemplateSpec, right: &TemplateSpec) -> bool {
    left.aim_image_name == right.aim_image_name && left.parameters == right.parameters
}

pub(super) fn is_same(left: &AimServiceTemplateSpec, right: &AimServiceTemplateSpec) -> bool {
    same(&with_config(json!(left)), &with_config(json!(right)), "")
}

/// A template of the cluster lacks what only one of a namespace can have.
pub(super) fn is_same_common(
    cluster: &AimClusterServiceTemplateSpec,
    wanted: &AimServiceTemplateSpec,
) -> bool {
    let has_no_more =
        wanted.env.is_empty() && wanted.image_pull_secrets.is_empty() && wanted.caching.is_none();
    let common = AimServiceTemplateSpec { common: cluster.common.clone(), ..Default::default() };
    has_no_more && is_same(&common, wanted)
}

fn with_config(mut spec: Value) -> Value {
    let name = effective_name(spec["runtimeConfigName"].as_str()).to_owned();
    spec["runtimeConfigName"] = name.into();
    spec
}

/// Nothing and an empty list or map are the same, and so are two ways to write a quantity.
fn same(left: &Value, right: &Value, key: &str) -> bool {
    match (left, right) {
        (Value::Object(l), Value::Object(r)) => {
            let amounts = ["requests", "limits"].contains(&key);
            let keys: BTreeSet<&String> = l.keys().chain(r.keys()).collect();
            keys.into_iter().all(|below| match (l.get(below), r.get(below)) {
                (Some(Value::String(l)), Some(Value::String(r))) if amounts => {
                    l == r || quantity::equal(l, r)
                }
                (l, r) => same(l.unwrap_or(&Value::Null), r.unwrap_or(&Value::Null), below),
            })
        }
        (Value::Array(l), Value::Array(r)) => {
            l.len() == r.len() && l.iter().zip(r).all(|(l, r)| same(l, r, key))
        }
        (l, r) => l == r || (is_empty(l) && is_empty(r)),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
