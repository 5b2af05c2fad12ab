//! Labels that children get from their parent and from the controller that made them.
//!
//! A label that a child already has is never touched. Of all workloads only Jobs pass labels on to
//! their pods: a Job's pod template cannot change later, other templates would roll.

mod pattern;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::names::{DnsLabel, LABEL_DOMAIN, MAX_LABEL};
use pattern::Pattern;

pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
pub const COMPONENT: &str = "app.kubernetes.io/component";
pub const NAME: &str = "app.kubernetes.io/name";

const METADATA: [&str; 2] = ["metadata", "labels"];
const ANNOTATIONS: [&str; 2] = ["metadata", "annotations"];
const POD_TEMPLATE: [&str; 4] = ["spec", "template", "metadata", "labels"];

/// Which labels of a parent its children inherit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRules {
    /// Copied whatever the settings say.
    pub always_prefixes: Vec<String>,
    /// Whether `patterns` count.
    pub enabled: bool,
    /// Match whole keys, as in Go's `path.Match`: `*` stops at `/`. Malformed ones match nothing.
    pub patterns: Vec<String>,
}

impl Default for LabelRules {
    fn default() -> Self {
        Self {
            always_prefixes: vec![format!("{LABEL_DOMAIN}/")],
            enabled: false,
            patterns: Vec::new(),
        }
    }
}

/// What every child of a controller carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerLabels {
    /// Full name of the controller.
    pub managed_by: String,
    /// Key under which the owner's name is found.
    pub name_key: String,
    pub owner_name: String,
}

/// Selects the children of a controller, or those of its components.
pub fn selector(managed_by: &str, components: &[&str]) -> String {
    match components {
        [] => format!("{MANAGED_BY}={managed_by}"),
        components => {
            format!("{MANAGED_BY}={managed_by},{COMPONENT} in ({})", components.join(","))
        }
    }
}

/// Copies labels of the parent to a child.
pub fn propagate(parent_labels: &BTreeMap<String, String>, child: &mut Value, rules: &LabelRules) {
    let patterns: Vec<Pattern> = if rules.enabled {
        rules.patterns.iter().filter_map(|text| Pattern::parse(text)).collect()
    } else {
        Vec::new()
    };
    let inherited: Vec<(&str, &str)> = parent_labels
        .iter()
        .filter(|(key, _)| {
            rules.always_prefixes.iter().any(|prefix| key.starts_with(prefix))
                || patterns.iter().any(|pattern| pattern.matches(key))
        })
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let added = add_absent(child, &METADATA, &inherited);
    if is_job(child) {
        add_absent(child, &POD_TEMPLATE, &added);
    }
}

/// Marks a child as made by a controller for an owner.
///
/// Only the owner's name reaches the pods of a Job: they are managed by the Job. An owner whose name
/// is no label value is found under [`owner_label`], and in full in an annotation of the same key.
pub fn add_controller_labels(child: &mut Value, labels: &ControllerLabels) {
    let ControllerLabels { managed_by, name_key, owner_name } = labels;
    if !managed_by.is_empty() {
        add_absent(child, &METADATA, &[(MANAGED_BY, managed_by)]);
    }
    if name_key.is_empty() || owner_name.is_empty() {
        return;
    }
    let value = owner_label(owner_name);
    add_absent(child, &METADATA, &[(name_key, &value)]);
    if value != *owner_name {
        add_absent(child, &ANNOTATIONS, &[(name_key, owner_name)]);
    }
    if is_job(child) {
        add_absent(child, &POD_TEMPLATE, &[(name_key, &value)]);
    }
}

/// The label value that stands for an owner's name: the name itself wherever it may be one.
pub fn owner_label(owner_name: &str) -> String {
    if is_label_value(owner_name) {
        owner_name.to_owned()
    } else {
        DnsLabel::new(owner_name).into()
    }
}

fn is_label_value(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= MAX_LABEL
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn is_job(child: &Value) -> bool {
    let text = |key| child.get(key).and_then(Value::as_str).unwrap_or_default();
    text("kind") == "Job" && text("apiVersion").starts_with("batch/")
}

/// Returns what was really added.
fn add_absent<'a>(
    child: &mut Value,
    path: &[&str],
    entries: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    // An empty map would be a change of its own.
    if entries.is_empty() {
        return Vec::new();
    }
    let Some(map) = map_at(child, path) else { return Vec::new() };
    let absent: Vec<_> =
        entries.iter().copied().filter(|(key, _)| !map.contains_key(*key)).collect();
    map.extend(absent.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))));
    absent
}

/// The map at a path, made where it is absent; none where something else stands in the way.
fn map_at<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    path.iter().try_fold(value.as_object_mut()?, |map, key| {
        let next = map.entry(*key).or_insert(Value::Null);
        if next.is_null() {
            *next = Value::Object(Map::new());
        }
        next.as_object_mut()
    })
}
