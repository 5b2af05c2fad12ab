//! Environment variables from several levels.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::EnvVar;
use serde_json::Value;
use serde_json::value::RawValue;

/// The base in its order, each entry replaced whole by one of the same name, then new names.
///
/// Values of `json_names` are JSON objects and merged key by key. Where that is not possible the
/// override is used as it is.
pub fn merge_env(base: &[EnvVar], over: &[EnvVar], json_names: &[&str]) -> Vec<EnvVar> {
    let mut merged = base.to_vec();
    for entry in over {
        match merged.iter_mut().find(|known| known.name == entry.name) {
            Some(known) if json_names.contains(&entry.name.as_str()) => {
                *known = merge_json_entry(known, entry);
            }
            Some(known) => *known = entry.clone(),
            None => merged.push(entry.clone()),
        }
    }
    merged
}

fn merge_json_entry(base: &EnvVar, over: &EnvVar) -> EnvVar {
    if text(over).is_empty() && over.value_from.is_none() {
        return base.clone();
    }
    match merge_json(text(base), text(over)) {
        Some(value) => EnvVar { name: over.name.clone(), value: Some(value), value_from: None },
        None => over.clone(),
    }
}

fn text(entry: &EnvVar) -> &str {
    entry.value.as_deref().unwrap_or_default()
}

/// None unless both are objects. Numbers and strings keep the text they were written in: a parsed
/// number may not hold all of its digits.
fn merge_json(base: &str, over: &str) -> Option<String> {
    Some(print_object(&merge_objects(object(base)?, object(over)?)))
}

type Object = BTreeMap<String, Box<RawValue>>;

/// Parsing the value as well limits its depth, on which everything below recurses.
fn object(text: &str) -> Option<Object> {
    let _: Value = serde_json::from_str(text).ok()?;
    serde_json::from_str(text).ok()
}

fn merge_objects(mut base: Object, over: Object) -> Object {
    for (key, over) in over {
        let nested = base
            .get(&key)
            .and_then(|base| merge_json(base.get(), over.get()))
            .and_then(|merged| RawValue::from_string(merged).ok());
        base.insert(key, nested.unwrap_or(over));
    }
    base
}

/// Compact, with sorted keys.
fn print(raw: &RawValue) -> String {
    let text = raw.get().trim();
    if let Ok(map) = serde_json::from_str::<Object>(text) {
        return print_object(&map);
    }
    match serde_json::from_str::<Vec<Box<RawValue>>>(text) {
        Ok(items) => {
            let items: Vec<String> = items.iter().map(|item| print(item)).collect();
            format!("[{}]", items.join(","))
        }
        Err(_) => text.to_owned(),
    }
}

fn print_object(map: &Object) -> String {
    let fields: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), print(value)))
        .collect();
    format!("{{{}}}", fields.join(","))
}
