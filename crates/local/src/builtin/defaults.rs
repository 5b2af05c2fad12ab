//! What users leave out and every reader may count on. Filling in twice changes nothing.

mod pod;
mod workload;

use serde_json::{Value, json};

use super::{
    Resource,
    object::{at, at_mut, fill, has, items, items_mut, map_mut, text},
};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Fills in what an object of this resource leaves out.
pub fn default(resource: &Resource, object: &mut Value) {
    match (&*resource.group, &*resource.kind) {
        ("", "Pod") => pod::pod(object),
        ("", "Service") => service(object),
        ("", "Secret") => fill(object, "type", "Opaque"),
        ("", "Namespace") => namespace(object),
        ("", "PersistentVolumeClaim") => claim(object),
        ("", "PersistentVolume") => volume(object),
        ("", "Node") => node(object),
        ("", "Endpoints") => endpoints(object),
        ("apps", "Deployment") => workload::deployment(object),
        ("apps", "ReplicaSet") => workload::replica_set(object),
        ("batch", "Job") => workload::job(object),
        ("autoscaling", "HorizontalPodAutoscaler") => workload::autoscaler(object),
        ("discovery.k8s.io", "EndpointSlice") => endpoint_slice(object),
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => binding(object),
        ("storage.k8s.io", "StorageClass") => {
            fill(object, "reclaimPolicy", "Delete");
            fill(object, "volumeBindingMode", "Immediate");
        }
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("scheduling.k8s.io", "PriorityClass") => {
            fill(object, "preemptionPolicy", "PreemptLowerPriority");
        }
        _ => {}
    }
}

fn service(object: &mut Value) {
    if let Some(spec) = at_mut(object, &["spec"]) {
        fill(spec, "sessionAffinity", "None");
        session_affinity(spec);
        fill(spec, "type", "ClusterIP");
        service_ports(spec);
        let kind = text(spec, &["type"]).to_owned();
        let reaches_out = matches!(&*kind, "NodePort" | "LoadBalancer")
            || (kind == "ClusterIP" && !items(spec, &["externalIPs"]).is_empty());
        if reaches_out {
            fill(spec, "externalTrafficPolicy", "Cluster");
        }
        if kind != "ExternalName" {
            fill(spec, "internalTrafficPolicy", "Cluster");
        }
        if kind == "LoadBalancer" {
            fill(spec, "allocateLoadBalancerNodePorts", true);
        }
    }
    map_mut(object, &["status", "loadBalancer"]);
}

fn session_affinity(spec: &mut Value) {
    let client = text(spec, &["sessionAffinity"]) == "ClientIP";
    let timeout = at(spec, &["sessionAffinityConfig", "clientIP", "timeoutSeconds"]).is_some();
    let Some(map) = spec.as_object_mut() else { return };
    if !client {
        map.remove("sessionAffinityConfig");
    } else if !timeout {
        let config = json!({ "clientIP": { "timeoutSeconds": 10800 } });
        map.insert("sessionAffinityConfig".to_owned(), config);
    }
}

fn service_ports(spec: &mut Value) {
    for port in items_mut(spec, &["ports"]) {
        fill(port, "protocol", "TCP");
        let own = port.get("port").cloned().unwrap_or(0.into());
        if at(port, &["targetPort"]) == Some(&Value::from(0))
            && let Some(map) = port.as_object_mut()
        {
            map.remove("targetPort");
        }
        fill(port, "targetPort", own);
    }
}

fn namespace(object: &mut Value) {
    let name = text(object, &["metadata", "name"]).to_owned();
    if !name.is_empty()
        && let Some(labels) = map_mut(object, &["metadata", "labels"])
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
    if map_mut(object, &["status"]).is_some()
        && let Some(status) = at_mut(object, &["status"])
    {
        fill(status, "phase", "Active");
    }
}

fn claim(object: &mut Value) {
    if let Some(spec) = at_mut(object, &["spec"]) {
        fill(spec, "volumeMode", "Filesystem");
        pod::round_amounts(spec, &["resources"]);
    }
    if map_mut(object, &["status"]).is_some()
        && let Some(status) = at_mut(object, &["status"])
    {
        fill(status, "phase", "Pending");
    }
}

fn volume(object: &mut Value) {
    if let Some(spec) = at_mut(object, &["spec"]) {
        fill(spec, "persistentVolumeReclaimPolicy", "Retain");
        fill(spec, "volumeMode", "Filesystem");
        if let Some(path) = at_mut(spec, &["hostPath"])
            && !has(path, "type")
        {
            fill(path, "type", "");
        }
    }
    if map_mut(object, &["status"]).is_some()
        && let Some(status) = at_mut(object, &["status"])
    {
        fill(status, "phase", "Pending");
    }
}

fn node(object: &mut Value) {
    if let Some(status) = at_mut(object, &["status"])
        && let Some(capacity) = at(status, &["capacity"]).cloned()
    {
        fill(status, "allocatable", capacity);
    }
}

fn endpoints(object: &mut Value) {
    for subset in items_mut(object, &["subsets"]) {
        for port in items_mut(subset, &["ports"]) {
            fill(port, "protocol", "TCP");
        }
    }
}

fn endpoint_slice(object: &mut Value) {
    for port in items_mut(object, &["ports"]) {
        if !has(port, "name") {
            fill(port, "name", "");
        }
        if !has(port, "protocol") {
            fill(port, "protocol", "TCP");
        }
    }
}

fn binding(object: &mut Value) {
    if let Some(role) = at_mut(object, &["roleRef"]) {
        fill(role, "apiGroup", RBAC);
    }
    for subject in items_mut(object, &["subjects"]) {
        if matches!(text(subject, &["kind"]), "User" | "Group") {
            fill(subject, "apiGroup", RBAC);
        }
    }
}

fn network_policy(object: &mut Value) {
    let Some(spec) = at_mut(object, &["spec"]) else { return };
    if items(spec, &["policyTypes"]).is_empty() {
        let mut types = vec!["Ingress"];
        if !items(spec, &["egress"]).is_empty() {
            types.push("Egress");
        }
        if let Some(map) = spec.as_object_mut() {
            map.insert("policyTypes".to_owned(), types.into());
        }
    }
    for direction in ["ingress", "egress"] {
        for rule in items_mut(spec, &[direction]) {
            for port in items_mut(rule, &["ports"]) {
                fill(port, "protocol", "TCP");
            }
        }
    }
}
