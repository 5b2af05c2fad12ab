//! Containers: what they run, listen on, read and mount.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{meta::not_negative, names, resources};
use crate::builtin::{
    causes::{Causes, Path},
    object::{at, has, integer, items, text},
};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const INIT_ONLY: &str = "may not be set for init containers without restartPolicy=Always";

pub(super) fn containers(spec: &Value, volumes: &BTreeSet<&str>, path: &Path, causes: &mut Causes) {
    let list = items(spec, &["containers"]);
    let path_of = path.child("containers");
    if list.is_empty() {
        causes.required(&path_of, "");
    }
    let mut taken = BTreeSet::new();
    for (index, container) in list.iter().enumerate() {
        let path = path_of.index(index);
        common(container, volumes, &path, causes);
        unique(container, &mut taken, &path, causes);
        probes(container, &path, causes);
    }
    let path_of = path.child("initContainers");
    for (index, container) in items(spec, &["initContainers"]).iter().enumerate() {
        let path = path_of.index(index);
        common(container, volumes, &path, causes);
        let policy = text(container, &["restartPolicy"]);
        if !matches!(policy, "" | "Always" | "Never" | "OnFailure") {
            let known = &["Always", "Never", "OnFailure"];
            causes.not_supported(&path.child("restartPolicy"), policy, known);
        }
        unique(container, &mut taken, &path, causes);
        if policy == "Always" {
            probes(container, &path, causes);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if has(container, field) {
                causes.forbidden(&path.child(field), INIT_ONLY);
            }
        }
    }
}

fn unique<'a>(
    container: &'a Value,
    taken: &mut BTreeSet<&'a str>,
    path: &Path,
    causes: &mut Causes,
) {
    let name = text(container, &["name"]);
    if !name.is_empty() && !taken.insert(name) {
        causes.duplicate(&path.child("name"), name);
    }
}

fn common(container: &Value, volumes: &BTreeSet<&str>, path: &Path, causes: &mut Causes) {
    let name = text(container, &["name"]);
    if name.is_empty() {
        causes.required(&path.child("name"), "");
    } else {
        for problem in names::label(name) {
            causes.invalid(&path.child("name"), name, &problem);
        }
    }
    if text(container, &["image"]).is_empty() {
        causes.required(&path.child("image"), "");
    }
    one_of(container, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], path, causes);
    ports(container, &path.child("ports"), causes);
    env(container, &path.child("env"), causes);
    env_from(container, &path.child("envFrom"), causes);
    mounts(container, volumes, &path.child("volumeMounts"), causes);
    one_of(container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path, causes);
    resources::requirements(container, &path.child("resources"), causes);
}

/// A field that must have one of these values.
pub(super) fn one_of(
    object: &Value,
    field: &str,
    supported: &[&str],
    path: &Path,
    causes: &mut Causes,
) {
    let value = text(object, &[field]);
    if value.is_empty() {
        causes.required(&path.child(field), "");
    } else if !supported.contains(&value) {
        causes.not_supported(&path.child(field), value, supported);
    }
}

fn ports(container: &Value, path: &Path, causes: &mut Causes) {
    let mut taken = BTreeSet::new();
    for (index, port) in items(container, &["ports"]).iter().enumerate() {
        let path = path.index(index);
        let name = text(port, &["name"]);
        if !name.is_empty() {
            let problems = names::port_name(name);
            for problem in &problems {
                causes.invalid(&path.child("name"), name, problem);
            }
            if problems.is_empty() && !taken.insert(name) {
                causes.duplicate(&path.child("name"), name);
            }
        }
        match integer(port, &["containerPort"]).unwrap_or_default() {
            0 => causes.required(&path.child("containerPort"), ""),
            number => self::port(number, &path.child("containerPort"), causes),
        }
        if let Some(number) = integer(port, &["hostPort"]).filter(|number| *number != 0) {
            self::port(number, &path.child("hostPort"), causes);
        }
        one_of(port, "protocol", PROTOCOLS, &path, causes);
    }
}

pub(super) fn port(number: i64, path: &Path, causes: &mut Causes) {
    if let Some(problem) = names::port(number) {
        causes.invalid(path, number, problem);
    }
}

fn env(container: &Value, path: &Path, causes: &mut Causes) {
    for (index, variable) in items(container, &["env"]).iter().enumerate() {
        let path = path.index(index);
        let name = text(variable, &["name"]);
        if name.is_empty() {
            causes.required(&path.child("name"), "");
        }
        for problem in names::variable(name) {
            causes.invalid(&path.child("name"), name, &problem);
        }
        if let Some(source) = at(variable, &["valueFrom"]) {
            value_from(variable, source, &path.child("valueFrom"), causes);
        }
    }
}

fn value_from(variable: &Value, source: &Value, path: &Path, causes: &mut Causes) {
    let kinds = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let count = kinds.iter().filter(|kind| has(source, kind)).count();
    if let Some(field) = at(source, &["fieldRef"]) {
        field_ref(field, &path.child("fieldRef"), causes);
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = at(source, &[kind]) {
            key_ref(reference, &path.child(kind), causes);
        }
    }
    if count == 0 {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                      `secretKeyRef` or `fileKeyRef`";
        causes.invalid(path, "", detail);
    } else if !text(variable, &["value"]).is_empty() {
        causes.invalid(path, "", "may not be specified when `value` is not empty");
    } else if count > 1 {
        causes.invalid(path, "", "may not have more than one field specified at a time");
    }
}

