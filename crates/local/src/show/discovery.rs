//! Which resources there are, in the form of today (one answer for all) and in the older one (an answer
//! for each version).

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::builtin::{Resource, Subresource};

/// `/apis` as one `APIGroupDiscoveryList`, or `/api` for the core group alone.
pub fn aggregated(resources: &[&Resource], core: bool) -> Value {
    let items: Vec<Value> = groups(resources)
        .into_iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let entries: Vec<Value> =
                        of(resources, group, version).into_iter().map(entry).collect();
                    json!({"version": version, "resources": entries, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn entry(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": response_kind(resource, None),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    names(resource, &mut entry);
    let subresources: Vec<Value> = resource
        .subresources
        .iter()
        .map(|sub| {
            json!({
                "subresource": sub.name,
                "responseKind": response_kind(resource, Some(sub)),
                "verbs": sub.verbs,
            })
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = Value::Array(subresources);
    }
    entry
}

/// Built-in kinds of the same version are named without it, custom kinds with it.
fn response_kind(resource: &Resource, sub: Option<&Subresource>) -> Value {
    let own = (&*resource.group, &*resource.version, &*resource.kind);
    let (group, version, kind) = sub.and_then(|sub| sub.kind).unwrap_or(own);
    if !resource.custom && (group, version) == (own.0, own.1) {
        return json!({"group": "", "version": "", "kind": kind});
    }
    json!({"group": group, "version": version, "kind": kind})
}

fn names(resource: &Resource, entry: &mut Value) {
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
}

/// `/api`; the address is where this server listens.
pub fn api_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`.
pub fn api_group_list(resources: &[&Resource]) -> Value {
    let named = groups(resources).into_iter().filter(|(group, _)| !group.is_empty());
    let groups: Vec<Value> = named.map(|(group, versions)| describe(group, &versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`; none where nothing of the group is served.
pub fn api_group(resources: &[&Resource], group: &str) -> Option<Value> {
    let (group, versions) = groups(resources).into_iter().find(|(name, _)| *name == group)?;
    let mut described = describe(group, &versions);
    described["kind"] = json!("APIGroup");
    described["apiVersion"] = json!("v1");
    Some(described)
}

fn describe(group: &str, versions: &[&str]) -> Value {
    let version =
        |version: &&str| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    let all: Vec<Value> = versions.iter().map(version).collect();
    json!({"name": group, "versions": all, "preferredVersion": versions.first().map(version)})
}

/// `/apis/<group>/<version>` or `/api/v1`; none where nothing of it is served.
pub fn api_resource_list(resources: &[&Resource], group: &str, version: &str) -> Option<Value> {
    let of_version = of(resources, group, version);
    let first = *of_version.first()?;
    let mut entries = Vec::new();
    for resource in of_version {
        let mut entry = json!({
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": resource.verbs,
        });
        names(resource, &mut entry);
        entries.push(entry);
        entries.extend(resource.subresources.iter().map(|sub| sub_entry(resource, sub)));
    }
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": first.api_version(),
        "resources": entries,
    }))
}

fn sub_entry(resource: &Resource, sub: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", resource.plural, sub.name),
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": sub.verbs,
    });
    if let Some((group, version, kind)) = sub.kind {
        entry["kind"] = json!(kind);
        if (group, version) != (&*resource.group, &*resource.version) {
            entry["group"] = json!(group);
            entry["version"] = json!(version);
        }
    }
    entry
}

/// In order of their plurals.
fn of<'a>(resources: &[&'a Resource], group: &str, version: &str) -> Vec<&'a Resource> {
    let same = |resource: &&&Resource| resource.group == group && resource.version == version;
    let mut found: Vec<&Resource> = resources.iter().filter(same).copied().collect();
    found.sort_by(|a, b| a.plural.cmp(&b.plural));
    found
}

/// Groups in the order of their first resource, each with its versions, the best one first.
fn groups<'a>(resources: &[&'a Resource]) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for resource in resources {
        let (group, version) = (&*resource.group, &*resource.version);
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, versions)) if versions.contains(&version) => {}
            Some((_, versions)) => versions.push(version),
            None => groups.push((group, vec![version])),
        }
    }
    for (_, versions) in &mut groups {
        versions.sort_by_key(|version| priority(version));
    }
    groups
}

/// `v2` before `v1` before `v1beta1` before `v1alpha1` before anything else.
fn priority(version: &str) -> impl Ord + use<> {
    let parts = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: u64 = rest.get(..digits)?.parse().ok()?;
        let tail = rest.get(digits..)?;
        let numbered = |name: &str| match tail.strip_prefix(name)? {
            "" => Some(0),
            number => number.parse::<u64>().ok(),
        };
        match tail {
            "" => Some((2, major, 0)),
            tail if tail.starts_with("beta") => Some((1, major, numbered("beta")?)),
            tail if tail.starts_with("alpha") => Some((0, major, numbered("alpha")?)),
            _ => None,
        }
    };
    let known = parts();
    (known.is_none(), Reverse(known), version.to_owned())
}
