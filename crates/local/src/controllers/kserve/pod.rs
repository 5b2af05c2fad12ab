//! The pods of a predictor: what the runtime brings, with what the service says on top.

use k8s_openapi::{
    api::core::v1::{PodSpec, Probe, TCPSocketAction},
    apimachinery::pkg::util::intstr::IntOrString,
};
use serde_json::{Map, Value, json};

use super::{Problem, kinds::InferenceService};
use crate::{
    patch,
    types::{Form, Typed, builtin},
};

/// The container that serves the model.
const CONTAINER: &str = "kserve-container";
/// Where it answers if it does not say.
pub(super) const PORT: i32 = 8080;
const POD: &str = "io.k8s.api.core.v1.PodSpec";
const CONTAINER_TYPE: &str = "io.k8s.api.core.v1.Container";
/// What a runtime may say of the pod as a whole.
const OF_RUNTIME: [&str; 5] =
    ["nodeSelector", "affinity", "tolerations", "volumes", "imagePullSecrets"];
const MODELS: &str = "/mnt/models";
const SOURCE: &str = "kserve-pvc-source";

pub(super) fn pod_spec(
    service: &InferenceService,
    runtime: Option<&Value>,
) -> Result<PodSpec, Problem> {
    let none = json!({});
    let predictor = service.spec.get("predictor").unwrap_or(&none);
    let own = only(predictor, POD);
    let mut pod = match runtime {
        Some(runtime) => with_runtime(predictor, &own, runtime)?,
        None => own,
    };
    fill_placeholders(&mut pod["containers"], service)?;
    mount_claim(&mut pod, predictor);
    let mut pod: PodSpec =
        serde_json::from_value(pod).map_err(|error| invalid(error.to_string()))?;
    if pod.containers.is_empty() {
        return Err(invalid("the predictor has neither a model nor containers".into()));
    }
    complete(&mut pod);
    Ok(pod)
}

fn with_runtime(predictor: &Value, own: &Value, runtime: &Value) -> Result<Value, Problem> {
    let none = json!({});
    let offered = list(runtime, "containers");
    let base = offered.iter().find(|container| container["name"] == CONTAINER);
    let base = base.ok_or_else(|| {
        invalid(format!("failed to find {CONTAINER} in ServingRuntime containers"))
    })?;
    let model = predictor.get("model").unwrap_or(&none);
    let mut first = merged(base, &only(model, CONTAINER_TYPE), CONTAINER_TYPE)?;
    first["name"] = json!(CONTAINER);
    // Both have something to say to the program, and neither can know what the other says.
    let args: Vec<_> = list(base, "args").iter().chain(list(model, "args")).cloned().collect();
    if !args.is_empty() {
        first["args"] = Value::Array(args);
    }
    let mut containers = vec![first];
    containers.extend(offered.iter().filter(|one| one["name"] != CONTAINER).cloned());
    containers.extend(list(own, "containers").iter().cloned());
    let given = OF_RUNTIME.iter().filter_map(|name| {
        let value = runtime.get(*name).filter(|value| !value.is_null())?;
        Some(((*name).to_owned(), value.clone()))
    });
    let mut rest = own.clone();
    rest["containers"] = json!([]);
    let mut pod = merged(&Value::Object(given.collect()), &rest, POD)?;
    pod["containers"] = Value::Array(containers);
    Ok(pod)
}

/// As `kubectl patch` would put the second upon the first.
fn merged(base: &Value, over: &Value, name: &str) -> Result<Value, Problem> {
    let Some(typed) = builtin().named(name) else {
        return Err(invalid(format!("the type {name} is not known")));
    };
    patch::strategic(base, over, typed).map_err(|error| invalid(error.to_string()))
}

/// The fields that this type has: in KServe's kinds others stand beside them.
fn only(value: &Value, name: &str) -> Value {
    let known = builtin().named(name);
    let is_known = |field: &str| match known.as_ref().map(Typed::form) {
        Some(Form::Struct(fields)) => fields.fields.contains_key(field),
        _ => false,
    };
    let fields = value.as_object().into_iter().flatten();
    let kept: Map<_, _> = fields
        .filter(|(field, value)| is_known(field) && !value.is_null())
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    Value::Object(kept)
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn invalid(message: String) -> Problem {
    Problem { reason: "InvalidPredictorSpec", message }
}

/// `{{.Name}}` and the like, in any text of the containers.
fn fill_placeholders(value: &mut Value, service: &InferenceService) -> Result<(), Problem> {
    match value {
        Value::String(text) if text.contains("{{") => *text = filled(text, service)?,
        Value::Array(items) => {
            items.iter_mut().try_for_each(|item| fill_placeholders(item, service))?;
        }
        Value::Object(fields) => {
            fields.values_mut().try_for_each(|field| fill_placeholders(field, service))?;
        }
        _ => {}
    }
    Ok(())
}

fn filled(text: &str, service: &InferenceService) -> Result<String, Problem> {
    let metadata = &service.metadata;
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (inside, after) = after
            .split_once("}}")
            .ok_or_else(|| invalid(format!("a placeholder in {text:?} has no end")))?;
        let name = inside.trim();
        let labels = |prefix: &str| name.strip_prefix(prefix);
        let value = match name {
            ".Name" => metadata.name.clone(),
            ".Namespace" => metadata.namespace.clone(),
            _ => labels(".Labels.")
                .and_then(|key| metadata.labels.as_ref()?.get(key).cloned())
                .or_else(|| metadata.annotations.as_ref()?.get(labels(".Annotations.")?).cloned()),
        };
        let value = value
            .ok_or_else(|| invalid(format!("nothing is known for the placeholder {name:?}")))?;
        whole.push_str(before);
        whole.push_str(&value);
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}

/// A model on a claim needs nobody to fetch it.
fn mount_claim(pod: &mut Value, predictor: &Value) {
    let uri = predictor.pointer("/model/storageUri").and_then(Value::as_str);
    let Some(place) = uri.and_then(|uri| uri.strip_prefix("pvc://")) else { return };
    let (claim, path) = place.split_once('/').unwrap_or((place, ""));
    let volume = json!({"name": SOURCE,
        "persistentVolumeClaim": {"claimName": claim, "readOnly": false}});
    let mut mount = json!({"name": SOURCE, "mountPath": MODELS, "readOnly": true});
    if !path.is_empty() {
        mount["subPath"] = json!(path);
    }
    push(pod, "volumes", volume);
    if let Some(first) = pod.get_mut("containers").and_then(|all| all.get_mut(0)) {
        push(first, "volumeMounts", mount);
    }
}

fn push(value: &mut Value, name: &str, item: Value) {
    match value.get_mut(name).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => value[name] = json!([item]),
    }
}

/// A name and a readiness probe for the container that serves.
fn complete(pod: &mut PodSpec) {
    let named = pod.containers.iter().position(|container| container.name == CONTAINER);
    let Some(container) = pod.containers.get_mut(named.unwrap_or(0)) else { return };
    if container.name.is_empty() {
        container.name = CONTAINER.into();
    }
    if container.name == CONTAINER && container.readiness_probe.is_none() {
        let port = container.ports.iter().flatten().next().map_or(PORT, |port| port.container_port);
        container.readiness_probe = Some(Probe {
            tcp_socket: Some(TCPSocketAction {
                port: IntOrString::Int(port),
                ..Default::default()
            }),
            timeout_seconds: Some(1),
            period_seconds: Some(10),
            success_threshold: Some(1),
            failure_threshold: Some(3),
            ..Default::default()
        });
    }
}