fn field_ref(field: &Value, path: &Path, causes: &mut Causes) {
    const FIELDS: &[&str] = &[
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    /// Known of a pod, but not offered to it.
    const OTHER_FIELDS: &[&str] = &[
        "metadata.annotations",
        "metadata.labels",
        "spec.hostNetwork",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.nominatedNodeName",
        "status.phase",
    ];
    let name = text(field, &["fieldPath"]);
    if name.is_empty() {
        causes.required(&path.child("fieldPath"), "");
        return;
    }
    let keyed = ["metadata.labels['", "metadata.annotations['"];
    if keyed.iter().any(|prefix| name.starts_with(prefix)) && name.ends_with("']") {
        return;
    }
    if !FIELDS.contains(&name) && !OTHER_FIELDS.contains(&name) {
        let detail = format!("error converting fieldPath: field label not supported: {name}");
        causes.invalid(&path.child("fieldPath"), name, &detail);
    } else if !FIELDS.contains(&name) {
        causes.not_supported(&path.child("fieldPath"), name, FIELDS);
    }
}

fn key_ref(reference: &Value, path: &Path, causes: &mut Causes) {
    let name = text(reference, &["name"]);
    for problem in names::subdomain(name) {
        causes.invalid(&path.child("name"), name, &problem);
    }
    let key = text(reference, &["key"]);
    if key.is_empty() {
        causes.required(&path.child("key"), "");
        return;
    }
    for problem in names::data_key(key) {
        causes.invalid(&path.child("key"), key, &problem);
    }
}

fn env_from(container: &Value, path: &Path, causes: &mut Causes) {
    for (index, source) in items(container, &["envFrom"]).iter().enumerate() {
        let item = path.index(index);
        let prefix = text(source, &["prefix"]);
        for problem in names::variable(prefix) {
            causes.invalid(&item.child("prefix"), prefix, &problem);
        }
        let kinds = ["configMapRef", "secretRef"];
        for kind in kinds.iter().filter(|kind| has(source, kind)) {
            let name = text(source, &[kind, "name"]);
            if name.is_empty() {
                causes.required(&item.child(kind).child("name"), "");
            }
        }
        match kinds.iter().filter(|kind| has(source, kind)).count() {
            0 => causes.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => causes.invalid(path, "", "may not have more than one field specified at a time"),
        }
    }
}

fn mounts(container: &Value, volumes: &BTreeSet<&str>, path: &Path, causes: &mut Causes) {
    let mut taken = BTreeSet::new();
    for (index, mount) in items(container, &["volumeMounts"]).iter().enumerate() {
        let item = path.index(index);
        let name = text(mount, &["name"]);
        if name.is_empty() {
            causes.required(&item.child("name"), "");
        }
        if !volumes.contains(name) {
            causes.not_found(&item.child("name"), name);
        }
        let place = text(mount, &["mountPath"]);
        if place.is_empty() {
            causes.required(&item.child("mountPath"), "");
        }
        if !taken.insert(place) {
            causes.invalid(&item.child("mountPath"), place, "must be unique");
        }
        for field in ["subPath", "subPathExpr"] {
            descending(text(mount, &[field]), &path.child(field), causes);
        }
        let both = ["subPath", "subPathExpr"].iter().all(|field| !text(mount, &[field]).is_empty());
        if both {
            let detail = "subPathExpr and subPath are mutually exclusive";
            causes.invalid(&item.child("subPathExpr"), text(mount, &["subPathExpr"]), detail);
        }
    }
}

/// A path that stays beneath where it starts.
pub(super) fn descending(target: &str, path: &Path, causes: &mut Causes) {
    if target.starts_with('/') {
        causes.invalid(path, target, "must be a relative path");
    }
    if target.split('/').any(|part| part == "..") {
        causes.invalid(path, target, "must not contain '..'");
    }
}

fn probes(container: &Value, path: &Path, causes: &mut Causes) {
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = at(container, &[kind]) else { continue };
        let path = path.child(kind);
        handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], &path, causes);
        for field in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            not_negative(&path.child(field), integer(probe, &[field]).unwrap_or_default(), causes);
        }
        let successes = integer(probe, &["successThreshold"]).unwrap_or(1);
        if kind != "readinessProbe" && successes != 1 {
            causes.invalid(&path.child("successThreshold"), successes, "must be 1");
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(action) = at(container, &["lifecycle", hook]) {
            let path = path.child("lifecycle").child(hook);
            handler(action, &["exec", "httpGet", "tcpSocket", "sleep"], &path, causes);
        }
    }
}

fn handler(action: &Value, kinds: &[&str], path: &Path, causes: &mut Causes) {
    let mut given = kinds.iter().filter(|kind| has(action, kind));
    let Some(kind) = given.next() else {
        causes.required(path, "must specify a handler type");
        return;
    };
    for other in given {
        causes.forbidden(&path.child(other), "may not specify more than 1 handler type");
    }
    let path = path.child(kind);
    match *kind {
        "exec" if items(action, &["exec", "command"]).is_empty() => {
            causes.required(&path.child("command"), "");
        }
        "httpGet" | "tcpSocket" => match at(action, &[kind, "port"]) {
            Some(Value::String(name)) => {
                for problem in names::port_name(name) {
                    causes.invalid(&path.child("port"), name.as_str(), &problem);
                }
            }
            number => {
                let number = number.and_then(Value::as_i64).unwrap_or_default();
                self::port(number, &path.child("port"), causes);
            }
        },
        _ => {}
    }
}
