//! Objects within objects: they have a kind, a version and metadata like any other.

use serde_json::{Value, json};

use super::{causes, path::Path, schema::Schema};
use crate::{builtin, error::Cause};

pub(super) fn check(schema: &Schema, value: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(fields) => {
            if schema.embedded {
                check_kind(value, path, causes);
                check_metadata(value, path, causes);
            }
            for (name, value) in fields {
                if let Some(property) = schema.properties.get(name) {
                    check(property, value, &path.field(name), causes);
                } else if let Some(other) = schema.additional.schema() {
                    check(other, value, &path.key(name), causes);
                }
            }
        }
        Value::Array(items) => {
            let Some(of_items) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                check(of_items, item, &path.index(index), causes);
            }
        }
        _ => {}
    }
}

fn check_kind(value: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    for name in ["apiVersion", "kind"] {
        let at = path.field(name);
        match value.get(name).map(|value| value.as_str().unwrap_or_default()) {
            None => causes.push(causes::required(&at, "")),
            Some("") => causes.push(causes::invalid(&at, &json!(""), "must not be empty")),
            Some(text) if name == "apiVersion" && text.split('/').count() > 2 => {
                let detail = format!("unexpected GroupVersion string: {text}");
                causes.push(causes::invalid(&at, &json!(text), &detail));
            }
            Some(_) => {}
        }
    }
}

/// Metadata that could not be that of any object.
fn check_metadata(value: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let Some(metadata) = value.get("metadata") else { return };
    if let Err(unfit) = builtin::decode_metadata(&mut json!({"metadata": metadata})) {
        causes.push(causes::invalid(&path.field("metadata"), metadata, &unfit.read));
    }
}
