//! Whether a schema is structural: every field has a type, and alternatives only limit values.

use serde_json::{Value, json};

use super::{
    causes, check,
    path::Path,
    prune,
    schema::{Schema, list, map, text},
};
use crate::error::Cause;

/// What keeps the schema from being used.
pub(super) fn problems(raw: &Value, schema: &Schema, path: &Path<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    node(raw, path, Level::Root, &mut causes);
    rules(raw, path, None, &mut causes);
    if causes.is_empty() {
        // Only a schema that holds together can judge its own defaults.
        defaults(schema, path, &mut causes);
    }
    causes
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

fn flag(raw: &Value, name: &str) -> bool {
    raw.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn node(raw: &Value, path: &Path<'_>, level: Level, causes: &mut Vec<Cause>) {
    refused(raw, path, causes);
    types(raw, path, level, causes);
    lists(raw, path, causes);
    values(raw, path, causes);
    for name in ["allOf", "anyOf", "oneOf"] {
        let at = path.field(name);
        for (index, nested) in list(raw, name).enumerate() {
            self::nested(nested, raw, path, &at.index(index), causes);
        }
    }
    if let Some(not) = raw.get("not") {
        nested(not, raw, path, &path.field("not"), causes);
    }
    let at = path.field("properties");
    for (name, property) in map(raw, "properties") {
        let at = at.key(name);
        if level == Level::Root && name == "metadata" {
            metadata(property, &at, causes);
        } else {
            node(property, &at, Level::Field, causes);
        }
    }
    if let Some(items) = raw.get("items").filter(|items| items.is_object()) {
        node(items, &path.field("items"), Level::Item, causes);
    }
    if let Some(other) = raw.get("additionalProperties").filter(|other| other.is_object()) {
        node(other, &path.field("additionalProperties"), Level::Field, causes);
    }
}

/// Keywords of JSON schema that Kubernetes does without.
fn refused(raw: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    for name in
        ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"]
    {
        let empty = |value: &Value| value.is_null() || value == "" || *value == json!({});
        if raw.get(name).is_some_and(|value| !empty(value)) {
            let detail = format!("{name} is not supported");
            causes.push(causes::forbidden(&path.field(name), &detail));
        }
    }
    if flag(raw, "uniqueItems") {
        let detail =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        causes.push(causes::forbidden(&path.field("uniqueItems"), detail));
    }
    let has_properties = map(raw, "properties").next().is_some();
    if let Some(other) = raw.get("additionalProperties") {
        let at = path.field("additionalProperties");
        if has_properties && other.is_object() {
            let detail = "additionalProperties and properties are mutual exclusive";
            causes.push(causes::forbidden(&at, detail));
        }
    }
    if raw.get("items").is_some_and(Value::is_array) {
        let detail = "items must be a schema object and not an array";
        causes.push(causes::forbidden(&path.field("items"), detail));
    }
    if raw.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
        let at = path.field("x-kubernetes-preserve-unknown-fields");
        causes.push(causes::invalid(&at, &json!(false), "must be true or undefined"));
    }
}

fn types(raw: &Value, path: &Path<'_>, level: Level, causes: &mut Vec<Cause>) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    let kind = text(raw, "type").unwrap_or_default();
    let at = path.field("type");
    let open = flag(raw, "x-kubernetes-preserve-unknown-fields");
    let either = flag(raw, "x-kubernetes-int-or-string");
    if flag(raw, "x-kubernetes-embedded-resource") && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        causes.push(match kind {
            "" => causes::required(&at, detail),
            other => causes::invalid(&at, &json!(other), detail),
        });
        return;
    }
    match (kind, level) {
        ("", Level::Root) => causes.push(causes::required(&at, "must not be empty at the root")),
        ("", _) if open || either => {}
        ("", Level::Item) => {
            causes.push(causes::required(&at, "must not be empty for specified array items"));
        }
        ("", Level::Field) => {
            causes.push(causes::required(&at, "must not be empty for specified object fields"));
        }
        ("object", _) => {}
        (other, _) if !TYPES.contains(&other) => {
            if let Some(default) = raw.get("default").filter(|default| !default.is_null()) {
                let at = path.field("default");
                known_fields(&Schema::read(raw), default, &at, causes);
                let none = causes::type_invalid(&Path::Root, other, check::type_of(default).0);
                causes.push(Cause { field: at.of_cause(), ..none });
            }
            let supported = TYPES.map(str::to_owned);
            causes.push(causes::not_supported(&at, &json!(other), &supported));
        }
        (other, Level::Root) => {
            causes.push(causes::invalid(&at, &json!(other), "must be object at the root"));
        }
        _ if either => {}
        ("array", _) if raw.get("items").is_none() => {
            causes.push(causes::required(&path.field("items"), "must be specified"));
        }
        _ => {}
    }
    if level == Level::Root {
        if raw.get("additionalProperties").is_some() {
            let at = path.field("additionalProperties");
            causes.push(causes::forbidden(&at, "must not be used at the root"));
        }
        if flag(raw, "nullable") {
            causes.push(causes::forbidden(
                &path.field("nullable"),
                "nullable cannot be true at the root",
            ));
        }
    }
}

