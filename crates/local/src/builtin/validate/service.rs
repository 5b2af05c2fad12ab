//! Services and what stands behind them.

use std::{collections::BTreeSet, net::IpAddr};

use serde_json::{Value, json};

use super::{container, immutable, meta, names};
use crate::{
    builtin::{
        causes::{Causes, Path},
        is_open,
        object::{at, integer, items, text},
    },
    error::CauseReason,
};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const FAMILIES: &[&str] = &["IPv4", "IPv6"];
const POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];

pub(super) fn service(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("spec");
    let none = Value::Null;
    let spec = at(object, &["spec"]).unwrap_or(&none);
    // Addresses are given out before anything else is looked at.
    let earlier = causes.0.len();
    addresses(spec, &path, causes);
    if causes.0.len() == earlier {
        families(spec, old.and_then(|old| at(old, &["spec"])), &path, causes);
    }
    if causes.0.len() > earlier {
        causes.0.drain(..earlier);
        return;
    }
    if let Some(old) = old {
        addresses_kept(spec, at(old, &["spec"]).unwrap_or(&none), &path, causes);
    }
    let kind = text(spec, &["type"]);
    let list = items(spec, &["ports"]);
    if list.is_empty() && !is_headless(spec) && kind != "ExternalName" {
        causes.required(&path.child("ports"), "");
    }
    let mut taken = BTreeSet::new();
    for (index, port) in list.iter().enumerate() {
        let path = path.child("ports").index(index);
        let name = text(port, &["name"]);
        if name.is_empty() && list.len() > 1 {
            causes.required(&path.child("name"), "");
        }
        if !name.is_empty() {
            for problem in names::label(name) {
                causes.invalid(&path.child("name"), name, &problem);
            }
            if !taken.insert(name) {
                causes.duplicate(&path.child("name"), name);
            }
        }
        self::port(port, &path, causes);
    }
    meta::labels(spec, &["selector"], &path.child("selector"), causes);
    container::one_of(spec, "sessionAffinity", &["ClientIP", "None"], &path, causes);
    let types = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    container::one_of(spec, "type", types, &path, causes);
    numbers(list, kind, &path.child("ports"), causes);
}

fn port(port: &Value, path: &Path, causes: &mut Causes) {
    let number = integer(port, &["port"]).unwrap_or_default();
    container::port(number, &path.child("port"), causes);
    container::one_of(port, "protocol", PROTOCOLS, path, causes);
    match at(port, &["targetPort"]) {
        Some(Value::String(name)) => {
            for problem in names::port_name(name) {
                causes.invalid(&path.child("targetPort"), name.as_str(), &problem);
            }
        }
        target => {
            let number = target.and_then(Value::as_i64).unwrap_or_default();
            container::port(number, &path.child("targetPort"), causes);
        }
    }
    optional(port, "appProtocol", names::qualified, path, causes);
}

