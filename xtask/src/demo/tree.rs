//! Objects as a tree of owners, with the conditions and events of each root.

use serde_json::Value;

/// What can be in the tree, for kubectl.
pub(super) const KINDS: &str = "zerfooinferenceservices,deployments,replicasets,pods,services,\
                                horizontalpodautoscalers,httproutes";

/// One block per object without an owner.
pub(super) fn render(objects: &[Value], events: &[Value]) -> String {
    let roots = objects.iter().filter(|object| owner(object).is_none());
    let blocks: Vec<String> = roots.map(|root| block(root, objects, events)).collect();
    blocks.join("\n")
}

fn block(root: &Value, objects: &[Value], events: &[Value]) -> String {
    let mut text = line(root) + "\n";
    add_children(root, objects, "", &mut text);
    text += "  conditions\n";
    for condition in list(&root["status"]["conditions"]) {
        let [type_, status, reason, message] =
            ["type", "status", "reason", "message"].map(|field| word(&condition[field]));
        text += format!("    {type_:<22} {status:<8} {reason:<22} {message}").trim_end();
        text += "\n";
    }
    let of_root: Vec<&Value> = events
        .iter()
        .filter(|event| event["involvedObject"]["uid"] == root["metadata"]["uid"])
        .collect();
    text += if of_root.is_empty() { "  events: none\n" } else { "  events\n" };
    for event in of_root {
        let [type_, reason, message] =
            ["type", "reason", "message"].map(|field| word(&event[field]));
        text += &format!("    {type_:<22} {reason:<31} {message}\n");
    }
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
    let order = ["Deployment", "ReplicaSet", "Pod", "Service", "HorizontalPodAutoscaler"];
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
            let backend = |backend: &Value| {
                format!("{} {}%", word(&backend["name"]), number(&backend["weight"]))
            };
            backends.map(backend).collect::<Vec<_>>().join(", ")
        }
        _ => word(&status["status"]).to_owned(),
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

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> &str {
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
        let conditions = json!([{"type": "Ready", "status": "True", "reason": "AllComponentsReady",
            "message": "All components are ready"}]);
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        let objects = [
            object(
                "Service",
                "a-svc",
                "a",
                json!({"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}),
                json!({}),
            ),
            object(
                "Kind",
                "a",
                "",
                json!({}),
                json!({"status": "Ready", "conditions": conditions}),
            ),
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
        let events = [
            json!({"type": "Warning", "reason": "Because", "message": "words", "involvedObject": {"uid": "a"}}),
            json!({"type": "Normal", "reason": "Other", "message": "", "involvedObject": {"uid": "a-1"}}),
        ];
        let want = "\
Kind/a  Ready
├─ Deployment/a-primary  1/1 available
│  └─ ReplicaSet/a-new  1/1 ready
│     └─ Pod/a-1  ready on node1
└─ Service/a-svc  10.0.0.1:80
  conditions
    Ready                  True     AllComponentsReady     All components are ready
  events
    Warning                Because                         words
";
        assert_eq!(render(&objects, &events), want);
    }
}
