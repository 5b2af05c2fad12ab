//! Stands in for a gateway controller, which the demo does not run: routes are accepted as soon as
//! they are written, and nothing is routed.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Cluster, NAMESPACE, say};

/// Accepts every route whose newest generation has not been answered.
pub(super) fn answer(cluster: &Cluster) -> Result<()> {
    for route in cluster.get("httproutes")?.iter().filter(|route| !is_answered(route)) {
        let name = route["metadata"]["name"].as_str().unwrap_or_default();
        let generation = &route["metadata"]["generation"];
        say(&format!(
            "route {name}: no gateway runs here; accepting generation {generation} in its place"
        ));
        let status = accepted(route).to_string();
        cluster.kubectl(&[
            "patch",
            "httproute",
            name,
            "--namespace",
            NAMESPACE,
            "--subresource=status",
            "--type=merge",
            "--patch",
            &status,
        ])?;
    }
    Ok(())
}

fn is_answered(route: &Value) -> bool {
    let wanted = route["spec"]["parentRefs"].as_array().map_or(0, Vec::len);
    let parents = route["status"]["parents"].as_array().map_or(&[][..], Vec::as_slice);
    let current = |parent: &&Value| {
        parent["conditions"][0]["observedGeneration"] == route["metadata"]["generation"]
    };
    parents.iter().filter(current).count() == wanted
}

fn accepted(route: &Value) -> Value {
    let condition = |type_: &str, reason: &str| {
        json!({
            "type": type_,
            "status": "True",
            "reason": reason,
            "message": "written by the demo; no gateway runs",
            "observedGeneration": route["metadata"]["generation"],
            "lastTransitionTime": route["metadata"]["creationTimestamp"],
        })
    };
    let parents = route["spec"]["parentRefs"].as_array().map_or(&[][..], Vec::as_slice);
    let parent = |reference: &Value| {
        json!({
            "parentRef": reference,
            "controllerName": "windlass.dev/demo",
            "conditions": [
                condition("Accepted", "Accepted"),
                condition("ResolvedRefs", "ResolvedRefs"),
            ],
        })
    };
    json!({ "status": { "parents": parents.iter().map(parent).collect::<Vec<_>>() } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_answered_once_per_generation() {
        let mut route = json!({
            "metadata": {"generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"parentRefs": [{"name": "gateway"}]},
        });
        assert!(!is_answered(&route));
        route["status"] = accepted(&route)["status"].clone();
        assert!(is_answered(&route));
        route["metadata"]["generation"] = json!(2);
        assert!(!is_answered(&route));
    }
}
