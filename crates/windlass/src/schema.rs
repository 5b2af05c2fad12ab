//! Checks an object against the schema of its CustomResourceDefinition, to tell a user offline what
//! the API server would: which field is wrong, and what is allowed there.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// The first thing that does not fit, in reading order.
pub(crate) fn check(definition: &CustomResourceDefinition, object: &Value) -> Result<(), String> {
    let Some(schema) = root(definition) else { return Ok(()) };
    let Some(properties) = &schema.properties else { return Ok(()) };
    // The rest of an object (metadata) is the API server's.
    for (name, value) in object.as_object().into_iter().flatten() {
        match properties.get(name) {
            Some(schema) => walk(schema, value, name)?,
            None if ["apiVersion", "kind", "metadata"].contains(&name.as_str()) => {}
            None => return Err(format!("unknown field {name}; allowed: metadata, spec, status")),
        }
    }
    let missing = schema.required.iter().flatten().find(|name| object.get(name.as_str()).is_none());
    missing.map_or(Ok(()), |name| Err(format!("{name} is required")))
}

/// Puts in the defaults that the API server would.
pub(crate) fn fill(definition: &CustomResourceDefinition, object: &mut Value) {
    if let Some(schema) = root(definition) {
        fill_below(schema, object);
    }
}

fn fill_below(schema: &JSONSchemaProps, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, schema) in schema.properties.iter().flatten() {
                if let Some(default) = schema.default.as_ref().filter(|_| !map.contains_key(name)) {
                    map.insert(name.clone(), default.0.clone());
                }
            }
            for (name, value) in map {
                if let Field::Known(schema) = field(schema, name) {
                    fill_below(schema, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
                items.iter_mut().for_each(|item| fill_below(schema, item));
            }
        }
        _ => {}
    }
}

fn root(definition: &CustomResourceDefinition) -> Option<&JSONSchemaProps> {
    let served = definition.spec.versions.iter().find(|version| version.served)?;
    served.schema.as_ref()?.open_api_v3_schema.as_ref()
}

fn walk(schema: &JSONSchemaProps, value: &Value, path: &str) -> Result<(), String> {
    if value.is_null() {
        // The API server drops nulls of fields that have a default or need none.
        return Ok(());
    }
    check_type(schema, value, path)?;
    check_values(schema, value, path)?;
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let below = format!("{path}.{name}");
                match field(schema, name) {
                    Field::Known(schema) => walk(schema, value, &below)?,
                    Field::Free => {}
                    Field::Unknown(allowed) => {
                        return Err(format!("unknown field {below}; allowed: {allowed}"));
                    }
                }
            }
            let missing =
                schema.required.iter().flatten().find(|name| !map.contains_key(name.as_str()));
            missing.map_or(Ok(()), |name| Err(format!("{path}.{name} is required")))
        }
        Value::Array(items) => {
            let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items else { return Ok(()) };
            for (index, item) in items.iter().enumerate() {
                walk(schema, item, &format!("{path}[{index}]"))?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

enum Field<'a> {
    Known(&'a JSONSchemaProps),
    Free,
    Unknown(String),
}

fn field<'a>(schema: &'a JSONSchemaProps, name: &str) -> Field<'a> {
    if let Some(known) = schema.properties.as_ref().and_then(|properties| properties.get(name)) {
        return Field::Known(known);
    }
    if schema.x_kubernetes_preserve_unknown_fields == Some(true) {
        return Field::Free;
    }
    match (&schema.additional_properties, &schema.properties) {
        (Some(JSONSchemaPropsOrBool::Schema(schema)), _) => Field::Known(schema),
        (Some(JSONSchemaPropsOrBool::Bool(true)), _) | (None, None) => Field::Free,
        (_, properties) => {
            let names: Vec<_> = properties.iter().flat_map(|p| p.keys().cloned()).collect();
            Field::Unknown(names.join(", "))
        }
    }
}

fn check_type(schema: &JSONSchemaProps, value: &Value, path: &str) -> Result<(), String> {
    let int_or_string = schema.x_kubernetes_int_or_string == Some(true);
    let fits = match schema.type_.as_deref() {
        _ if int_or_string => value.is_string() || value.is_i64() || value.is_u64(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    };
    if fits {
        return Ok(());
    }
    let wanted = if int_or_string {
        "a whole number or a text"
    } else {
        match schema.type_.as_deref() {
            Some("string") => "a text",
            Some("integer") => "a whole number",
            Some("number") => "a number",
            Some("boolean") => "true or false",
            Some("array") => "a list",
            _ => "a map of fields",
        }
    };
    Err(format!("{path} must be {wanted}, got {value}"))
}

fn check_values(schema: &JSONSchemaProps, value: &Value, path: &str) -> Result<(), String> {
    if let Some(allowed) = &schema.enum_
        && !allowed.iter().any(|known| known.0 == *value)
    {
        let allowed: Vec<_> = allowed.iter().map(|known| known.0.to_string()).collect();
        return Err(format!("{path} must be one of {}, got {value}", allowed.join(", ")));
    }
    match value {
        Value::Number(number) => {
            number.as_f64().map_or(Ok(()), |number| check_number(schema, number, path))
        }
        Value::String(text) => check_text(schema, text, path),
        Value::Array(items) => {
            check_count(items.len(), schema.min_items, schema.max_items, "entries", path)
        }
        _ => Ok(()),
    }
}

fn check_number(schema: &JSONSchemaProps, number: f64, path: &str) -> Result<(), String> {
    if let Some(least) = schema.minimum {
        let exclusive = schema.exclusive_minimum == Some(true);
        if number < least || (exclusive && number <= least) {
            let bound = if exclusive { "more than" } else { "at least" };
            return Err(format!("{path} must be {bound} {least}, got {number}"));
        }
    }
    if let Some(most) = schema.maximum {
        let exclusive = schema.exclusive_maximum == Some(true);
        if number > most || (exclusive && number >= most) {
            let bound = if exclusive { "less than" } else { "at most" };
            return Err(format!("{path} must be {bound} {most}, got {number}"));
        }
    }
    Ok(())
}

fn check_text(schema: &JSONSchemaProps, text: &str, path: &str) -> Result<(), String> {
    let count = text.chars().count();
    check_count(count, schema.min_length, schema.max_length, "characters", path)?;
    let Some(pattern) = &schema.pattern else { return Ok(()) };
    // The API server's expressions are nearly ours; one that is not is left to it.
    match regex::Regex::new(pattern) {
        Ok(expression) if !expression.is_match(text) => {
            Err(format!("{path} must match {pattern}, got {text:?}"))
        }
        _ => Ok(()),
    }
}

fn check_count(
    count: usize,
    least: Option<i64>,
    most: Option<i64>,
    what: &str,
    path: &str,
) -> Result<(), String> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    match (least, most) {
        (Some(least), _) if count < least => {
            Err(format!("{path} must have at least {least} {what}, got {count}"))
        }
        (_, Some(most)) if count > most => {
            Err(format!("{path} must have at most {most} {what}, got {count}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
