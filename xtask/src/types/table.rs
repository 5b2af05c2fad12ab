//! The join of OpenAPI and Go, as text.
//!
//! One line per type, one per field; `crates/local/src/types/builtin.rs` reads it and says what the
//! words mean.

use std::{collections::BTreeMap, fmt::Write};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

type Schemas = BTreeMap<String, Value>;

const NOTICE: &str = "# Made by `cargo xtask types`; changes made here are lost.\n";

/// The text of the type table.
pub(super) fn types(dump: &Value, schemas: &Schemas) -> Result<String> {
    let mut text = String::from(NOTICE);
    let kinds = dump["kinds"].as_array().context("dump.go printed no kinds")?;
    let mut lines: Vec<String> = kinds
        .iter()
        .map(|kind| {
            let [version, name, of] = ["apiVersion", "kind", "type"].map(|key| word(&kind[key]));
            format!("kind {version} {name} {of}\n")
        })
        .collect();
    lines.sort();
    text.extend(lines);
    for (name, fields) in dump["types"].as_object().context("dump.go printed no types")? {
        let schema = schemas.get(name).with_context(|| format!("no schema of {name}"))?;
        if scalar(name, schema).is_some() {
            continue;
        }
        one_type(&mut text, name, fields, schema)
            .with_context(|| format!("cannot describe {name}"))?;
    }
    Ok(text)
}

fn one_type(text: &mut String, name: &str, fields: &Value, schema: &Value) -> Result<()> {
    let atomic = schema["x-kubernetes-map-type"] == "atomic";
    writeln!(text, "type {name}{}", if atomic { " atomic" } else { "" })?;
    let properties = schema["properties"].as_object().context("a type without properties")?;
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    for field in fields.as_array().context("dump.go printed no fields")? {
        let name = word(&field["name"]);
        let property = properties.get(name).with_context(|| format!("no schema of {name}"))?;
        write!(text, " {name} {}", form(property).with_context(|| format!("of {name}"))?)?;
        if let Some(zero) = zero(field) {
            write!(text, " {zero}")?;
        }
        if required.iter().any(|other| other == name) {
            text.push_str(" required");
        }
        match (field["within"].as_u64(), field["number"].as_u64()) {
            (Some(within), Some(number)) => write!(text, " #{within}.{number}")?,
            (None, Some(number)) => write!(text, " #{number}")?,
            (_, None) => {}
        }
        for strategy in word(&field["strategy"]).split(',').filter(|word| !word.is_empty()) {
            write!(text, " {strategy}")?;
        }
        if let Some(key) = field["mergeKey"].as_str() {
            write!(text, " by:{key}")?;
        }
        match &property["default"] {
            Value::Null => {}
            default => write!(text, " ={default}")?,
        }
        text.push('\n');
    }
    Ok(())
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The form of a property as one word.
fn form(schema: &Value) -> Result<String> {
    let referred = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    if let Some(reference) = referred {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        return Ok(named(name).map_or_else(|| format!("@{name}"), str::to_owned));
    }
    let (list, map) = (&schema["x-kubernetes-list-type"], &schema["x-kubernetes-map-type"]);
    Ok(match (word(&schema["type"]), word(&schema["format"])) {
        ("string", "byte") => "bytes".into(),
        ("string", _) => "string".into(),
        ("boolean", _) => "boolean".into(),
        ("integer", "int32") => "int32".into(),
        ("integer", _) => "int64".into(),
        ("number", _) => "number".into(),
        ("object", _) => {
            let values = match &schema["additionalProperties"] {
                Value::Null => "any".into(),
                values => form(values)?,
            };
            format!("{}{{}}{values}", if map == "atomic" { "atomic" } else { "" })
        }
        ("array", _) => {
            let items = form(&schema["items"])?;
            match list.as_str() {
                Some("set") => format!("set[]{items}"),
                Some("map") => {
                    let keys = schema["x-kubernetes-list-map-keys"].as_array();
                    let keys: Vec<&str> = keys.into_iter().flatten().map(word).collect();
                    format!("keyed({})[]{items}", keys.join(","))
                }
                _ => format!("[]{items}"),
            }
        }
        (other, format) => bail!("cannot tell the form of a {other:?} in the format {format:?}"),
    })
}

/// Types that are one word of the table instead of a struct.
fn named(name: &str) -> Option<&'static str> {
    Some(match name.strip_prefix("io.k8s.")? {
        "apimachinery.pkg.api.resource.Quantity" => "quantity",
        "apimachinery.pkg.util.intstr.IntOrString" => "int-or-string",
        "apimachinery.pkg.apis.meta.v1.Time" => "time",
        "apimachinery.pkg.apis.meta.v1.MicroTime" => "micro-time",
        "apimachinery.pkg.apis.meta.v1.FieldsV1" | "apimachinery.pkg.runtime.RawExtension" => "any",
        extensions => match extensions.strip_prefix("apiextensions-apiserver.pkg.apis.")? {
            "apiextensions.v1.JSON"
            | "apiextensions.v1.JSONSchemaPropsOrArray"
            | "apiextensions.v1.JSONSchemaPropsOrBool"
            | "apiextensions.v1.JSONSchemaPropsOrStringArray"
            | "apiextensions.v1.CustomResourceSubresourceStatus" => "any",
            _ => return None,
        },
    })
}

