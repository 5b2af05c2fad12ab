//! What a writer should hear of, although it is accepted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    Resource,
    causes::Path,
    object::{at, integer, items, text},
    unsupported,
    validate::names,
};

/// Warnings about an object as it is to be stored; `old` is what it was before.
pub fn warnings(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<String> {
    let is_pod = resource.group.is_empty() && resource.kind == "Pod";
    // Pods are changed by programs, which do not listen.
    if old.is_some_and(|old| is_pod || wanted(old) == wanted(new)) {
        return Vec::new();
    }
    let mut warnings = match (&*resource.group, &*resource.kind) {
        ("", "Pod") | ("apps", "Deployment" | "ReplicaSet") | ("batch", "Job") => {
            of_workload(is_pod, new, old)
        }
        _ => Vec::new(),
    };
    warnings.extend(unsupported::warnings(resource, new));
    warnings.extend(unsupported::users(resource, new, unsupported::Runner::this_process()));
    warnings
}

/// All but what every object has.
fn wanted(object: &Value) -> Vec<(&String, &Value)> {
    let own = ["apiVersion", "kind", "metadata", "status"];
    let fields = object.as_object().into_iter().flatten();
    fields.filter(|(name, _)| !own.contains(&name.as_str())).collect()
}

fn of_workload(is_pod: bool, new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() {
        let used = if is_pod { "the Pod's hostname" } else { "Pod names and hostnames" };
        warnings.extend(odd_name(text(new, &["metadata", "name"]), used));
    }
    let spec: &[&str] = if is_pod { &["spec"] } else { &["spec", "template", "spec"] };
    if let Some(pod) = at(new, spec) {
        of_pod(pod, &Path::new(spec.join(".")), &mut warnings);
    }
    warnings
}

fn odd_name(name: &str, used: &str) -> Option<String> {
    let problems = names::label(name);
    (!problems.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {used}, which can result in surprising behavior; a DNS \
             label is recommended: [{}]",
            problems.join(" ")
        )
    })
}

fn of_pod(pod: &Value, path: &Path, warnings: &mut Vec<String>) {
    for (list, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut seen = BTreeSet::new();
        for (index, item) in items(pod, &[list]).iter().enumerate() {
            if !seen.insert(text(item, &[key])) {
                let path = path.child(list).index(index).child(key);
                warnings.push(format!("{path}: duplicate {key} {:?}", text(item, &[key])));
            }
        }
    }
    let containers: Vec<(Path, &Value)> = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| {
            let all = items(pod, &[list]).iter().enumerate();
            all.map(move |(index, container)| (path.child(list).index(index), container))
        })
        .collect();
    for (path, container) in &containers {
        fractions(container, path, warnings);
        hidden_variables(container, path, warnings);
    }
    let ports: Vec<(Path, &Value)> = containers
        .iter()
        .flat_map(|(path, container)| {
            let all = items(container, &["ports"]).iter().enumerate();
            all.map(move |(index, port)| (path.child("ports").index(index), port))
        })
        .collect();
    shared_ports(&ports, warnings);
    shared_names(&ports, warnings);
}

/// Half a byte cannot be had.
fn fractions(container: &Value, path: &Path, warnings: &mut Vec<String>) {
    for resource in ["memory", "ephemeral-storage"] {
        for bound in ["limits", "requests"] {
            let amount = text(container, &["resources", bound, resource]);
            // In their canonical form only fractions are written so.
            if amount.ends_with(['m', 'u', 'n']) || amount.contains("e-") {
                let path = path.child("resources").child(bound).key(resource);
                warnings.push(format!(
                    "{path}: fractional byte value {amount:?} is invalid, must be an integer"
                ));
            }
        }
    }
}

/// A variable may be set again only on top of itself.
fn hidden_variables(container: &Value, path: &Path, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, variable) in items(container, &["env"]).iter().enumerate() {
        let (name, value) = (text(variable, &["name"]), text(variable, &["value"]));
        let itself = format!("$({name})");
        let builds_on = value != itself && value.contains(&itself);
        if !seen.insert(name) && (at(variable, &["valueFrom"]).is_some() || !builds_on) {
            let path = path.child("env").index(index);
            warnings.push(format!(
                "{path}: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

fn shared_ports(ports: &[(Path, &Value)], warnings: &mut Vec<String>) {
    for (at, (path, port)) in ports.iter().enumerate() {
        let (address, number) = on_host(port);
        for (other_path, other) in
            ports[..at].iter().filter(|(_, other)| in_pod(other) == in_pod(port))
        {
            let (other_address, other_number) = on_host(other);
            let how = if (address, number) == (other_address, other_number) {
                "duplicate"
            } else if number == 0 || other_number == 0 {
                "overlapping"
            } else if number == other_number && address.is_empty() != other_address.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            warnings.push(format!("{path}: {how} port definition with {other_path}"));
        }
    }
}

fn in_pod(port: &Value) -> (Option<i64>, &str) {
    (integer(port, &["containerPort"]), text(port, &["protocol"]))
}

fn on_host(port: &Value) -> (&str, i64) {
    (text(port, &["hostIP"]), integer(port, &["hostPort"]).unwrap_or_default())
}

fn shared_names(ports: &[(Path, &Value)], warnings: &mut Vec<String>) {
    let mut seen: BTreeMap<&str, &Path> = BTreeMap::new();
    for (path, port) in ports {
        let name = text(port, &["name"]);
        if name.is_empty() {
            continue;
        }
        match seen.get(name) {
            Some(first) => warnings.push(format!(
                "{path}: duplicate port name {name:?} with {first}, services and probes that select \
                 ports by name will use {first}"
            )),
            None => {
                seen.insert(name, path);
            }
        }
    }
}