fn numbers(list: &[Value], kind: &str, path: &Path, causes: &mut Causes) {
    for (index, port) in list.iter().enumerate() {
        if kind == "ClusterIP" && integer(port, &["nodePort"]).unwrap_or_default() != 0 {
            let detail = "may not be used when `type` is 'ClusterIP'";
            causes.forbidden(&path.index(index).child("nodePort"), detail);
        }
    }
    let mut taken = BTreeSet::new();
    for (index, port) in list.iter().enumerate() {
        let protocol = text(port, &["protocol"]);
        let number = integer(port, &["port"]).unwrap_or_default();
        if !taken.insert((protocol, number)) {
            let message = format!(
                "Duplicate value: {{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\
                 \"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            causes.push(CauseReason::Duplicate, &path.index(index), message);
        }
    }
}

fn is_headless(spec: &Value) -> bool {
    items(spec, &["clusterIPs"]) == ["None"]
}

/// What addresses and their families must be like, whoever gives them out.
fn addresses(spec: &Value, path: &Path, causes: &mut Causes) {
    if text(spec, &["type"]) == "ExternalName" {
        return;
    }
    let first = text(spec, &["clusterIP"]);
    let list = items(spec, &["clusterIPs"]);
    let field = path.child("clusterIPs");
    match (first, list.first().map(|item| item.as_str().unwrap_or_default())) {
        ("", None) => {}
        ("", Some(_)) => {
            let detail = "must be empty when `clusterIP` is not specified";
            causes.invalid(&field, json!(list), detail);
        }
        (_, None) => causes.required(&field, ""),
        (first, Some(other)) if first != other => {
            causes.invalid(&field, json!(list), "first value must match `clusterIP`");
        }
        _ => {}
    }
    known_families(spec, path, causes);
    if let Some(parsed) = each_address(list, &field, causes) {
        matching(list, &parsed, items(spec, &["ipFamilies"]), &field, causes);
    }
}

fn known_families(spec: &Value, path: &Path, causes: &mut Causes) {
    let field = path.child("ipFamilies");
    let mut seen = BTreeSet::new();
    for (index, family) in items(spec, &["ipFamilies"]).iter().enumerate() {
        let family = family.as_str().unwrap_or_default();
        if !FAMILIES.contains(&family) {
            causes.not_supported(&field.index(index), family, FAMILIES);
        }
        if !seen.insert(family) {
            causes.duplicate(&field.index(index), family);
        }
    }
    let policy = text(spec, &["ipFamilyPolicy"]);
    if !policy.is_empty() && !POLICIES.contains(&policy) {
        causes.not_supported(&path.child("ipFamilyPolicy"), policy, POLICIES);
    }
}

/// The addresses, of which a headless service has none; `None` if not all are such.
fn each_address(list: &[Value], field: &Path, causes: &mut Causes) -> Option<Vec<IpAddr>> {
    let mut parsed = Some(Vec::new());
    for (index, address) in list.iter().enumerate() {
        let address = address.as_str().unwrap_or_default();
        if index == 0 && address == "None" {
            if list.len() > 1 {
                causes.invalid(field, json!(list), "'None' must be the first and only value");
                parsed = None;
            }
        } else if let Ok(address) = address.parse() {
            parsed.iter_mut().for_each(|parsed| parsed.push(address));
        } else {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            causes.invalid(&field.index(index), address, detail);
            parsed = None;
        }
    }
    if list.len() > 2 {
        causes.invalid(field, json!(list), "may only hold up to 2 values");
    }
    parsed
}

fn matching(
    list: &[Value],
    parsed: &[IpAddr],
    families: &[Value],
    field: &Path,
    causes: &mut Causes,
) {
    let is_mixed = parsed.iter().any(IpAddr::is_ipv4) && parsed.iter().any(IpAddr::is_ipv6);
    if parsed.len() > 1 && !is_mixed {
        let detail = "may specify no more than one IP for each IP family";
        causes.invalid(field, json!(list), detail);
    }
    for (index, (address, family)) in parsed.iter().zip(families).enumerate() {
        let family = family.as_str().unwrap_or_default();
        if FAMILIES.contains(&family) && family != family_of(address) {
            let detail =
                format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            causes.invalid(&field.index(index), address.to_string(), &detail);
        }
    }
}

fn family_of(address: &IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// There is one family of addresses here. What nobody knows the addresses of may still have both.
fn families(spec: &Value, old: Option<&Value>, path: &Path, causes: &mut Causes) {
    if text(spec, &["type"]) == "ExternalName" {
        return;
    }
    let families = items(spec, &["ipFamilies"]);
    let policy = text(spec, &["ipFamilyPolicy"]);
    let list = items(spec, &["clusterIPs"]);
    let field = path.child("ipFamilyPolicy");
    let before = old.map(|old| items(old, &["ipFamilies"]).len()).unwrap_or_default();
    let earlier = causes.0.len();
    for (count, what) in [(list.len(), "cluster IPs"), (families.len(), "IP families")] {
        if policy == "SingleStack" && count > 1 {
            let detail = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            causes.invalid(&field, policy, &detail);
        }
    }
    if policy != "SingleStack" && (1..before).contains(&families.len()) {
        let detail = "must be 'SingleStack' to release the secondary IP family";
        causes.invalid(&field, policy, detail);
    }
    for (index, address) in list.iter().enumerate().skip(families.len()) {
        let address = address.as_str().and_then(|address| address.parse::<IpAddr>().ok());
        if address.is_some_and(|address| address.is_ipv6()) {
            let field = path.child("clusterIPs").index(index);
            causes.invalid(&field, json!(list), "IPv6 is not configured on this cluster");
        }
    }
    if causes.0.len() > earlier || is_open(spec) {
        return;
    }
    if policy == "RequireDualStack" {
        causes.invalid(&field, policy, "this cluster is not configured for dual-stack services");
    }
    for (index, family) in families.iter().enumerate().filter(|(_, family)| *family != "IPv4") {
        let field = path.child("ipFamilies").index(index);
        causes.invalid(&field, family.clone(), "not configured on this cluster");
    }
}

fn addresses_kept(spec: &Value, old: &Value, path: &Path, causes: &mut Causes) {
    let external = [spec, old].iter().any(|spec| text(spec, &["type"]) == "ExternalName");
    if external || (is_headless(spec) && is_headless(old)) {
        return;
    }
    let (new, old) = (items(spec, &["clusterIPs"]), items(old, &["clusterIPs"]));
    let field = path.child("clusterIPs");
    if new.is_empty() && !old.is_empty() {
        causes.invalid(&field.index(0), json!(new), "primary clusterIP can not be unset");
        return;
    }
    for (index, (new_one, old_one)) in new.iter().zip(old).enumerate() {
        if new_one != old_one {
            causes.invalid(&field.index(index), json!(new), "may not change once set");
        }
    }
}

pub(super) fn endpoint_slice(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("");
    let types = &["FQDN", "IPv4", "IPv6"];
    container::one_of(object, "addressType", types, &path, causes);
    for (index, endpoint) in items(object, &["endpoints"]).iter().enumerate() {
        if items(endpoint, &["addresses"]).is_empty() {
            let path = Path::new("endpoints").index(index).child("addresses");
            causes.required(&path, "must contain at least 1 address");
        }
        // Loopback addresses are let through: on a local node every pod has one.
        if text(object, &["addressType"]) != "FQDN" {
            for (place, value) in items(endpoint, &["addresses"]).iter().enumerate() {
                let path = Path::new("endpoints").index(index).child("addresses").index(place);
                address(value.as_str().unwrap_or_default(), &path, causes);
            }
        }
    }
    if let Some(old) = old {
        immutable(object, old, &["addressType"], causes);
    }
}

pub(super) fn endpoints(object: &Value, causes: &mut Causes) {
    for (index, subset) in items(object, &["subsets"]).iter().enumerate() {
        let path = Path::new("subsets").index(index);
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| items(subset, &[*list]).is_empty()) {
            causes.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for list in lists {
            for (index, address) in items(subset, &[list]).iter().enumerate() {
                endpoint_address(address, &path.child(list).index(index), causes);
            }
        }
        let ports = items(subset, &["ports"]);
        for (index, port) in ports.iter().enumerate() {
            endpoint_port(port, ports.len() > 1, &path.child("ports").index(index), causes);
        }
    }
}

fn endpoint_address(value: &Value, path: &Path, causes: &mut Causes) {
    let ip = text(value, &["ip"]);
    address(ip, &path.child("ip"), causes);
    optional(value, "hostname", names::label, path, causes);
    optional(value, "nodeName", names::subdomain, path, causes);
    // Kubernetes says it of what is no address, too.
    let problem = ip.parse().map_or(Some("must be a valid IP address"), special);
    if let Some(problem) = problem {
        causes.invalid(&path.child("ip"), ip, problem);
    }
}

/// What no endpoint may have. Loopback addresses are let through: on a local node every pod has one.
fn special(ip: IpAddr) -> Option<&'static str> {
    let (links, groups) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), matches!(ip.octets(), [224, 0, 0, _])),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    match ip {
        ip if ip.is_unspecified() => Some("may not be unspecified (0.0.0.0)"),
        _ if links => Some("may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        _ if groups => {
            Some("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
        }
        _ => None,
    }
}

fn endpoint_port(port: &Value, needs_name: bool, path: &Path, causes: &mut Causes) {
    if needs_name && text(port, &["name"]).is_empty() {
        causes.required(&path.child("name"), "");
    }
    optional(port, "name", names::label, path, causes);
    let number = integer(port, &["port"]).unwrap_or_default();
    container::port(number, &path.child("port"), causes);
    container::one_of(port, "protocol", PROTOCOLS, path, causes);
    optional(port, "appProtocol", names::qualified, path, causes);
}

/// A field that has to be right where it is set.
fn optional(
    object: &Value,
    field: &str,
    check: fn(&str) -> Vec<String>,
    path: &Path,
    causes: &mut Causes,
) {
    let value = text(object, &[field]);
    if !value.is_empty() {
        for problem in check(value) {
            causes.invalid(&path.child(field), value, &problem);
        }
    }
}

fn address(address: &str, path: &Path, causes: &mut Causes) {
    if address.parse::<IpAddr>().is_err() {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        causes.invalid(path, address, detail);
    }
}
