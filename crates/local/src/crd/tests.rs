//! Each statement about definitions by example; the texts are those of kube-apiserver 1.36 for the
//! same definition and bodies.

mod definitions;
mod known;
mod objects;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Definition, Version, default_definition, validate_definition};
use crate::{error::Cause, store::Object};

/// A definition with a bit of everything.
fn widget() -> Value {
    let mut crd: Value = serde_saphyr::from_str(include_str!("tests/widget.yaml")).unwrap();
    default_definition(&mut crd);
    crd
}

fn compile(crd: &Value) -> Definition {
    assert_eq!(lines(&validate_definition(crd, None)), Vec::<String>::new());
    let definition = read(crd);
    assert!(definition.versions.iter().all(|version| !version.schema().broken));
    definition
}

fn read(crd: &Value) -> Definition {
    let stored = Arc::new(Object::new(crd.clone(), 1));
    Definition::read(&stored).unwrap_or_else(|causes| panic!("{causes:#?}"))
}

fn only(definition: &Definition) -> &Version {
    &definition.versions[0]
}

/// `field: message` of each.
fn lines(causes: &[Cause]) -> Vec<String> {
    causes.iter().map(Cause::to_string).collect()
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec})
}

/// A definition around the schema of `spec`.
fn with_spec(schema: Value) -> Value {
    let mut crd = widget();
    crd["spec"]["versions"][0] = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
    });
    crd
}