fn scalar(name: &str, schema: &Value) -> Option<&'static str> {
    named(name).or(if schema["properties"].is_null() { Some("any") } else { None })
}

/// What Go's JSON does with a zero value; nothing is said where it is kept as given.
fn zero(field: &Value) -> Option<&'static str> {
    let go = word(&field["go"]);
    let may_be_left_out = field["omitEmpty"] == true;
    let is_struct = go.starts_with("io.k8s.");
    let prints_null = matches!(named(go), Some("time" | "micro-time" | "any"));
    Some(match field["pointer"] == true {
        _ if field["omitZero"] == true => "omitted",
        true if may_be_left_out => return None,
        true => "null",
        false if is_struct && prints_null => "null",
        false if is_struct => "printed",
        false if may_be_left_out => "omitted",
        false if matches!(go, "slice" | "map") => "null",
        false => "printed",
    })
}

/// Descriptions and allowed values: what only people ask for.
pub(super) fn docs(dump: &Value, schemas: &Schemas) -> Value {
    let mut docs = Map::new();
    for name in dump["types"].as_object().into_iter().flat_map(Map::keys) {
        let schema = schemas.get(name).cloned().unwrap_or_default();
        let mut fields = Map::new();
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let mut entry = vec![property["description"].clone()];
            entry.extend(property["enum"].as_array().into_iter().flatten().cloned());
            fields.insert(field.clone(), Value::Array(entry));
        }
        docs.insert(name.clone(), json!([schema["description"], fields]));
    }
    Value::Object(docs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_one_word() {
        for (schema, want) in [
            (json!({"type": "integer", "format": "int32"}), "int32"),
            (json!({"type": "array", "items": {"type": "string"}}), "[]string"),
            (
                json!({"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.ServicePort"}]}}),
                "keyed(port,protocol)[]@io.k8s.api.core.v1.ServicePort",
            ),
            (
                json!({"type": "object", "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"}}),
                "atomic{}string",
            ),
        ] {
            assert_eq!(form(&schema).unwrap(), want, "{schema}");
        }
    }

    #[test]
    fn zero_values_follow_the_declaration_in_go() {
        for (field, want) in [
            (json!({"go": "int32", "pointer": true, "omitEmpty": true}), None),
            (json!({"go": "int32", "omitEmpty": true}), Some("omitted")),
            (json!({"go": "slice"}), Some("null")),
            (json!({"go": "io.k8s.api.core.v1.PodSpec", "omitEmpty": true}), Some("printed")),
            (json!({"go": "io.k8s.apimachinery.pkg.apis.meta.v1.Time"}), Some("null")),
        ] {
            assert_eq!(zero(&field), want, "{field}");
        }
    }
}
