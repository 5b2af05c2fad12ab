//! Pods and the templates of pods.

use serde_json::{Map, Value, json};

use crate::builtin::{
    object::{at, at_mut, fill, fill_zero, has, integer, items_mut, map_mut, text, truth},
    quantity::Quantity,
};

/// A pod has a few defaults that a template does not have.
pub(super) fn pod(object: &mut Value) {
    let Some(spec) = at_mut(object, &["spec"]) else { return };
    self::spec(spec);
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, &[list]) {
            requests_from_limits(container);
        }
    }
    if !has(spec, "enableServiceLinks") {
        fill(spec, "enableServiceLinks", true);
    }
    if truth(spec, &["hostNetwork"]) {
        host_ports(spec);
    }
    // The two names of the account are one field to Kubernetes.
    let account = match text(spec, &["serviceAccountName"]) {
        "" => text(spec, &["serviceAccount"]).to_owned(),
        name => name.to_owned(),
    };
    if let Some(map) = spec.as_object_mut()
        && !account.is_empty()
    {
        map.insert("serviceAccountName".to_owned(), account.clone().into());
        map.insert("serviceAccount".to_owned(), account.into());
    }
}

/// The part that pods and templates share.
pub(super) fn template(object: &mut Value) {
    if let Some(spec) = at_mut(object, &["spec"]) {
        self::spec(spec);
    }
}

fn spec(spec: &mut Value) {
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "schedulerName", "default-scheduler");
    // A template keeps the old name of the account beside the new one.
    let account = match text(spec, &["serviceAccountName"]) {
        "" => text(spec, &["serviceAccount"]).to_owned(),
        name => name.to_owned(),
    };
    if !account.is_empty()
        && let Some(map) = spec.as_object_mut()
    {
        map.insert("serviceAccountName".to_owned(), account.clone().into());
        map.insert("serviceAccount".to_owned(), account.into());
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items_mut(spec, &[list]) {
            self::container(container);
        }
    }
    for volume in items_mut(spec, &["volumes"]) {
        self::volume(volume);
    }
}

fn container(container: &mut Value) {
    let policy = if is_latest(text(container, &["image"])) { "Always" } else { "IfNotPresent" };
    fill(container, "imagePullPolicy", policy);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    fill(container, "resources", json!({}));
    round_amounts(container, &["resources"]);
    for port in items_mut(container, &["ports"]) {
        fill(port, "protocol", "TCP");
    }
    for env in items_mut(container, &["env"]) {
        if let Some(source) = at_mut(env, &["valueFrom"]) {
            selectors(source);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = at_mut(container, &[probe]) {
            fill_zero(probe, "timeoutSeconds", 1);
            fill_zero(probe, "periodSeconds", 10);
            fill_zero(probe, "successThreshold", 1);
            fill_zero(probe, "failureThreshold", 3);
            handler(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = at_mut(container, &["lifecycle", hook]) {
            handler(hook);
        }
    }
}

fn handler(handler: &mut Value) {
    if let Some(http) = at_mut(handler, &["httpGet"]) {
        fill(http, "path", "/");
        fill(http, "scheme", "HTTP");
    }
    if let Some(grpc) = at_mut(handler, &["grpc"])
        && !has(grpc, "service")
    {
        fill(grpc, "service", "");
    }
}

/// Of an environment variable or a file of the downward API.
fn selectors(source: &mut Value) {
    if let Some(field) = at_mut(source, &["fieldRef"]) {
        fill(field, "apiVersion", "v1");
    }
    if let Some(resource) = at_mut(source, &["resourceFieldRef"]) {
        fill(resource, "divisor", "0");
    }
    if let Some(file) = at_mut(source, &["fileKeyRef"]) {
        fill(file, "optional", false);
    }
}

fn volume(volume: &mut Value) {
    let named = volume.as_object().into_iter().flatten();
    let source = named.filter(|(name, value)| *name != "name" && !value.is_null()).count();
    if source == 0 {
        fill(volume, "emptyDir", json!({}));
    }
    for kind in ["secret", "configMap", "projected", "downwardAPI"] {
        if let Some(source) = at_mut(volume, &[kind]) {
            fill(source, "defaultMode", 420);
        }
    }
    if let Some(path) = at_mut(volume, &["hostPath"])
        && !has(path, "type")
    {
        fill(path, "type", "");
    }
    for file in items_mut(volume, &["downwardAPI", "items"]) {
        selectors(file);
    }
    for source in items_mut(volume, &["projected", "sources"]) {
        if let Some(token) = at_mut(source, &["serviceAccountToken"]) {
            fill(token, "expirationSeconds", 3600);
        }
        for file in items_mut(source, &["downwardAPI", "items"]) {
            selectors(file);
        }
    }
    if let Some(image) = at_mut(volume, &["image"]) {
        let policy = if is_latest(text(image, &["reference"])) { "Always" } else { "IfNotPresent" };
        fill(image, "pullPolicy", policy);
    }
    if let Some(spec) = at_mut(volume, &["ephemeral", "volumeClaimTemplate", "spec"]) {
        fill(spec, "volumeMode", "Filesystem");
        round_amounts(spec, &["resources"]);
    }
}

/// Whether a reference means the tag `latest`: by name, or by naming neither tag nor digest.
fn is_latest(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    if image.is_empty() || image.contains('@') {
        return false;
    }
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// Amounts finer than a thousandth are rounded up.
pub(super) fn round_amounts(object: &mut Value, path: &[&str]) {
    let Some(resources) = at_mut(object, path) else { return };
    for list in ["limits", "requests"] {
        let amounts = at_mut(resources, &[list]).and_then(Value::as_object_mut);
        for amount in amounts.into_iter().flat_map(Map::values_mut) {
            if let Some(quantity) = amount.as_str().and_then(|text| Quantity::parse(text).ok()) {
                *amount = quantity.to_milli().to_string().into();
            }
        }
    }
}

fn requests_from_limits(container: &mut Value) {
    let Some(limits) = at(container, &["resources", "limits"]).and_then(Value::as_object) else {
        return;
    };
    let limits = limits.clone();
    if let Some(requests) = map_mut(container, &["resources", "requests"]) {
        for (name, amount) in limits {
            requests.entry(name).or_insert(amount);
        }
    }
}

fn host_ports(spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, &[list]) {
            for port in items_mut(container, &["ports"]) {
                if let Some(number) = integer(port, &["containerPort"]) {
                    fill_zero(port, "hostPort", number);
                }
            }
        }
    }
}
