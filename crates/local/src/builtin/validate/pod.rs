//! Pods and the templates of pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{container, meta, names, volume::volumes};
use crate::builtin::{
    causes::{Causes, Path},
    object::{at, has, integer, items, text},
};

const CHANGEABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
    `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn pod(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("spec");
    let none = Value::Null;
    let spec = at(object, &["spec"]).unwrap_or(&none);
    self::spec(spec, &path, causes);
    for list in ["containers", "initContainers"] {
        images(spec, list, &path, causes);
    }
    if let Some(old) = old {
        update(spec, at(old, &["spec"]).unwrap_or(&none), &path, causes);
    }
}

/// Templates may name any image; what becomes of it shows in their pods.
fn images(spec: &Value, list: &str, path: &Path, causes: &mut Causes) {
    for (index, container) in items(spec, &[list]).iter().enumerate() {
        let image = text(container, &["image"]);
        if image.trim() != image {
            let detail = "must not have leading or trailing whitespace";
            causes.invalid(&path.child(list).index(index).child("image"), image, detail);
        }
    }
}

/// `path` is that of the template.
pub(super) fn template(template: &Value, path: &Path, causes: &mut Causes) {
    meta::labels(template, &["metadata", "labels"], &path.child("labels"), causes);
    let annotations = path.child("annotations");
    meta::annotations(template, &["metadata", "annotations"], &annotations, causes);
    let none = Value::Null;
    let path = path.child("spec");
    spec(at(template, &["spec"]).unwrap_or(&none), &path, causes);
    if !items(template, &["spec", "ephemeralContainers"]).is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        causes.forbidden(&path.child("ephemeralContainers"), detail);
    }
}

fn spec(spec: &Value, path: &Path, causes: &mut Causes) {
    let volumes: BTreeSet<&str> = volumes(spec, &path.child("volumes"), causes);
    container::containers(spec, &volumes, path, causes);
    container::one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], path, causes);
    let policies = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    container::one_of(spec, "dnsPolicy", policies, path, causes);
    meta::labels(spec, &["nodeSelector"], &path.child("nodeSelector"), causes);
    for field in ["serviceAccountName", "nodeName", "priorityClassName"] {
        let name = text(spec, &[field]);
        if !name.is_empty() {
            for problem in names::subdomain(name) {
                causes.invalid(&path.child(field), name, &problem);
            }
        }
    }
    if let Some(seconds) = integer(spec, &["activeDeadlineSeconds"])
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let detail = "must be between 1 and 2147483647, inclusive";
        causes.invalid(&path.child("activeDeadlineSeconds"), seconds, detail);
    }
    for field in ["hostname", "subdomain"] {
        let name = text(spec, &[field]);
        if !name.is_empty() {
            for problem in names::label(name) {
                causes.invalid(&path.child(field), name, &problem);
            }
        }
    }
    tolerations(spec, &path.child("tolerations"), causes);
}

fn tolerations(spec: &Value, path: &Path, causes: &mut Causes) {
    for (index, toleration) in items(spec, &["tolerations"]).iter().enumerate() {
        let path = path.index(index);
        let key = text(toleration, &["key"]);
        let operator = text(toleration, &["operator"]);
        let effect = text(toleration, &["effect"]);
        if key.is_empty() && operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, \
                          which means \"match all values and all keys\"";
            causes.invalid(&path.child("operator"), operator, detail);
        }
        if !key.is_empty() {
            for problem in names::qualified(key) {
                causes.invalid(&path.child("key"), key, &problem);
            }
        }
        if has(toleration, "tolerationSeconds") && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            causes.invalid(&path.child("effect"), effect, detail);
        }
        let value = text(toleration, &["value"]);
        match operator {
            "" | "Equal" => {
                let problems = names::label_value(value);
                if !problems.is_empty() {
                    causes.invalid(&path.child("operator"), value, &problems.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                causes.invalid(&path.child("operator"), value, detail);
            }
            "Exists" => {}
            other => causes.not_supported(&path.child("operator"), other, &["Equal", "Exists"]),
        }
        let effects = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effect.is_empty() && !effects.contains(&effect) {
            causes.not_supported(&path.child("effect"), effect, effects);
        }
    }
}

fn update(spec: &Value, old: &Value, path: &Path, causes: &mut Causes) {
    for list in ["containers", "initContainers"] {
        if items(spec, &[list]).len() != items(old, &[list]).len() {
            let detail = "pod updates may not add or remove containers";
            causes.forbidden(&path.child(list), detail);
            return;
        }
        images(spec, list, path, causes);
    }
    if !deadline(spec, old, &path.child("activeDeadlineSeconds"), causes) {
        return;
    }
    let kept = items(old, &["tolerations"]).iter().all(|old| {
        items(spec, &["tolerations"]).iter().any(|new| {
            ["key", "operator", "value", "effect"]
                .iter()
                .all(|field| new.get(field) == old.get(field))
        })
    });
    if !kept {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        causes.forbidden(&path.child("tolerations"), detail);
    }
    let held = items(old, &["schedulingGates"]);
    for (index, gate) in items(spec, &["schedulingGates"]).iter().enumerate() {
        if !held.contains(gate) {
            let name = text(gate, &["name"]);
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            causes.forbidden(&path.child("schedulingGates").index(index).child("name"), &detail);
        }
    }
    if masked(spec) != masked(old) && !shortened_grace(spec, old) {
        let detail = format!("pod updates may not change fields other than {CHANGEABLE}");
        causes.forbidden(path, &detail);
    }
}

/// Whether the deadline may be changed so; what is checked after it matters only then.
fn deadline(spec: &Value, old: &Value, path: &Path, causes: &mut Causes) -> bool {
    let field = &["activeDeadlineSeconds"];
    match (integer(spec, field), integer(old, field)) {
        (Some(new), Some(old)) if old < new => {
            causes.invalid(path, new, "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            causes.invalid(path, Value::Null, detail);
            true
        }
        _ => true,
    }
}

fn shortened_grace(spec: &Value, old: &Value) -> bool {
    let field = &["terminationGracePeriodSeconds"];
    if integer(old, field).is_none_or(|old| old >= 0) || integer(spec, field) != Some(1) {
        return false;
    }
    let mut spec = masked(spec);
    if let (Some(map), Some(old)) = (spec.as_object_mut(), at(old, field)) {
        map.insert(field[0].to_owned(), old.clone());
    }
    spec == masked(old)
}

/// The spec without what may change.
fn masked(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(map) = spec.as_object_mut() {
        for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
            map.remove(field);
        }
        for list in ["containers", "initContainers"] {
            let containers = map.get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
                container.remove("image");
            }
        }
    }
    spec
}
