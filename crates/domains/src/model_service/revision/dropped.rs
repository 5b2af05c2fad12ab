//! What the operator before us has set in a pod template and an apply of ours would take away.
//!
//! Its fields become ours when a Deployment is taken over, and those that an apply does not have go
//! with it. So the template changes and the pods are replaced, except where the API server fills the
//! same in again: its defaults are recorded as the work of whoever wrote the object.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value, json};
use windlass_engine::image::ImageRef;
use windlass_engine::quantity;

use super::super::names::PREDECESSOR;

/// Whether something of the live template goes if `kept` is applied in its place.
pub(super) fn drops(live: &Deployment, kept: &Value) -> bool {
    let template = json!(live.spec.as_ref().map(|spec| &spec.template));
    let entries = live.metadata.managed_fields.iter().flatten();
    entries.filter(|entry| is_its(entry)).any(|entry| {
        let fields = entry.fields_v1.as_ref();
        let fields = fields.and_then(|fields| fields.0.pointer("/f:spec/f:template"));
        fields.is_some_and(|fields| !keeps(fields, &template, kept))
    })
}

fn is_its(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(PREDECESSOR)
        && entry.subresource.as_deref().is_none_or(str::is_empty)
}

/// Whether all of `live` that is recorded is in `kept` too, or comes back by itself.
fn keeps(recorded: &Value, live: &Value, kept: &Value) -> bool {
    let is_whole = |map: &Map<String, Value>| map.keys().all(|step| step == ".");
    let steps = match recorded.as_object() {
        Some(steps) if !is_whole(steps) => steps,
        _ => return covers(kept, live),
    };
    steps.iter().all(|(step, below)| {
        if let Some(field) = step.strip_prefix("f:") {
            let value = &live[field];
            is_filled_in(live, field, value) || keeps(below, value, &kept[field])
        } else if let Some(keys) = step.strip_prefix("k:") {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            keeps(below, item(live, &keys), item(kept, &keys))
        } else {
            true
        }
    })
}

fn item<'a>(list: &'a Value, keys: &Map<String, Value>) -> &'a Value {
    let is_it = |item: &&Value| keys.iter().all(|(key, value)| item[key] == *value);
    list.as_array().into_iter().flatten().find(is_it).unwrap_or(&Value::Null)
}

fn covers(kept: &Value, live: &Value) -> bool {
    match (kept, live) {
        (_, Value::Null) => true,
        (kept, Value::Object(fields)) => fields
            .iter()
            .all(|(field, value)| is_filled_in(live, field, value) || covers(&kept[field], value)),
        (Value::Array(kept), Value::Array(items)) => {
            kept.len() == items.len()
                && kept.iter().zip(items).all(|(kept, live)| covers(kept, live))
        }
        (_, Value::Array(items)) => items.is_empty(),
        (Value::String(kept), Value::String(live)) => kept == live || quantity::equal(kept, live),
        (kept, live) => kept == live,
    }
}

/// Whether the API server gives a field of `holder` this value where it is left out.
fn is_filled_in(holder: &Value, field: &str, value: &Value) -> bool {
    let default = match field {
        "restartPolicy" if holder.get("containers").is_some() => json!("Always"),
        "dnsPolicy" => json!("ClusterFirst"),
        "schedulerName" => json!("default-scheduler"),
        "terminationGracePeriodSeconds" => json!(30),
        // The older name of the same field.
        "serviceAccount" => holder["serviceAccountName"].clone(),
        "imagePullPolicy" => json!(pull_policy(&holder["image"])),
        "terminationMessagePath" => json!("/dev/termination-log"),
        "terminationMessagePolicy" => json!("File"),
        "protocol" => json!("TCP"),
        "timeoutSeconds" | "successThreshold" => json!(1),
        "periodSeconds" => json!(10),
        "failureThreshold" => json!(3),
        "scheme" => json!("HTTP"),
        "apiVersion" => json!("v1"),
        "divisor" => json!("0"),
        "defaultMode" => json!(0o644),
        _ => return false,
    };
    *value == default
}

fn pull_policy(image: &Value) -> &'static str {
    let image = image.as_str().and_then(|image| ImageRef::parse(image).ok());
    let is_moving = image.is_some_and(|image| image.tag == "latest");
    if is_moving { "Always" } else { "IfNotPresent" }
}
