//! Taking over what a predecessor wrote with plain updates.
//!
//! The server records such fields under the predecessor's name, and an apply that leaves one out does
//! not remove it while somebody else holds it. So before the first apply the record is changed: what
//! the predecessor held is ours, and whatever of it is not wanted goes with the apply that follows.

use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};

use super::{Applier, failed};
use crate::{
    error::Error,
    labels::{COMPONENT, MANAGED_BY, NAME},
    object::Object,
    plan::{Desired, Ownership},
};

impl Applier {
    /// Whether a predecessor made this very object and its owner was lost since, as after a restore
    /// from a backup. A predecessor writes no label of ours, but it does write the usual ones.
    pub(super) fn is_orphan(&self, desired: &Desired, live: &Object) -> bool {
        let labels = &desired.body["metadata"]["labels"];
        let agrees = |key: &str| {
            live.labels.get(key).is_some_and(|value| labels[key].as_str() == Some(value))
        };
        desired.ownership == Ownership::Owned
            && !self.predecessors.is_empty()
            && live.controller().is_none()
            && !live.labels.contains_key(self.name_label)
            && [MANAGED_BY, COMPONENT, NAME].into_iter().all(agrees)
    }

    /// The object after its fields have changed hands; `None` if there was nothing to take over.
    pub(super) async fn inherit(
        &self,
        desired: &Desired,
        live: &Object,
        current: &Value,
    ) -> Result<Option<Object>, Error> {
        let Some(entries) = inherited(current, self.manager, self.predecessors) else {
            return Ok(None);
        };
        let patch = json!({ "metadata": {
            "managedFields": entries,
            "uid": live.uid,
            "resourceVersion": live.resource_version,
        }});
        let params = PatchParams { field_manager: Some(self.manager.into()), ..<_>::default() };
        let api = self.api(&desired.kind, &desired.key);
        let now = api.patch(&desired.key.name, &params, &Patch::Merge(&patch)).await;
        let now = Object::from(now.map_err(|error| failed("take over", desired, error))?);
        self.cache.put(&desired.kind, now.clone().into());
        Ok(Some(now))
    }
}

/// The record with the predecessors' entries merged into ours.
fn inherited(live: &Value, manager: &str, predecessors: &[&str]) -> Option<Vec<Value>> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let is_main = |entry: &Value| entry.get("subresource").is_none_or(|name| name == "");
    let is_theirs = |entry: &Value| {
        let by = entry["manager"].as_str().unwrap_or_default();
        is_main(entry) && entry["operation"] == "Update" && predecessors.contains(&by)
    };
    let is_ours = |entry: &Value| {
        is_main(entry) && entry["operation"] == "Apply" && entry["manager"] == manager
    };
    let newest = entries.iter().rfind(|entry| is_theirs(entry))?;
    let mut fields = Value::Object(Map::new());
    for entry in entries.iter().filter(|entry| is_theirs(entry) || is_ours(entry)) {
        merge(&mut fields, &entry["fieldsV1"]);
    }
    let mut ours = newest.clone();
    ours["manager"] = manager.into();
    ours["operation"] = "Apply".into();
    ours["fieldsV1"] = fields;
    let others = entries.iter().filter(|entry| !is_theirs(entry) && !is_ours(entry)).cloned();
    Some(others.chain([ours]).collect())
}

/// Every field that either of them names.
fn merge(into: &mut Value, from: &Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { return };
    for (key, below) in from {
        merge(into.entry(key.clone()).or_insert_with(|| Value::Object(Map::new())), below);
    }
}

#[cfg(test)]
mod tests;
