//! Objects as trees, with the conditions and events of each root.

use serde_json::Value;

use super::tree::{self, list, word};

/// What can be in the trees, for kubectl.
pub(super) const KINDS: &str = "zerfooinferenceservices,deployments,replicasets,pods,services,\
                                horizontalpodautoscalers,httproutes";

/// One block per object without an owner.
pub(super) fn render(objects: &[Value], events: &[Value]) -> String {
    let blocks: Vec<String> =
        tree::roots(objects).map(|root| block(root, objects, events)).collect();
    blocks.join("\n")
}

fn block(root: &Value, objects: &[Value], events: &[Value]) -> String {
    let mut text = tree::render(root, objects);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_and_events_stand_below_the_tree_of_their_object() {
        let conditions = json!([{"type": "Ready", "status": "True", "reason": "AllComponentsReady",
            "message": "All components are ready"}]);
        let objects = [
            json!({"kind": "Kind", "metadata": {"name": "a", "uid": "a"},
                "status": {"status": "Ready", "conditions": conditions}}),
            json!({"kind": "Other", "metadata": {"name": "b", "uid": "b",
                "ownerReferences": [{"uid": "a", "controller": true}]}}),
        ];
        let events = [
            json!({"type": "Warning", "reason": "Because", "message": "words", "involvedObject": {"uid": "a"}}),
            json!({"type": "Normal", "reason": "Other", "message": "", "involvedObject": {"uid": "a-1"}}),
        ];
        let want = "\
Kind/a  Ready
└─ Other/b
  conditions
    Ready                  True     AllComponentsReady     All components are ready
  events
    Warning                Because                         words
";
        assert_eq!(render(&objects, &events), want);
    }
}
