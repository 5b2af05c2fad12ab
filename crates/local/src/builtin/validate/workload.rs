//! Kinds that run pods by a template, and the one that scales them.

use serde_json::{Value, json};

use super::{immutable, meta::not_negative, names, pod, selectors};
use crate::builtin::{
    causes::{Causes, Path},
    object::{at, has, integer, items, text, truth},
};

pub(super) fn deployment(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("spec");
    let none = Value::Null;
    let spec = at(object, &["spec"]).unwrap_or(&none);
    counts(spec, &["replicas"], &path, causes);
    selected_template(spec, &path, causes);
    strategy(spec, &path.child("strategy"), causes);
    let fields = &["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"];
    counts(spec, fields, &path, causes);
    if let Some(deadline) = integer(spec, &["progressDeadlineSeconds"])
        && deadline <= integer(spec, &["minReadySeconds"]).unwrap_or_default()
    {
        let path = path.child("progressDeadlineSeconds");
        causes.invalid(&path, deadline, "must be greater than minReadySeconds");
    }
    if let Some(old) = old {
        immutable(object, old, &["spec", "selector"], causes);
    }
}

pub(super) fn replica_set(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("spec");
    let none = Value::Null;
    let spec = at(object, &["spec"]).unwrap_or(&none);
    counts(spec, &["replicas", "minReadySeconds"], &path, causes);
    selected_template(spec, &path, causes);
    if let Some(old) = old {
        immutable(object, old, &["spec", "selector"], causes);
    }
}

fn counts(spec: &Value, fields: &[&str], path: &Path, causes: &mut Causes) {
    for field in fields {
        not_negative(&path.child(field), integer(spec, &[field]).unwrap_or_default(), causes);
    }
}

fn selected_template(spec: &Value, path: &Path, causes: &mut Causes) {
    let field = path.child("selector");
    let none = Value::Null;
    let template = at(spec, &["template"]).unwrap_or(&none);
    let path = path.child("template");
    match at(spec, &["selector"]) {
        None => causes.required(&field, ""),
        Some(selector) => {
            let before = causes.0.len();
            selectors::check(selector, &field, causes);
            if causes.0.len() > before {
                causes.invalid(&field, selector.clone(), "invalid label selector");
                return;
            }
            if selectors::is_empty(selector) {
                let detail = "empty selector is invalid for deployment";
                causes.invalid(&field, selector.clone(), detail);
            }
        }
    }
    let labels = at(template, &["metadata", "labels"]);
    // A selector that is absent matches nothing, an empty one everything.
    let matched =
        at(spec, &["selector"]).is_some_and(|selector| selectors::matches(selector, labels));
    if !matched {
        mismatch(labels, &path, causes);
    }
    pod::template(template, &path, causes);
    let policy = text(template, &["spec", "restartPolicy"]);
    if policy != "Always" {
        causes.not_supported(&path.child("spec").child("restartPolicy"), policy, &["Always"]);
    }
    if at(template, &["spec", "activeDeadlineSeconds"]).is_some() {
        let detail = "activeDeadlineSeconds in ReplicaSet is not Supported";
        causes.forbidden(&path.child("spec").child("activeDeadlineSeconds"), detail);
    }
}

fn mismatch(labels: Option<&Value>, path: &Path, causes: &mut Causes) {
    let labels = labels.cloned().unwrap_or(Value::Null);
    let path = path.child("metadata").child("labels");
    causes.invalid(&path, labels, "`selector` does not match template `labels`");
}

fn strategy(spec: &Value, path: &Path, causes: &mut Causes) {
    let none = Value::Null;
    let strategy = at(spec, &["strategy"]).unwrap_or(&none);
    match text(strategy, &["type"]) {
        "Recreate" => {
            if has(strategy, "rollingUpdate") {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                causes.forbidden(&path.child("rollingUpdate"), detail);
            }
        }
        "RollingUpdate" => {
            let path = path.child("rollingUpdate");
            let rolling = at(strategy, &["rollingUpdate"]).unwrap_or(&none);
            for field in ["maxUnavailable", "maxSurge"] {
                int_or_percent(rolling, field, &path, causes);
            }
            let zero = |field| at(rolling, &[field]).is_some_and(is_zero);
            if zero("maxUnavailable") && zero("maxSurge") {
                let value = at(rolling, &["maxUnavailable"]).cloned().unwrap_or_default();
                let path = path.child("maxUnavailable");
                causes.invalid(&path, value, "may not be 0 when `maxSurge` is 0");
            }
            at_most_whole(rolling, "maxUnavailable", &path, causes);
        }
        _ => {
            let supported = "supported values: \"Recreate\", \"RollingUpdate\"";
            let message = format!("Unsupported value: {strategy}: {supported}");
            causes.push(crate::error::CauseReason::NotSupported, path, message);
        }
    }
}

