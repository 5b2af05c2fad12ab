//! Children as they stand in the spec of a Widget: small, but complete enough for the API server.

use serde_json::{Value, json};

pub(super) fn config_map(name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name }, "data": { "key": value } })
}

/// The API server refuses such a key.
pub(super) fn invalid_config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name }, "data": { "no key": "x" } })
}

pub(super) fn service_account(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name } })
}

pub(super) fn role(name: &str) -> Value {
    json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": name },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] }] })
}

pub(super) fn role_binding(name: &str, role: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({ "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": group, "kind": "Role", "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": "a", "namespace": "default" }] })
}

pub(super) fn claim(name: &str, size: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": name },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": size } },
        } })
}

pub(super) fn service(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": name },
        "spec": { "selector": { "app": name }, "ports": [{ "name": "http", "port": 80 }] } })
}

pub(super) fn deployment(name: &str) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{
                    "name": "main", "image": "example.com/main:1", "args": ["--port", "80"],
                    "ports": [{ "containerPort": 80 }],
                    "env": [{ "name": "A", "value": "b" }],
                    "resources": { "requests": { "cpu": "1000m", "memory": "1024Mi" } },
                }] },
            },
        } })
}

pub(super) fn job(name: &str, image: &str) -> Value {
    json!({ "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": name },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never",
            "containers": [{ "name": "main", "image": format!("example.com/{image}") }],
        } } } })
}

/// With labels or annotations beside the name.
pub(super) fn with(mut object: Value, field: &str, value: Value) -> Value {
    object["metadata"][field] = value;
    object
}
