//! Would a server-side apply change anything? Answered without asking the server.
//!
//! The server records in `managedFields` which fields our last apply set, and takes a field from us
//! the moment somebody else changes it. So an apply changes nothing exactly when every wanted field is
//! recorded as ours and holds the wanted value, and nothing is recorded as ours that is no longer
//! wanted. The record also tells, without a schema, which lists are merged by key and which are whole.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::quantity;

/// The first field that an apply would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub path: FieldPath,
    /// Who holds the field now, if it is somebody else.
    pub holder: Option<String>,
}

/// Steps from the root of an object to a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// A patch that takes the field away.
    pub fn removal(&self) -> Value {
        self.0.iter().rev().fold(Value::Null, |below, step| json!({ step: below }))
    }

    fn child(&self, step: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(step.to_owned());
        Self(steps)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            // As people write it: `containers[name=a].image`, not the server's record of keys.
            if let Some(keys) = step.strip_prefix("k:") {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
                let keys: Vec<_> = keys.iter().map(|(k, v)| format!("{k}={}", text(v))).collect();
                write!(f, "[{}]", keys.join(","))?;
            } else if let Some(item) = step.strip_prefix("v:") {
                write!(f, "[{item}]")?;
            } else {
                let dot = if index == 0 { "" } else { "." };
                write!(f, "{dot}{step}")?;
            }
        }
        Ok(())
    }
}

/// `None` if applying `desired` as `manager`, to the subresource if one is named, would leave `live`
/// as it is.
pub fn difference(
    desired: &Value,
    live: &Value,
    manager: &str,
    subresource: &str,
) -> Option<Difference> {
    let Some(fields) = own_fields(live, desired, manager, subresource) else {
        return Some(Difference { path: FieldPath::default(), holder: None });
    };
    let path = walk_root(fields, desired, live)?;
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let holder = entries.into_iter().flatten().find_map(|entry| holder(entry, &path, manager));
    Some(Difference { path, holder })
}

/// What a map of `live` holds, at a JSON pointer, besides what is wanted there and what we have set: an
/// apply lets it be.
pub fn surplus(desired: &Value, live: &Value, at: &str, manager: &str) -> Vec<Difference> {
    let keys = |object: &Value| object.pointer(at).and_then(Value::as_object).cloned();
    let (wanted, present) = (keys(desired).unwrap_or_default(), keys(live).unwrap_or_default());
    let path = FieldPath(at.split('/').skip(1).map(str::to_owned).collect());
    let recorded = own_fields(live, desired, manager, "");
    let ours =
        |path: &FieldPath| recorded.is_some_and(|fields| recorded_at(fields, path).is_some());
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let unwanted = present.keys().filter(|key| !wanted.contains_key(*key));
    let paths = unwanted.map(|key| path.child(key)).filter(|path| !ours(path));
    paths
        .map(|path| {
            let mut entries = entries.into_iter().flatten();
            Difference { holder: entries.find_map(|entry| holder(entry, &path, manager)), path }
        })
        .collect()
}

/// The part of `live` that our last apply to it, or to the subresource if one is named, has set.
pub fn own_part(live: &Value, manager: &str, subresource: &str) -> Value {
    match own_fields(live, live, manager, subresource) {
        Some(fields) => extract(fields, live),
        None => Value::Null,
    }
}