fn is_zero(value: &Value) -> bool {
    value.as_i64() == Some(0)
        || value.as_str().and_then(|text| text.strip_suffix('%')?.parse().ok()) == Some(0)
}

pub(super) fn int_or_percent(object: &Value, field: &str, path: &Path, causes: &mut Causes) {
    match at(object, &[field]) {
        Some(Value::String(text)) => {
            for problem in names::percent(text) {
                causes.invalid(&path.child(field), text.as_str(), &problem);
            }
        }
        Some(value) => {
            not_negative(&path.child(field), value.as_i64().unwrap_or_default(), causes);
        }
        None => {}
    }
}

pub(super) fn at_most_whole(object: &Value, field: &str, path: &Path, causes: &mut Causes) {
    let value = text(object, &[field]);
    let percent = value.strip_suffix('%').and_then(|digits| digits.parse::<i64>().ok());
    if percent.is_some_and(|percent| percent > 100) {
        causes.invalid(&path.child(field), value, "must not be greater than 100%");
    }
}

pub(super) fn job(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("spec");
    let none = Value::Null;
    let spec = at(object, &["spec"]).unwrap_or(&none);
    generated_selector(object, spec, &path, causes);
    let fields = &[
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ];
    counts(spec, fields, &path, causes);
    let modes = &["NonIndexed", "Indexed"];
    let mode = text(spec, &["completionMode"]);
    if !mode.is_empty() && !modes.contains(&mode) {
        causes.not_supported(&path.child("completionMode"), mode, modes);
    }
    let policies = &["Failed", "TerminatingOrFailed"];
    let policy = text(spec, &["podReplacementPolicy"]);
    if !policy.is_empty() && !policies.contains(&policy) {
        causes.not_supported(&path.child("podReplacementPolicy"), policy, policies);
    }
    job_template(spec, &path, causes);
    if let Some(old) = old {
        job_update(object, old, causes);
    }
}

fn job_template(spec: &Value, path: &Path, causes: &mut Causes) {
    let none = Value::Null;
    let template = at(spec, &["template"]).unwrap_or(&none);
    let place = path.child("template");
    pod::template(template, &place, causes);
    let field = place.child("spec").child("restartPolicy");
    match text(template, &["spec", "restartPolicy"]) {
        "" | "Always" => causes.required(&field, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" | "Never" => {}
        other => causes.not_supported(&field, other, &["OnFailure", "Never"]),
    }
    let labels = at(template, &["metadata", "labels"]);
    match at(spec, &["selector"]) {
        None => {
            causes.required(&path.child("selector"), "");
            mismatch(labels, &place, causes);
        }
        Some(selector) => {
            selectors::check(selector, &path.child("selector"), causes);
            if !selectors::matches(selector, labels) {
                mismatch(labels, &place, causes);
            }
        }
    }
}

/// What the server added must not have been contradicted by the writer.
fn generated_selector(object: &Value, spec: &Value, path: &Path, causes: &mut Causes) {
    let Some(selector) = at(spec, &["selector"]) else { return };
    if truth(spec, &["manualSelector"]) {
        return;
    }
    let uid = text(object, &["metadata", "uid"]);
    let name = text(object, &["metadata", "name"]);
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
        "controller-uid": uid, "job-name": name,
    });
    if !selectors::matches(selector, Some(&labels)) {
        let detail = "`selector` not auto-generated";
        causes.invalid(&path.child("selector"), selector.clone(), detail);
    }
}

fn job_update(object: &Value, old: &Value, causes: &mut Causes) {
    immutable(object, old, &["spec", "completions"], causes);
    immutable(object, old, &["spec", "selector"], causes);
    if let (Some(new), Some(stored)) =
        (at(object, &["spec", "template"]), at(old, &["spec", "template"]))
    {
        let (mut new, mut stored) = (new.clone(), stored.clone());
        if may_be_rescheduled(old) {
            forget_scheduling(&mut new);
            forget_scheduling(&mut stored);
        }
        if new != stored && truth(old, &["spec", "suspend"]) {
            let spec = at(&new, &["spec"]).cloned().unwrap_or_default();
            causes.invalid(&Path::new("spec.template.spec"), spec, "field is immutable");
        } else if new != stored {
            causes.invalid(&Path::new("spec.template"), new, "field is immutable");
        }
    }
    immutable(object, old, &["spec", "completionMode"], causes);
}

