//! Kinds that hold settings, small facts and news.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    immutable, names, selectors,
    workload::{at_most_whole, int_or_percent},
};
use crate::{
    builtin::{
        causes::{Causes, Path},
        object::{at, entries, has, integer, items, text, truth},
    },
    error::CauseReason,
};

/// Of a ConfigMap or a Secret in all.
const MAX_DATA: usize = 1024 * 1024;
const FROZEN: &str = "field is immutable when `immutable` is set";

pub(super) fn config_map(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let mut total = 0;
    for (key, value) in entries(object, &["data"]) {
        let path = Path::new("data").key(key);
        self::key(key, &path, causes);
        if at(object, &["binaryData", key]).is_some() {
            causes.invalid(&path, key.as_str(), "duplicate of key present in binaryData");
        }
        total += value.as_str().unwrap_or_default().len();
    }
    for (key, value) in entries(object, &["binaryData"]) {
        self::key(key, &Path::new("binaryData").key(key), causes);
        total += decoded_length(value);
    }
    if total > MAX_DATA {
        causes.too_long(&Path::new("[]"), MAX_DATA);
    }
    if let Some(old) = old {
        frozen(object, old, &["data", "binaryData"], causes);
    }
}

fn key(key: &str, path: &Path, causes: &mut Causes) {
    for problem in names::data_key(key) {
        causes.invalid(path, key, &problem);
    }
}

fn decoded_length(value: &Value) -> usize {
    value.as_str().and_then(|text| STANDARD.decode(text).ok()).map_or(0, |bytes| bytes.len())
}

fn frozen(object: &Value, old: &Value, fields: &[&str], causes: &mut Causes) {
    if !truth(old, &["immutable"]) {
        return;
    }
    if !truth(object, &["immutable"]) {
        causes.forbidden(&Path::new("immutable"), FROZEN);
    }
    for field in fields {
        if at(object, &[field]) != at(old, &[field]) {
            causes.forbidden(&Path::new(*field), FROZEN);
        }
    }
}

pub(super) fn secret(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    if let Some(old) = old {
        immutable(object, old, &["type"], causes);
        frozen(object, old, &["data"], causes);
    }
    let mut total = 0;
    for (key, value) in entries(object, &["data"]) {
        self::key(key, &Path::new("data").key(key), causes);
        total += decoded_length(value);
    }
    if total > MAX_DATA {
        causes.too_long(&Path::new("data"), MAX_DATA);
    }
    let has_key = |key: &str| object.get("data").is_some_and(|data| data.get(key).is_some());
    let demanded: &[&str] = match text(object, &["type"]) {
        "kubernetes.io/service-account-token" => {
            let name = "kubernetes.io/service-account.name";
            if text(object, &["metadata", "annotations", name]).is_empty() {
                causes.required(&Path::new("metadata.annotations").key(name), "");
            }
            &[]
        }
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/basic-auth" if !has_key("username") && !has_key("password") => {
            &["username", "password"]
        }
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        _ => &[],
    };
    for key in demanded {
        if !has_key(key) {
            causes.required(&Path::new("data").key(key), "");
        } else if key.starts_with(".docker") {
            docker_config(object, key, causes);
        }
    }
}

fn docker_config(object: &Value, key: &str, causes: &mut Causes) {
    let bytes = STANDARD.decode(text(object, &["data", key])).unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes) {
        let path = Path::new("data").key(key);
        causes.invalid(&path, "<secret contents redacted>", &error.to_string());
    }
}

pub(super) fn lease(object: &Value, causes: &mut Causes) {
    let path = Path::new("spec");
    if let Some(seconds) = integer(object, &["spec", "leaseDurationSeconds"])
        && seconds <= 0
    {
        let path = path.child("leaseDurationSeconds");
        causes.invalid(&path, seconds, "must be greater than 0");
    }
    if let Some(count) = integer(object, &["spec", "leaseTransitions"])
        && count < 0
    {
        let path = path.child("leaseTransitions");
        causes.invalid(&path, count, "must be greater than or equal to 0");
    }
}

pub(super) fn priority_class(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    const HIGHEST: i64 = 1_000_000_000;
    if text(object, &["metadata", "name"]).starts_with("system-") {
        let detail = "priority class names with 'system-' prefix are reserved for system use only";
        causes.forbidden(&Path::new("metadata.name"), detail);
    } else if integer(object, &["value"]).is_some_and(|value| value > HIGHEST) {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        causes.forbidden(&Path::new("value"), &detail);
    }
    if let Some(old) = old {
        if integer(object, &["value"]) != integer(old, &["value"]) {
            causes.forbidden(&Path::new("value"), "may not be changed in an update.");
        }
        immutable(object, old, &["preemptionPolicy"], causes);
    }
}

