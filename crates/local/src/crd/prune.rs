//! Dropping what a schema does not declare, and nulls where none may stand.

use serde_json::Value;

use super::{
    path::Path,
    schema::{Additional, Schema},
};
use crate::types::{Form, Typed, builtin};

/// Drops unknown fields and tells which they were: first of the metadata, then of the rest, then of the
/// metadata of embedded objects.
pub(super) fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut metadata = Vec::new();
    let mut unknown = Vec::new();
    let mut embedded = Vec::new();
    if let Some(value) = object.get_mut("metadata") {
        prune_metadata(value, &Path::Root.field("metadata"), &mut metadata);
    }
    let mut pruning = Pruning { unknown: &mut unknown, embedded: &mut embedded };
    pruning.object(Some(schema), schema.preserve, object, &Path::Root, true);
    unknown.sort();
    embedded.sort();
    metadata.append(&mut unknown);
    metadata.append(&mut embedded);
    metadata
}

/// Whether a default value says more than its schema knows.
pub(super) fn has_unknown(schema: &Schema, value: &Value) -> bool {
    let (mut unknown, mut embedded) = (Vec::new(), Vec::new());
    let mut pruning = Pruning { unknown: &mut unknown, embedded: &mut embedded };
    pruning.value(Some(schema), false, &mut value.clone(), &Path::Root);
    !unknown.is_empty() || !embedded.is_empty()
}

struct Pruning<'a> {
    unknown: &'a mut Vec<String>,
    embedded: &'a mut Vec<String>,
}

impl Pruning<'_> {
    /// `keep`: this level stays whole although it is not declared, as its parent says.
    fn value(&mut self, schema: Option<&Schema>, keep: bool, value: &mut Value, path: &Path<'_>) {
        let keep = keep || schema.is_some_and(|schema| schema.preserve);
        match value {
            Value::Object(_) => {
                let resource = schema.is_some_and(|schema| schema.embedded);
                self.object(schema, keep, value, path, resource);
            }
            Value::Array(items) => {
                let of_items = schema.and_then(|schema| schema.items.as_deref());
                if keep && of_items.is_none() {
                    return;
                }
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(of_items, keep, item, &path.index(index));
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        schema: Option<&Schema>,
        keep: bool,
        value: &mut Value,
        path: &Path<'_>,
        resource: bool,
    ) {
        let Value::Object(fields) = value else { return };
        let of_resource =
            |name: &str| resource && ["apiVersion", "kind", "metadata"].contains(&name);
        let is_map = schema.is_some_and(|s| !matches!(s.additional, Additional::Nothing));
        fields.retain(|name, _| {
            let declared = schema.is_some_and(|s| s.properties.contains_key(name));
            let known = keep || is_map || declared || of_resource(name);
            if !known {
                self.unknown.push(path.field(name).to_string());
            }
            known
        });
        for (name, value) in fields.iter_mut() {
            let path = path.field(name);
            if of_resource(name) {
                if name == "metadata" && !matches!(path, Path::Field(Path::Root, _)) {
                    prune_metadata(value, &path, self.embedded);
                }
                continue;
            }
            let schema = schema.and_then(|schema| schema.field(name));
            // What an open object holds is kept as a whole, what it declares is looked at.
            if schema.is_some() || !keep {
                self.value(schema, false, value, &path);
            }
        }
    }
}

/// Metadata has the same form everywhere.
fn prune_metadata(value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) {
    let Some(typed) = object_meta() else { return };
    prune_typed(typed, value, path, unknown);
}

/// The form of `metadata`, which every kind shares.
pub(super) fn object_meta() -> Option<Typed<'static>> {
    builtin().object_meta()
}

fn prune_typed(typed: Typed<'_>, value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) {
    match (typed.form(), value) {
        (Form::Struct(form), Value::Object(fields)) => {
            fields.retain(|name, value| {
                let path = path.field(name);
                if let Some(field) = form.fields.get(name) {
                    prune_typed(typed.at(field.form), value, &path, unknown);
                    return true;
                }
                if form.others.is_none() {
                    unknown.push(path.to_string());
                }
                form.others.is_some()
            });
        }
        (Form::List { items, .. }, Value::Array(values)) => {
            for (index, value) in values.iter_mut().enumerate() {
                prune_typed(typed.at(*items), value, &path.index(index), unknown);
            }
        }
        _ => {}
    }
}