/// A merge patch that takes from a subresource what any of these managers hold and is not wanted;
/// nothing if there is none of it.
pub fn without_strays(
    live: &Value,
    managers: &[&str],
    subresource: &str,
    wanted: &Value,
) -> Option<Value> {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let theirs = entries.into_iter().flatten().filter(|entry| {
        entry["manager"].as_str().is_some_and(|manager| managers.contains(&manager))
            && entry.get("subresource").and_then(Value::as_str) == Some(subresource)
    });
    let mut patch = Map::new();
    for entry in theirs {
        let fields = &entry["fieldsV1"][format!("f:{subresource}")];
        strays(fields, wanted, &live[subresource], &mut patch);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

fn strays(fields: &Value, wanted: &Value, live: &Value, patch: &mut Map<String, Value>) {
    for (step, below) in steps(fields).into_iter().flatten() {
        let Some(name) = step.strip_prefix("f:") else { continue };
        match (wanted.get(name), live.get(name)) {
            (_, None) => {}
            (None, Some(_)) => {
                patch.insert(name.to_owned(), Value::Null);
            }
            // A merge patch has a list only as a whole, with what others hold in it.
            (Some(wanted), Some(live)) => {
                let mut inner = match patch.remove(name) {
                    Some(Value::Object(inner)) => inner,
                    _ => Map::new(),
                };
                strays(below, wanted, live, &mut inner);
                if !inner.is_empty() {
                    patch.insert(name.to_owned(), Value::Object(inner));
                }
            }
        }
    }
}

fn own_fields<'a>(
    live: &'a Value,
    desired: &Value,
    manager: &str,
    subresource: &str,
) -> Option<&'a Value> {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let ours = entries.into_iter().flatten().find(|entry| {
        entry["manager"] == manager
            && entry["operation"] == "Apply"
            && entry.get("apiVersion") == desired.get("apiVersion")
            && entry.get("subresource").and_then(Value::as_str).unwrap_or_default() == subresource
    });
    ours?.get("fieldsV1")
}

fn extract(fields: &Value, live: &Value) -> Value {
    let Some(recorded) = steps(fields) else { return live.clone() };
    match live {
        Value::Object(map) => {
            let ours = |(key, value): (&String, &Value)| {
                let fields = recorded.get(&format!("f:{key}"))?;
                Some((key.clone(), extract(fields, value)))
            };
            Value::Object(map.iter().filter_map(ours).collect())
        }
        Value::Array(items) => {
            let ours = |item: &Value| {
                recorded.iter().find_map(|(step, fields)| {
                    let (form, text) = step.split_at_checked(2)?;
                    let found = match (form, serde_json::from_str(text).ok()?) {
                        ("k:", Value::Object(keys)) => has_keys(item, &keys),
                        ("v:", value) => value == *item,
                        _ => false,
                    };
                    found.then(|| extract(fields, item))
                })
            };
            Value::Array(items.iter().filter_map(ours).collect())
        }
        _ => live.clone(),
    }
}

/// What is recorded below a field; nothing for a field that is set as a whole.
fn steps(fields: &Value) -> Option<&Map<String, Value>> {
    fields.as_object().filter(|map| map.keys().any(|key| key != "."))
}

/// The root's identifying fields are not recorded by the server, so they are left out here too.
fn walk_root(fields: &Value, desired: &Value, live: &Value) -> Option<FieldPath> {
    const UNRECORDED: [&str; 4] = ["name", "namespace", "uid", "resourceVersion"];
    let mut wanted = desired.clone();
    if let Some(map) = wanted.as_object_mut() {
        map.remove("apiVersion");
        map.remove("kind");
    }
    if let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !UNRECORDED.contains(&key.as_str()));
    }
    walk(fields, &wanted, live, &FieldPath::default())
}

fn walk(fields: &Value, desired: &Value, live: &Value, path: &FieldPath) -> Option<FieldPath> {
    match (desired, steps(fields)) {
        (Value::Object(wanted), Some(recorded)) => walk_map(recorded, wanted, live, path),
        (Value::Array(wanted), Some(recorded)) => walk_list(recorded, wanted, live, path),
        // No steps below: a scalar, or a map or list that is only ever set as a whole.
        _ => (!holds(desired, live, path)).then(|| path.clone()),
    }
}

fn walk_map(
    recorded: &Map<String, Value>,
    wanted: &Map<String, Value>,
    live: &Value,
    path: &FieldPath,
) -> Option<FieldPath> {
    for (key, value) in wanted {
        let path = path.child(key);
        match recorded.get(&format!("f:{key}")) {
            Some(fields) => {
                if let found @ Some(_) = walk(fields, value, &live[key.as_str()], &path) {
                    return found;
                }
            }
            None if is_empty(value) => {}
            None => return Some(path),
        }
    }
    recorded
        .keys()
        .filter_map(|step| step.strip_prefix("f:"))
        .find(|key| !wanted.contains_key(*key))
        .map(|key| path.child(key))
}