fn lists(raw: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let kind = text(raw, "type").unwrap_or_default();
    let keys: Vec<&str> =
        list(raw, "x-kubernetes-list-map-keys").filter_map(Value::as_str).collect();
    if let Some(map_type) = text(raw, "x-kubernetes-map-type") {
        if kind != "object" {
            let detail = "must be object if x-kubernetes-map-type is specified";
            causes.push(causes::invalid(&path.field("type"), &json!(kind), detail));
        }
        if !["atomic", "granular"].contains(&map_type) {
            let supported = ["atomic", "granular"].map(str::to_owned);
            let at = path.field("x-kubernetes-map-type");
            causes.push(causes::not_supported(&at, &json!(map_type), &supported));
        }
    }
    let Some(list_type) = text(raw, "x-kubernetes-list-type") else { return };
    let at = path.field("x-kubernetes-list-type");
    if kind != "array" {
        let detail = "must be array if x-kubernetes-list-type is specified";
        causes.push(causes::invalid(&path.field("type"), &json!(kind), detail));
    }
    match list_type {
        "map" => list_map(raw, &keys, path, causes),
        "atomic" | "set" => {
            if !keys.is_empty() {
                let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
                causes.push(causes::invalid(&at, &json!(list_type), detail));
            }
        }
        other => {
            let supported = ["atomic", "set", "map"].map(str::to_owned);
            causes.push(causes::not_supported(&at, &json!(other), &supported));
        }
    }
}

fn list_map(raw: &Value, keys: &[&str], path: &Path<'_>, causes: &mut Vec<Cause>) {
    let at = path.field("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        causes.push(causes::required(&at, detail));
    }
    let Some(items) = raw.get("items") else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        return causes.push(causes::required(&path.field("items"), detail));
    };
    let in_items = path.field("items");
    if text(items, "type") != Some("object") {
        let kind = json!(text(items, "type").unwrap_or_default());
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        causes.push(causes::invalid(&in_items.field("type"), &kind, detail));
    }
    let required: Vec<&str> = list(items, "required").filter_map(Value::as_str).collect();
    let in_properties = in_items.field("properties");
    for (index, key) in keys.iter().enumerate() {
        let property = items.get("properties").and_then(|properties| properties.get(key));
        let Some(property) = property else {
            let detail = "entries must all be names of item properties";
            causes.push(causes::invalid(&at, &json!(keys), detail));
            continue;
        };
        if keys[..index].contains(key) {
            causes.push(causes::invalid(&at, &json!(keys), "must not contain duplicate entries"));
        }
        let here = in_properties.key(key);
        if matches!(text(property, "type"), Some("object" | "array")) {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            causes.push(causes::invalid(&here.field("type"), &json!("object"), detail));
        }
        if property.get("default").is_none() && !required.contains(key) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            causes.push(causes::required(&here.field("default"), detail));
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            causes.push(causes::forbidden(&here.field("nullable"), detail));
        }
    }
}

fn values(raw: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let Some(pattern) = text(raw, "pattern") else { return };
    if let Err(error) = regex::Regex::new(pattern) {
        let reason = error.to_string().lines().last().unwrap_or_default().to_owned();
        let detail = format!("must be a valid regular expression, but isn't: {reason}");
        causes.push(causes::invalid(&path.field("pattern"), &json!(pattern), &detail));
    }
}

