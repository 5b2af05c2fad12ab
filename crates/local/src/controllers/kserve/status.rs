//! What an InferenceService says of itself.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ContainerStatus, Pod},
};
use serde_json::{Map, Value, json};

use super::{
    super::{pods, stamp},
    Problem,
    kinds::InferenceService,
    objects::name,
    runtime::Runtime,
};

const PREDICTOR: &str = "PredictorReady";
const INGRESS: &str = "IngressReady";
const READY: &str = "Ready";
const CONTAINER: &str = "kserve-container";

/// What has become of it.
pub(super) struct Seen<'a> {
    pub(super) runtime: Option<Runtime<'a>>,
    pub(super) problem: Option<&'a Problem>,
    pub(super) deployment: Option<&'a Deployment>,
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) now: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    status: &'static str,
    reason: Option<String>,
    message: Option<String>,
}

impl Condition {
    fn new(status: &'static str, reason: Option<&str>, message: Option<&str>) -> Self {
        let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        Self { status, reason: text(reason), message: text(message) }
    }
}

pub(super) fn status(service: &InferenceService, seen: &Seen<'_>) -> Value {
    let predictor = predictor(seen);
    let ingress = match seen.deployment {
        Some(_) => Condition::new("True", None, None),
        None => Condition::new("Unknown", None, None),
    };
    let ready = [&predictor, &ingress];
    let worst = ["False", "Unknown"]
        .iter()
        .find_map(|status| ready.iter().find(|condition| condition.status == *status));
    let ready = worst.map_or(Condition::new("True", None, None), |worst| (**worst).clone());
    let is_ready = ready.status == "True";
    // In the order of their names, as their authors sort them.
    let conditions = [(INGRESS, ingress), (PREDICTOR, predictor), (READY, ready)];
    let conditions = conditions.map(|(kind, condition)| shown(service, kind, &condition, seen.now));
    let mut status = json!({
        "observedGeneration": service.metadata.generation.unwrap_or_default(),
        "conditions": conditions,
        "modelStatus": model_status(seen, is_ready),
        "deploymentMode": "Standard",
    });
    let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    let url = format!("http://{}.{namespace}.svc.cluster.local", name(service));
    if is_ready {
        status["url"] = json!(url);
        status["components"] = json!({"predictor": {"url": url}});
    }
    if seen.deployment.is_some() {
        status["address"] = json!({"url": url});
    }
    if let Some(runtime) = seen.runtime {
        let field =
            if runtime.is_of_cluster { "clusterServingRuntimeName" } else { "servingRuntimeName" };
        status[field] = json!(runtime.name);
    }
    status
}

/// As the Deployment is.
fn predictor(seen: &Seen<'_>) -> Condition {
    if let Some(Problem { reason, message }) = seen.problem {
        return Condition::new("False", Some(*reason), Some(message));
    }
    let conditions = seen.deployment.and_then(|deployment| deployment.status.as_ref());
    let conditions = conditions.and_then(|status| status.conditions.as_deref());
    let find = |kind: &str| {
        conditions.unwrap_or_default().iter().find(|condition| condition.type_ == kind)
    };
    let (available, progressing) = (find("Available"), find("Progressing"));
    let as_it_is = |status, of: &k8s_openapi::api::apps::v1::DeploymentCondition| {
        Condition::new(status, of.reason.as_deref(), of.message.as_deref())
    };
    if let Some(failure) = find("ReplicaFailure").filter(|failure| failure.status == "True") {
        return as_it_is("False", failure);
    }
    if let Some(available) = available.filter(|available| available.status == "False") {
        return as_it_is("False", available);
    }
    match progressing {
        Some(stuck) if stuck.status == "False" => as_it_is("False", stuck),
        Some(done) if done.reason.as_deref() == Some("NewReplicaSetAvailable") => {
            as_it_is("True", done)
        }
        Some(busy) if busy.status == "True" => as_it_is("Unknown", busy),
        _ => match available {
            Some(available) => as_it_is("True", available),
            None => Condition::new("Unknown", None, None),
        },
    }
}

fn model_status(seen: &Seen<'_>, is_ready: bool) -> Value {
    let copies = seen.pods.iter().filter(|pod| pods::is_ready(pod)).count();
    let failure = match seen.problem {
        Some(Problem { reason, message }) => Some(json!({"reason": reason, "message": message})),
        None if is_ready => None,
        None => seen.pods.iter().find_map(|pod| failure(pod)),
    };
    let (transition, active, target) = match (&failure, seen.problem) {
        (Some(_), Some(_)) => ("InvalidSpec", "", "FailedToLoad"),
        (Some(_), None) => ("BlockedByFailedLoad", "", "FailedToLoad"),
        (None, _) if is_ready => ("UpToDate", "Loaded", "Loaded"),
        (None, _) => ("InProgress", "", "Pending"),
    };
    let mut status = json!({
        "transitionStatus": transition,
        "states": {"activeModelState": active, "targetModelState": target},
        "copies": {"failedCopies": 0, "totalCopies": copies},
    });
    if let Some(failure) = failure {
        status["lastFailureInfo"] = failure;
    }
    status
}

/// Why the container that serves has last ended, if it keeps ending.
fn failure(pod: &Pod) -> Option<Value> {
    let statuses = pod.status.as_ref()?.container_statuses.as_deref()?;
    let container: &ContainerStatus = statuses.iter().find(|status| status.name == CONTAINER)?;
    let state = container.state.as_ref()?;
    let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    let waits = state.waiting.as_ref().and_then(|waiting| waiting.reason.as_deref());
    let ended = match (&state.terminated, waits) {
        (Some(ended), _) if ended.reason.as_deref() == Some("Error") => ended,
        (None, Some("CrashLoopBackOff")) => last?,
        _ => return None,
    };
    Some(json!({
        "reason": "ModelLoadFailed",
        "message": ended.message.as_deref().unwrap_or_default(),
        "exitCode": ended.exit_code,
    }))
}

fn shown(service: &InferenceService, kind: &str, now: &Condition, time: Timestamp) -> Value {
    let old = service.status.get("conditions").and_then(Value::as_array);
    let old = old.into_iter().flatten().find(|condition| condition["type"] == kind);
    let since = old.filter(|old| old["status"] == now.status);
    let since = since.and_then(|old| old.get("lastTransitionTime")).cloned();
    let mut shown = json!({
        "type": kind,
        "status": now.status,
        "lastTransitionTime": since.unwrap_or_else(|| json!(stamp(time))),
    });
    for (field, text) in [("reason", &now.reason), ("message", &now.message)] {
        if let Some(text) = text {
            shown[field] = json!(text);
        }
    }
    shown
}

/// The merge patch that makes `new` of `old`; `None` if they are the same.
pub(super) fn difference(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let mut patch = Map::new();
    for (name, value) in after {
        let change = difference(before.get(name).unwrap_or(&Value::Null), value);
        patch.extend(change.map(|change| (name.clone(), change)));
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    patch.extend(gone.map(|name| (name.clone(), Value::Null)));
    (!patch.is_empty()).then_some(Value::Object(patch))
}
