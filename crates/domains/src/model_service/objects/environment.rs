//! Environment variables.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector};

use crate::model_service::settings::Tracing;

pub(super) fn variable(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.into()), ..Default::default() }
}

/// A field of the pod itself.
pub(super) fn of_pod(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: path.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Where spans go and under which name; `details` tell them apart further.
pub(super) fn tracing(tracing: &Tracing, service: &str, details: Vec<EnvVar>) -> Vec<EnvVar> {
    if !tracing.enabled {
        return Vec::new();
    }
    let mut env = vec![
        variable("OTEL_SERVICE_NAME", service),
        variable("OTEL_EXPORTER_OTLP_ENDPOINT", &tracing.otel_endpoint),
        variable("OTEL_TRACES_EXPORTER", "otlp"),
    ];
    env.extend(details);
    for (name, value) in [
        ("OTEL_TRACES_SAMPLER", &tracing.sampler),
        ("OTEL_TRACES_SAMPLER_ARG", &tracing.sampler_arg),
    ] {
        if !value.is_empty() {
            env.push(variable(name, value));
        }
    }
    env
}

/// Each name once, with the value given last: server-side apply refuses two entries of one name.
pub(super) fn last_of_each_name(env: Vec<EnvVar>) -> Vec<EnvVar> {
    let mut kept: Vec<EnvVar> = Vec::with_capacity(env.len());
    for entry in env {
        match kept.iter_mut().find(|known| known.name == entry.name) {
            Some(known) => *known = entry,
            None => kept.push(entry),
        }
    }
    kept
}