/// A suspended Job that has not started may still be told where to run, and with how much.
fn may_be_rescheduled(old: &Value) -> bool {
    truth(old, &["spec", "suspend"]) && at(old, &["status", "startTime"]).is_none()
}

fn forget_scheduling(template: &mut Value) {
    if let Some(meta) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("annotations");
        meta.remove("labels");
    }
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        for field in ["nodeSelector", "tolerations", "schedulingGates", "affinity"] {
            spec.remove(field);
        }
        for list in ["containers", "initContainers"] {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
                container.remove("resources");
            }
        }
    }
}

pub(super) fn autoscaler(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("spec");
    let none = Value::Null;
    let spec = at(object, &["spec"]).unwrap_or(&none);
    let min = integer(spec, &["minReplicas"]);
    let max = integer(spec, &["maxReplicas"]).unwrap_or_default();
    if let Some(min) = min.filter(|min| *min < 1) {
        causes.invalid(&path.child("minReplicas"), min, "must be greater than or equal to 1");
    }
    let field = path.child("maxReplicas");
    match max {
        0 => causes.required(&field, "must be set and greater than 0"),
        max if max < 0 => causes.invalid(&field, max, "must be greater than or equal to 1"),
        _ => {}
    }
    if min.is_some_and(|min| max < min) {
        causes.invalid(&field, max, "must be greater than or equal to `minReplicas`");
    }
    let target = path.child("scaleTargetRef");
    for field in ["kind", "name"] {
        if text(spec, &["scaleTargetRef", field]).is_empty() {
            causes.required(&target.child(field), "");
        }
    }
    if old.is_none() && !text(spec, &["scaleTargetRef", "apiVersion"]).contains('/') {
        let version = text(spec, &["scaleTargetRef", "apiVersion"]);
        let detail = "apiVersion must specify API group";
        causes.invalid(&target.child("apiVersion"), version, detail);
    }
    let outside = |metric: &Value| matches!(text(metric, &["type"]), "Object" | "External");
    if min == Some(0) && !items(spec, &["metrics"]).iter().any(outside) {
        let detail = "must specify at least one Object or External metric to support scaling to \
                      zero replicas";
        causes.forbidden(&path.child("metrics"), detail);
    }
    for (index, metric) in items(spec, &["metrics"]).iter().enumerate() {
        self::metric(metric, &path.child("metrics").index(index), causes);
    }
}

fn metric(metric: &Value, path: &Path, causes: &mut Causes) {
    const TYPES: &[(&str, &str)] = &[
        ("ContainerResource", "containerResource"),
        ("External", "external"),
        ("Object", "object"),
        ("Pods", "pods"),
        ("Resource", "resource"),
    ];
    let kind = text(metric, &["type"]);
    if kind.is_empty() {
        causes.required(&path.child("type"), "must specify a metric source type");
    }
    let Some((_, field)) = TYPES.iter().find(|(name, _)| *name == kind) else {
        let names: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
        causes.not_supported(&path.child("type"), kind, &names);
        return;
    };
    if !has(metric, field) {
        let detail = "must populate information for the given metric source";
        causes.required(&path.child(field), detail);
    }
    for (_, other) in TYPES.iter().filter(|(_, other)| other != field && has(metric, other)) {
        causes.forbidden(&path.child(other), "must populate the given metric source only");
    }
    if *field != "resource" || !has(metric, field) {
        return;
    }
    let target = path.child(field).child("target");
    if text(metric, &["resource", "name"]).is_empty() {
        causes.required(&path.child(field).child("name"), "must specify a resource name");
    }
    let kind = text(metric, &["resource", "target", "type"]);
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        causes.invalid(&target.child("type"), kind, detail);
    }
    let utilization = integer(metric, &["resource", "target", "averageUtilization"]);
    if let Some(percent) = utilization.filter(|percent| *percent < 1) {
        causes.invalid(&target.child("averageUtilization"), percent, "must be greater than 0");
    }
    if utilization.is_none() && at(metric, &["resource", "target", "averageValue"]).is_none() {
        let detail = "must set either a target raw value or a target utilization";
        causes.required(&target.child("averageUtilization"), detail);
    }
}
