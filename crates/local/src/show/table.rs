//! Objects as rows of a Table.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, cells, path::JsonPath};
use crate::{builtin::Resource, crd::Column, types::builtin};

/// What each row carries of its object, as the parameter `includeObject` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    #[default]
    Metadata,
    Object,
    None,
}

impl Include {
    /// None where the word is unknown.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "Metadata" => Some(Self::Metadata),
            "Object" => Some(Self::Object),
            "None" => Some(Self::None),
            _ => None,
        }
    }
}

/// A whole Table with empty `metadata`. `custom` are the columns of a custom kind.
pub fn table(
    resource: &Resource,
    custom: Option<&[Column]>,
    objects: &[&Value],
    include: Include,
    now: Timestamp,
) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": columns(resource, custom),
        "rows": rows(resource, custom, objects, include, now),
    })
}

/// The `columnDefinitions`, which a watch sends once.
pub fn columns(resource: &Resource, custom: Option<&[Column]>) -> Value {
    let column = |name: &str, kind: &str, format: &str, description: &str, priority: i64| {
        json!({
            "name": name, "type": kind, "format": format, "description": description, "priority": priority,
        })
    };
    let all: Vec<Value> = match custom {
        None => cells::columns(&resource.group, &resource.plural)
            .iter()
            .map(|(name, kind, priority)| {
                let (format, description) = match *name {
                    "Name" => ("name", described("name")),
                    "Age" => ("", described("creationTimestamp")),
                    _ => ("", ""),
                };
                column(name, kind, format, description, *priority)
            })
            .collect(),
        Some(custom) => {
            let mut all = vec![column("Name", "string", "name", described("name"), 0)];
            all.extend(custom.iter().map(|own| {
                let description = match &*own.description {
                    // Only the column that there is without being declared.
                    "" => described("creationTimestamp"),
                    text => text,
                };
                column(&own.name, &own.kind, &own.format, description, own.priority)
            }));
            all
        }
    };
    Value::Array(all)
}

/// What the documentation says of a field that every object has.
fn described(field: &str) -> &'static str {
    const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    builtin().description(OBJECT_META, Some(field)).unwrap_or_default()
}

/// The rows alone.
pub fn rows(
    resource: &Resource,
    custom: Option<&[Column]>,
    objects: &[&Value],
    include: Include,
    now: Timestamp,
) -> Vec<Value> {
    let paths: Option<Vec<_>> = custom.map(|columns| {
        columns.iter().map(|column| (column, JsonPath::parse(&column.json_path))).collect()
    });
    let row = |object: &&Value| {
        let cells = match &paths {
            None => cells::of(&resource.group, &resource.plural, object, now),
            Some(paths) => custom_cells(paths, object, now),
        };
        let mut row = json!({"cells": cells});
        match include {
            Include::Metadata => row["object"] = partial_metadata(object),
            Include::Object => row["object"] = (*object).clone(),
            Include::None => row["object"] = Value::Null,
        }
        if let Some(conditions) = cells::conditions(&resource.group, &resource.plural, object) {
            row["conditions"] = conditions;
        }
        row
    };
    objects.iter().map(row).collect()
}

/// No more than the metadata, as controllers that watch many objects ask for.
pub fn partial_metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

fn custom_cells(
    columns: &[(&Column, Option<JsonPath>)],
    object: &Value,
    now: Timestamp,
) -> Vec<Value> {
    let name = object.get("metadata").and_then(|metadata| metadata.get("name"));
    let mut cells = vec![name.cloned().unwrap_or_else(|| json!(""))];
    cells.extend(columns.iter().map(|(column, path)| {
        let found = path.as_ref().and_then(|path| path.first(object));
        found.map_or(Value::Null, |found| custom_cell(&column.kind, found, now))
    }));
    cells
}

/// A value that does not fit the column's type is left out.
fn custom_cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", Value::String(_)) => value.clone(),
        ("string", Value::Null) => json!("<nil>"),
        ("string", Value::Object(_) | Value::Array(_)) => json!(escaped(value)),
        ("string", value) => json!(value.to_string()),
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => json!(whole),
            (None, Some(float)) => json!(float as i64),
            _ => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(time) => json!(age::short(now.as_second() - time.as_second())),
            Err(_) => json!("<invalid>"),
        },
        _ => Value::Null,
    }
}

/// JSON as Go writes it, safe within HTML.
fn escaped(value: &Value) -> String {
    let text = value.to_string();
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
