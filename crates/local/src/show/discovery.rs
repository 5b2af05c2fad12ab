//! Which resources there are.

use serde_json::{Value, json};

use crate::builtin::Resource;

/// All groups at once, of `/api` or of `/apis`.
pub fn aggregated(resources: &[&Resource], core: bool) -> Value {
    let mut groups: Vec<(&str, Vec<(&str, Vec<Value>)>)> = Vec::new();
    for resource in resources.iter().filter(|each| each.group.is_empty() == core) {
        let at = groups.iter().position(|(group, _)| *group == resource.group);
        let at = at.unwrap_or_else(|| {
            groups.push((&resource.group, Vec::new()));
            groups.len() - 1
        });
        let versions = &mut groups[at].1;
        let at = versions.iter().position(|(version, _)| *version == resource.version);
        let at = at.unwrap_or_else(|| {
            versions.push((&resource.version, Vec::new()));
            versions.len() - 1
        });
        versions[at].1.push(discovered(resource));
    }
    let items: Vec<_> = groups
        .into_iter()
        .map(|(group, versions)| {
            let versions: Vec<_> = versions
                .into_iter()
                .map(|(version, resources)| {
                    json!({"version": version, "resources": resources, "freshness": "Current"})
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

fn discovered(resource: &Resource) -> Value {
    let kind = |kind: Option<(&str, &str, &str)>| match kind {
        Some((group, version, kind)) => json!({"group": group, "version": version, "kind": kind}),
        None => json!({"group": if resource.custom { &*resource.group } else { "" }, "version": if resource.custom { &*resource.version } else { "" }, "kind": resource.kind}),
    };
    let subresources: Vec<_> = resource
        .subresources
        .iter()
        .map(|sub| json!({"subresource": sub.name, "responseKind": kind(sub.kind), "verbs": sub.verbs}))
        .collect();
    json!({
        "resource": resource.plural,
        "responseKind": kind(None),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
        "shortNames": resource.short_names,
        "categories": resource.categories,
        "subresources": subresources,
    })
}
