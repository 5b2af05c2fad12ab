//! Kinds that run pods by a template, and the one that scales them.

use serde_json::{Value, json};

use super::pod;
use crate::builtin::object::{at, at_mut, fill, has, items, map_mut, text};

pub(super) fn deployment(object: &mut Value) {
    let Some(spec) = at_mut(object, &["spec"]) else { return };
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    if map_mut(spec, &["strategy"]).is_some()
        && let Some(strategy) = at_mut(spec, &["strategy"])
    {
        fill(strategy, "type", "RollingUpdate");
        if text(strategy, &["type"]) == "RollingUpdate" {
            fill(strategy, "rollingUpdate", json!({}));
            if let Some(rolling) = at_mut(strategy, &["rollingUpdate"]) {
                fill_absent(rolling, "maxUnavailable", "25%");
                fill_absent(rolling, "maxSurge", "25%");
            }
        }
    }
    template(spec);
}

pub(super) fn replica_set(object: &mut Value) {
    let Some(spec) = at_mut(object, &["spec"]) else { return };
    fill(spec, "replicas", 1);
    template(spec);
}

pub(super) fn job(object: &mut Value) {
    let Some(spec) = at_mut(object, &["spec"]) else { return };
    if !has(spec, "completions") && !has(spec, "parallelism") {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let retries = if has(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    fill(spec, "backoffLimit", retries);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let replace = if has(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    fill(spec, "podReplacementPolicy", replace);
    fill(spec, "manualSelector", false);
    template(spec);
    let labels = at(spec, &["template", "metadata", "labels"]).cloned();
    labels_of_template(object, labels);
}

fn template(spec: &mut Value) {
    if let Some(template) = at_mut(spec, &["template"]) {
        pod::template(template);
    }
}

/// An object without labels carries those of its pods.
fn labels_of_template(object: &mut Value, labels: Option<Value>) {
    let own = at(object, &["metadata", "labels"]).and_then(Value::as_object);
    if own.is_none_or(serde_json::Map::is_empty)
        && let Some(labels) = labels.filter(Value::is_object)
        && let Some(meta) = map_mut(object, &["metadata"])
    {
        meta.insert("labels".to_owned(), labels);
    }
}

pub(super) fn autoscaler(object: &mut Value) {
    let Some(spec) = at_mut(object, &["spec"]) else { return };
    fill(spec, "minReplicas", 1);
    if items(spec, &["metrics"]).is_empty()
        && let Some(map) = spec.as_object_mut()
    {
        let target = json!({ "type": "Utilization", "averageUtilization": 80 });
        let metric = json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } });
        map.insert("metrics".to_owned(), json!([metric]));
    }
    if let Some(behavior) = at_mut(spec, &["behavior"]) {
        fill(behavior, "scaleUp", json!({}));
        fill(behavior, "scaleDown", json!({}));
        if let Some(up) = at_mut(behavior, &["scaleUp"]) {
            fill(up, "stabilizationWindowSeconds", 0);
            rules(up, json!([policy("Pods", 4), policy("Percent", 100)]));
        }
        if let Some(down) = at_mut(behavior, &["scaleDown"]) {
            rules(down, json!([policy("Percent", 100)]));
        }
    }
}

fn rules(rules: &mut Value, policies: Value) {
    fill(rules, "selectPolicy", "Max");
    fill(rules, "policies", policies);
}

fn policy(kind: &str, value: i32) -> Value {
    json!({ "type": kind, "value": value, "periodSeconds": 15 })
}

fn fill_absent(object: &mut Value, name: &str, default: &str) {
    if !has(object, name) {
        fill(object, name, default);
    }
}