/// An alternative may limit values only, and only of fields that are declared outside of it.
fn nested(
    raw: &Value,
    outer: &Value,
    outer_path: &Path<'_>,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    const EMPTY: [(&str, &str); 13] = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    let either = flag(outer, "x-kubernetes-int-or-string");
    for (name, detail) in EMPTY {
        let empty = |value: &Value| *value == json!(false) || *value == json!("");
        // The usual way to spell int-or-string names both types.
        if name == "type" && either {
            continue;
        }
        if raw.get(name).is_some_and(|value| !empty(value)) {
            causes.push(causes::forbidden(&path.field(name), detail));
        }
    }
    values(raw, path, causes);
    for name in ["allOf", "anyOf", "oneOf"] {
        let at = path.field(name);
        for (index, deeper) in list(raw, name).enumerate() {
            nested(deeper, outer, outer_path, &at.index(index), causes);
        }
    }
    if let Some(not) = raw.get("not") {
        nested(not, outer, outer_path, &path.field("not"), causes);
    }
    let (at, outer_at) = (path.field("properties"), outer_path.field("properties"));
    for (name, property) in map(raw, "properties") {
        let (at, outer_at) = (at.key(name), outer_at.key(name));
        // What is not declared outside is never there, so a limit on it does no harm.
        if let Some(outer) = outer.get("properties").and_then(|properties| properties.get(name)) {
            nested(property, outer, &outer_at, &at, causes);
        }
    }
    if let Some(items) = raw.get("items") {
        let (at, outer_at) = (path.field("items"), outer_path.field("items"));
        if let Some(outer) = outer.get("items") {
            nested(items, outer, &outer_at, &at, causes);
        }
    }
}

/// The metadata of a custom object is everyone's; a schema may only limit names.
fn metadata(raw: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let kind = text(raw, "type").unwrap_or("object");
    if kind != "object" {
        causes.push(causes::invalid(&path.field("type"), &json!(kind), "must be object"));
    }
    let plain = |name: &String| ["type", "properties", "description"].contains(&name.as_str());
    let only_names =
        map(raw, "properties").all(|(name, _)| name == "name" || name == "generateName");
    let nothing_else = raw.as_object().is_some_and(|raw| raw.keys().all(plain));
    if !only_names || !nothing_else {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        causes.push(causes::forbidden(path, detail));
    }
}

/// `loose`: the list around, in which an item cannot be told from another, so that it has no past.
fn rules(raw: &Value, path: &Path<'_>, loose: Option<&str>, causes: &mut Vec<Cause>) {
    let at = path.field("x-kubernetes-validations");
    for (index, rule) in list(raw, "x-kubernetes-validations").enumerate() {
        super::rules::problems(rule, &at.index(index), loose, causes);
    }
    let at = path.field("properties");
    for (name, property) in map(raw, "properties") {
        rules(property, &at.key(name), loose, causes);
    }
    if let Some(other) = raw.get("additionalProperties").filter(|other| other.is_object()) {
        rules(other, &path.field("additionalProperties"), loose, causes);
    }
    if let Some(items) = raw.get("items").filter(|items| items.is_object()) {
        let here = path.to_string();
        let keyed = text(raw, "x-kubernetes-list-type") == Some("map");
        let loose = loose.or((!keyed).then_some(here.as_str()));
        rules(items, &path.field("items"), loose, causes);
    }
}

fn known_fields(schema: &Schema, default: &Value, at: &Path<'_>, causes: &mut Vec<Cause>) {
    if prune::has_unknown(schema, default) {
        causes.push(causes::invalid(at, default, "must not have unknown fields"));
    }
}

fn defaults(schema: &Schema, path: &Path<'_>, causes: &mut Vec<Cause>) {
    if let Some(default) = &schema.default {
        let at = path.field("default");
        known_fields(schema, default, &at, causes);
        for mut cause in check::check(schema, default, None, &Path::Root) {
            cause.field = match cause.field.as_str() {
                "<nil>" => at.to_string(),
                field => format!("{at}.{field}"),
            };
            causes.push(cause);
        }
    }
    let at = path.field("properties");
    for (name, property) in &schema.properties {
        defaults(property, &at.key(name), causes);
    }
    if let Some(other) = schema.additional.schema() {
        defaults(other, &path.field("additionalProperties"), causes);
    }
    if let Some(items) = &schema.items {
        defaults(items, &path.field("items"), causes);
    }
}
