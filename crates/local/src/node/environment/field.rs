//! Facts about a pod that it may ask for.

use std::{collections::BTreeMap, fmt::Write};

use k8s_openapi::{
    api::core::v1::{Container, Pod, ResourceFieldSelector},
    apimachinery::pkg::api::resource::Quantity as Written,
};

use super::Facts;
use crate::{builtin::quantity::Quantity, node::sources::containers};

/// A field of the pod. The errors are Kubernetes' own.
pub(in crate::node) fn pod_field(
    pod: &Pod,
    path: &str,
    facts: Facts<'_>,
) -> Result<String, String> {
    let meta = &pod.metadata;
    if let Some((map, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        let map = match map {
            "metadata.labels" => &meta.labels,
            "metadata.annotations" => &meta.annotations,
            _ => return Err(format!("fieldPath {path:?} does not support subscript")),
        };
        return Ok(map.as_ref().and_then(|map| map.get(key)).cloned().unwrap_or_default());
    }
    let account = || pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
    Ok(match path {
        "metadata.name" => meta.name.clone().unwrap_or_default(),
        "metadata.namespace" => meta.namespace.clone().unwrap_or_default(),
        "metadata.uid" => meta.uid.clone().unwrap_or_default(),
        "metadata.labels" => map_lines(meta.labels.as_ref()),
        "metadata.annotations" => map_lines(meta.annotations.as_ref()),
        "spec.nodeName" => facts.node_name.to_owned(),
        "spec.serviceAccountName" => account().unwrap_or_default(),
        "status.hostIP" | "status.hostIPs" => facts.host_ip.to_owned(),
        "status.podIP" | "status.podIPs" => facts.pod_ip.to_owned(),
        _ => return Err(format!("unsupported fieldPath: {path}")),
    })
}

/// Lines of `key="value"`, without an end of line after the last.
fn map_lines(map: Option<&BTreeMap<String, String>>) -> String {
    let lines = map.into_iter().flatten().map(|(key, value)| format!("{key}={}", quoted(value)));
    lines.collect::<Vec<_>>().join("\n")
}

/// As Go quotes strings.
fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for letter in value.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\u{7}' => text.push_str("\\a"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{b}' => text.push_str("\\v"),
            letter if (letter as u32) < 0x20 || letter as u32 == 0x7f => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\x{:02x}", letter as u32);
            }
            letter => text.push(letter),
        }
    }
    text.push('"');
    text
}

/// A request or limit, divided and rounded up. `own` is the container that asks, which need not name
/// itself. Limits that are not set are those of the node.
pub(in crate::node) fn resource(
    pod: &Pod,
    own: Option<&Container>,
    field: &ResourceFieldSelector,
    allocatable: &BTreeMap<String, Written>,
) -> Result<String, String> {
    let container = match (field.container_name.as_deref().unwrap_or_default(), own) {
        ("", Some(own)) => own,
        (name, _) => containers(pod)
            .find(|container| container.name == name)
            .ok_or_else(|| format!("container {name} not found"))?,
    };
    let unsupported = || format!("unsupported container resource : {}", field.resource);
    let (list, name) = field.resource.split_once('.').ok_or_else(unsupported)?;
    if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !name.starts_with("hugepages-") {
        return Err(unsupported());
    }
    let resources = container.resources.as_ref();
    let amount = match list {
        "limits" => {
            let own = resources.and_then(|all| all.limits.as_ref()?.get(name));
            let own = own.map(parse).transpose()?.filter(|amount| amount.nano() != 0);
            let node = allocatable.get(name).filter(|_| !name.starts_with("hugepages-"));
            own.map_or_else(|| node.map(parse).transpose(), |own| Ok(Some(own)))?
        }
        "requests" => {
            resources.and_then(|all| all.requests.as_ref()?.get(name)).map(parse).transpose()?
        }
        _ => return Err(unsupported()),
    };
    // Thousandths of a processor count, parts of a byte do not.
    let unit = if name == "cpu" { 1_000_000 } else { 1_000_000_000 };
    let whole = |amount: Quantity| rounded_up(amount.nano(), unit);
    let divisor = field.divisor.as_ref().map(parse).transpose()?;
    let divisor = divisor.map_or(0, whole);
    let divisor = if divisor == 0 { 1_000_000_000 / unit } else { divisor };
    Ok(rounded_up(amount.map_or(0, whole), divisor).to_string())
}

fn rounded_up(amount: i128, by: i128) -> i128 {
    let rest = amount.rem_euclid(by);
    amount.div_euclid(by) + i128::from(rest != 0)
}

fn parse(written: &Written) -> Result<Quantity, String> {
    Quantity::parse(&written.0).map_err(|error| error.to_string())
}