fn walk_list(
    recorded: &Map<String, Value>,
    wanted: &[Value],
    live: &Value,
    path: &FieldPath,
) -> Option<FieldPath> {
    let live: &[Value] = live.as_array().map_or(&[], Vec::as_slice);
    let mut seen = 0;
    for (step, fields) in recorded {
        let below = path.child(step);
        if let Some(item) = step.strip_prefix("v:") {
            let item: Value = serde_json::from_str(item).unwrap_or_default();
            if !wanted.contains(&item) || !live.contains(&item) {
                return Some(below);
            }
            seen += 1;
        } else if let Some(keys) = step.strip_prefix("k:") {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let wanted = wanted.iter().find(|item| has_keys(item, &keys));
            let live = live.iter().find(|item| has_keys(item, &keys));
            let (Some(wanted), Some(live)) = (wanted, live) else { return Some(below) };
            if let found @ Some(_) = walk(fields, wanted, live, &below) {
                return found;
            }
            seen += 1;
        }
    }
    // Every record met a wanted item; a wanted item without a record has yet to be applied.
    (seen != wanted.len()).then(|| path.clone())
}

/// A key that the wanted item leaves out was filled in by the server and identifies nothing else.
fn has_keys(item: &Value, keys: &Map<String, Value>) -> bool {
    keys.iter().all(|(key, value)| item.get(key).is_none_or(|own| own == value))
}

/// Whether `live` is `desired`, fields that the server fills in aside.
fn holds(desired: &Value, live: &Value, path: &FieldPath) -> bool {
    match (desired, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            let as_wanted = wanted.iter().all(|(key, value)| {
                live.get(key).map_or(is_empty(value), |live| holds(value, live, &path.child(key)))
            });
            // A key that is no longer wanted is only seen here: the whole map is recorded as one.
            as_wanted
                && live.iter().all(|(key, value)| {
                    wanted.contains_key(key) || is_empty(value) || is_filled_in(path, key, value)
                })
        }
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len()
                && wanted.iter().zip(live).all(|(wanted, live)| holds(wanted, live, path))
        }
        (Value::String(wanted), Value::String(live)) => {
            wanted == live || (is_quantity(path) && quantity::equal(wanted, live))
        }
        (wanted, Value::Null) => is_empty(wanted),
        (wanted, live) => wanted == live,
    }
}

/// Defaults that the server writes into maps and lists that are recorded as a whole. One that is
/// missing here costs a needless write after a restart; see `Unchanging` in `apply`.
fn is_filled_in(path: &FieldPath, key: &str, value: &Value) -> bool {
    let holder = path.0.last().map(String::as_str).unwrap_or_default();
    let text = value.as_str();
    match (holder, key) {
        ("fieldRef", "apiVersion") => text == Some("v1"),
        ("resourceFieldRef", "divisor") => text == Some("0"),
        ("serviceAccountToken", "expirationSeconds") => value == 3600,
        ("parentRefs", "group") => text == Some("gateway.networking.k8s.io"),
        ("parentRefs", "kind") => text == Some("Gateway"),
        ("backendRefs", "group") => text == Some(""),
        ("backendRefs", "kind") => text == Some("Service"),
        ("backendRefs", "weight") => value == 1,
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Where Kubernetes rewrites a quantity into its canonical form (`1000m` becomes `1`).
fn is_quantity(path: &FieldPath) -> bool {
    const HOLDERS: [&str; 4] = ["requests", "limits", "capacity", "hard"];
    const FIELDS: [&str; 4] = ["sizeLimit", "averageValue", "value", "divisor"];
    let mut steps = path.0.iter().rev().map(String::as_str);
    let last = steps.next().unwrap_or_default();
    FIELDS.contains(&last) || steps.next().is_some_and(|holder| HOLDERS.contains(&holder))
}

/// The manager of `entry` if it holds the field at `path` and is not us.
fn holder(entry: &Value, path: &FieldPath, manager: &str) -> Option<String> {
    let name = entry.get("manager")?.as_str()?;
    if name == manager {
        return None;
    }
    recorded_at(entry.get("fieldsV1")?, path)?;
    Some(name.to_owned())
}

fn recorded_at<'a>(fields: &'a Value, path: &FieldPath) -> Option<&'a Value> {
    path.0.iter().try_fold(fields, |fields, step| {
        // List steps are kept as recorded (`k:{…}`), map steps by their bare name.
        fields.get(step).or_else(|| fields.get(format!("f:{step}")))
    })
}

#[cfg(test)]
mod tests;
