//! Objects as a tree of owners. Also a part of the project's own demo on a control plane.

use serde_json::Value;

/// Objects without an owner among these, in the order of the list.
pub(super) fn roots(objects: &[Value]) -> impl Iterator<Item = &Value> {
    objects.iter().filter(|object| owner(object).is_none())
}

/// One object and what is below it, a line each.
pub(super) fn render(root: &Value, objects: &[Value]) -> String {
    let mut text = line(root) + "\n";
    add_children(root, objects, "", &mut text);
    text
}

fn add_children(parent: &Value, objects: &[Value], indent: &str, text: &mut String) {
    let is_child = |object: &&Value| owner(object) == parent["metadata"]["uid"].as_str();
    let mut children: Vec<&Value> =
        objects.iter().filter(is_child).filter(|object| !is_left_over(object)).collect();
    children.sort_by_key(|child| (rank(child), word(&child["metadata"]["name"])));
    for (index, child) in children.iter().enumerate() {
        let last = index + 1 == children.len();
        let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        *text += &format!("{indent}{branch}{}\n", line(child));
        add_children(child, objects, &format!("{indent}{below}"), text);
    }
}

/// What runs comes before what leads to it.
fn rank(object: &Value) -> usize {
    let order = ["Job", "Deployment", "ReplicaSet", "Pod", "Service", "HorizontalPodAutoscaler"];
    order.iter().position(|kind| object["kind"] == *kind).unwrap_or(order.len())
}

/// A ReplicaSet of an earlier revision.
fn is_left_over(object: &Value) -> bool {
    object["kind"] == "ReplicaSet" && object["spec"]["replicas"] == 0
}

fn owner(object: &Value) -> Option<&str> {
    let owners = list(&object["metadata"]["ownerReferences"]);
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

fn line(object: &Value) -> String {
    let (kind, name) = (word(&object["kind"]), word(&object["metadata"]["name"]));
    format!("{kind}/{name}  {}", state(object)).trim_end().to_owned()
}

fn state(object: &Value) -> String {
    let (spec, status) = (&object["spec"], &object["status"]);
    match object["kind"].as_str().unwrap_or_default() {
        "Deployment" => {
            format!("{}/{} available", number(&status["availableReplicas"]), spec["replicas"])
        }
        "ReplicaSet" => format!("{}/{} ready", number(&status["readyReplicas"]), spec["replicas"]),
        "Pod" => pod(status, word(&spec["nodeName"])),
        "Service" => {
            let ports = list(&spec["ports"]).iter().map(|port| port["port"].to_string());
            format!("{}:{}", word(&spec["clusterIP"]), ports.collect::<Vec<_>>().join(","))
        }
        "HorizontalPodAutoscaler" => {
            format!("{} to {} replicas", number(&spec["minReplicas"]), spec["maxReplicas"])
        }
        "HTTPRoute" => {
            let backends = list(&spec["rules"][0]["backendRefs"]).iter();
            let backend = |backend: &Value| match backend["weight"].as_i64() {
                Some(weight) => format!("{} {weight}%", word(&backend["name"])),
                None => word(&backend["name"]).to_owned(),
            };
            backends.map(backend).collect::<Vec<_>>().join(", ")
        }
        "Job" => match number(&status["succeeded"]) {
            0 => format!("{} active", number(&status["active"])),
            _ => "complete".to_owned(),
        },
        // Some kinds call it so, others so.
        _ => ["status", "phase"].map(|name| word(&status[name])).concat(),
    }
}

fn pod(status: &Value, node: &str) -> String {
    let containers = list(&status["containerStatuses"]);
    let waiting = containers.iter().find_map(|c| c["state"]["waiting"]["reason"].as_str());
    let ready = list(&status["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let state = match waiting {
        Some(reason) => reason,
        None if ready => "ready",
        None => word(&status["phase"]),
    };
    if node.is_empty() { state.to_owned() } else { format!("{state} on {node}") }
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn children_stand_below_their_owners() {
        let object = |kind: &str, name: &str, owner: &str, spec: Value, status: Value| {
            let owners = json!([{"uid": owner, "controller": true}]);
            let mut metadata = json!({"name": name, "uid": name});
            if !owner.is_empty() {
                metadata["ownerReferences"] = owners;
            }
            json!({"kind": kind, "metadata": metadata, "spec": spec, "status": status})
        };
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        let objects = [
            object(
                "Service",
                "a-svc",
                "a",
                json!({"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}),
                json!({}),
            ),
            object("Kind", "a", "", json!({}), json!({"status": "Ready"})),
            object(
                "Deployment",
                "a-primary",
                "a",
                json!({"replicas": 1}),
                json!({"availableReplicas": 1}),
            ),
            object("ReplicaSet", "a-old", "a-primary", json!({"replicas": 0}), json!({})),
            object(
                "ReplicaSet",
                "a-new",
                "a-primary",
                json!({"replicas": 1}),
                json!({"readyReplicas": 1}),
            ),
            object("Pod", "a-1", "a-new", json!({"nodeName": "node1"}), ready),
        ];
        let want = "\
Kind/a  Ready
├─ Deployment/a-primary  1/1 available
│  └─ ReplicaSet/a-new  1/1 ready
│     └─ Pod/a-1  ready on node1
└─ Service/a-svc  10.0.0.1:80
";
        let found: Vec<_> = roots(&objects).map(|root| render(root, &objects)).collect();
        assert_eq!(found, [want]);
    }
}
