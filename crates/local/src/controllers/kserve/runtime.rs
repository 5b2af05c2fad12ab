//! Which runtime serves a model.

use std::{cmp::Reverse, sync::Arc};

use serde_json::Value;

use super::{
    Problem,
    kinds::{ClusterServingRuntime, InferenceService, ServingRuntime},
};

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Runtime<'a> {
    pub(super) name: &'a str,
    pub(super) spec: &'a Value,
    /// Whether it is one of all namespaces.
    pub(super) is_of_cluster: bool,
}

/// The runtimes that a service may use.
pub(super) struct Known<'a> {
    /// Those of its namespace.
    pub(super) near: &'a [Arc<ServingRuntime>],
    pub(super) far: &'a [Arc<ClusterServingRuntime>],
}

/// The one that the model names, else the first that offers itself for its format. `None` where
/// somebody's own containers serve, without any model.
pub(super) fn choose<'a>(
    service: &InferenceService,
    known: &Known<'a>,
) -> Result<Option<Runtime<'a>>, Problem> {
    let Some(model) = service.spec.pointer("/predictor/model").filter(|model| model.is_object())
    else {
        return Ok(None);
    };
    let near = known.near.iter().map(|runtime| (&runtime.metadata, &runtime.spec, false));
    let far = known.far.iter().map(|runtime| (&runtime.metadata, &runtime.spec, true));
    let all = near.chain(far).map(|(metadata, spec, is_of_cluster)| {
        let name = metadata.name.as_deref().unwrap_or_default();
        let age = metadata.creation_timestamp.as_ref().map(|time| time.0);
        (age, Runtime { name, spec, is_of_cluster })
    });
    let named = model.get("runtime").and_then(Value::as_str).filter(|name| !name.is_empty());
    if let Some(name) = named {
        let mut all = all.map(|(_, runtime)| runtime);
        let runtime = all.find(|runtime| runtime.name == name).ok_or_else(|| {
            Problem::new("RuntimeNotRecognized", "Waiting for runtime to become available")
        })?;
        return check(model, runtime).map(Some);
    }
    let mut fit: Vec<_> = all
        .filter(|(_, runtime)| !is_disabled(runtime.spec) && supports(runtime.spec, model, true))
        .collect();
    // Those of the namespace first, then the higher priority, then the younger.
    fit.sort_by_key(|(age, runtime)| {
        (runtime.is_of_cluster, Reverse(priority(runtime.spec, model)), Reverse(*age), runtime.name)
    });
    let first = fit.into_iter().next().ok_or_else(|| {
        let message = "No runtime found to support specified framework/version";
        Problem::new("NoSupportingRuntime", message)
    })?;
    Ok(Some(first.1))
}

fn check<'a>(model: &Value, runtime: Runtime<'a>) -> Result<Runtime<'a>, Problem> {
    if is_disabled(runtime.spec) {
        return Err(Problem::new("RuntimeDisabled", "Specified runtime is disabled"));
    }
    if !supports(runtime.spec, model, false) {
        let message = "Specified runtime does not support specified framework/version";
        return Err(Problem::new("NoSupportingRuntime", message));
    }
    Ok(runtime)
}

fn is_disabled(runtime: &Value) -> bool {
    runtime.get("disabled") == Some(&Value::Bool(true))
}

fn formats(runtime: &Value) -> impl Iterator<Item = &Value> {
    runtime.get("supportedModelFormats").and_then(Value::as_array).into_iter().flatten()
}

fn supports(runtime: &Value, model: &Value, offered_only: bool) -> bool {
    let name = model.pointer("/modelFormat/name");
    let version = model.pointer("/modelFormat/version").filter(|version| !version.is_null());
    formats(runtime).any(|format| {
        format.get("name") == name
            && (version.is_none() || format.get("version") == version)
            && (!offered_only || format.get("autoSelect") == Some(&Value::Bool(true)))
    })
}

fn priority(runtime: &Value, model: &Value) -> Option<i64> {
    let name = model.pointer("/modelFormat/name");
    let mut formats = formats(runtime).filter(|format| format.get("name") == name);
    formats.find_map(|format| format.get("priority")?.as_i64())
}