/// Kubernetes shows the spec by the names and in the order that its fields have inside.
fn both_set(spec: &Value) -> String {
    let [least, most, selector, policy] =
        ["minAvailable", "maxUnavailable", "selector", "unhealthyPodEvictionPolicy"]
            .map(|field| at(spec, &[field]).unwrap_or(&Value::Null));
    format!(
        "Invalid value: {{\"MinAvailable\":{least},\"Selector\":{selector},\
         \"MaxUnavailable\":{most},\"UnhealthyPodEvictionPolicy\":{policy}}}: \
         minAvailable and maxUnavailable cannot be both set"
    )
}

pub(super) fn disruption_budget(object: &Value, causes: &mut Causes) {
    let path = Path::new("spec");
    let none = Value::Null;
    let spec = at(object, &["spec"]).unwrap_or(&none);
    let fields = ["minAvailable", "maxUnavailable"];
    if fields.iter().all(|field| has(spec, field)) {
        causes.push(CauseReason::Invalid, &path, both_set(spec));
    }
    for field in fields {
        int_or_percent(spec, field, &path, causes);
        at_most_whole(spec, field, &path, causes);
    }
    if let Some(selector) = at(spec, &["selector"]) {
        selectors::check(selector, &path.child("selector"), causes);
    }
}

pub(super) fn network_policy(object: &Value, causes: &mut Causes) {
    let path = Path::new("spec");
    if let Some(selector) = at(object, &["spec", "podSelector"]) {
        selectors::check(selector, &path.child("podSelector"), causes);
    }
    for (index, kind) in items(object, &["spec", "policyTypes"]).iter().enumerate() {
        let kind = kind.as_str().unwrap_or_default();
        if !matches!(kind, "Ingress" | "Egress") {
            let path = path.child("policyTypes").index(index);
            causes.not_supported(&path, kind, &["Ingress", "Egress"]);
        }
    }
}

/// `strict` is for the newer of the two groups.
pub(super) fn event(object: &Value, old: Option<&Value>, strict: bool, causes: &mut Causes) {
    let [about, reporter, note] = if strict {
        ["regarding", "reportingController", "note"]
    } else {
        ["involvedObject", "reportingComponent", "message"]
    };
    let namespace = text(object, &["metadata", "namespace"]);
    let place = text(object, &[about, "namespace"]);
    let timed = has(object, "eventTime");
    let fits = match (timed, place) {
        (false, "") => matches!(namespace, "" | "default"),
        (false, place) => place == namespace,
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (true, _) => true,
    };
    if !fits {
        let path = Path::new("involvedObject.namespace");
        causes.invalid(&path, place, "does not match event.namespace");
    }
    if timed {
        modern_event(object, reporter, note, causes);
    }
    if !strict {
        return;
    }
    if old.is_none() {
        strict_event(object, causes);
    }
    if let Some(old) = old {
        for field in [about, "reason", note, "type", "eventTime", "action", reporter] {
            immutable(object, old, &[field], causes);
        }
    }
}

fn modern_event(object: &Value, reporter: &str, note: &str, causes: &mut Causes) {
    let controller = text(object, &[reporter]);
    if controller.is_empty() {
        causes.required(&Path::new(reporter), "");
    }
    for problem in names::qualified(controller) {
        causes.invalid(&Path::new(reporter), controller, &problem);
    }
    for field in ["reportingInstance", "action", "reason"] {
        let value = text(object, &[field]);
        if value.is_empty() {
            causes.required(&Path::new(field), "");
        }
        if value.len() > 128 {
            causes.invalid(&Path::new(field), "", "can have at most 128 characters");
        }
    }
    if text(object, &[note]).len() > 1024 {
        causes.invalid(&Path::new("message"), "", "can have at most 1024 characters");
    }
}

fn strict_event(object: &Value, causes: &mut Causes) {
    if let Some(series) = at(object, &["series"]) {
        if integer(series, &["count"]).unwrap_or_default() < 2 {
            causes.invalid(&Path::new("series.count"), "", "should be at least 2");
        }
        if !has(series, "lastObservedTime") {
            causes.required(&Path::new("series.lastObservedTime"), "");
        }
    }
    if !has(object, "eventTime") {
        causes.required(&Path::new("eventTime"), "");
    }
    let kind = text(object, &["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        causes.invalid(&Path::new("type"), "", &format!("has invalid value: {kind}"));
    }
    for (old, new) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
    ] {
        if has(object, old) {
            causes.invalid(&Path::new(new), "", "needs to be unset");
        }
    }
    if integer(object, &["deprecatedCount"]).unwrap_or_default() != 0 {
        causes.invalid(&Path::new("count"), "", "needs to be unset");
    }
    let source = at(object, &["deprecatedSource"]).and_then(Value::as_object);
    if source.is_some_and(|source| !source.is_empty()) {
        causes.invalid(&Path::new("source"), "", "needs to be unset");
    }
}
