//! Each rule by an example; then laws that hold for all values.

mod applying;
mod histories;
mod properties;
mod scales;
mod sets;
mod updating;

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::*;
use crate::types::{builtin, read};

/// A custom kind with one field of every sort.
const WIDGET: &str = "\
type Widget
 apiVersion string
 kind string
 metadata @Meta
 spec @Spec
 status @Status
type Meta
 name string
 namespace string
 uid string
 resourceVersion string
 creationTimestamp time
 generation int64
 annotations {}string
 labels {}string
 finalizers set[]string
 managedFields []any
type Spec
 size int64
 color string
 limits atomic{}string
 inner @Inner
 items keyed(name)[]@Item
 ports keyed(port,protocol)[]@Port
 tags set[]string
 words []string
 free any
type Inner
 a string
 b string
type Item
 name string
 value string
 inner @Inner
type Port
 port int64
 protocol string =\"TCP\"
 note string
type Status
 phase string
 size int64
";

fn widget() -> Typed<'static> {
    static TYPES: OnceLock<(crate::types::Types, crate::types::Id)> = OnceLock::new();
    let (types, id) = TYPES.get_or_init(|| {
        let read = read::read(WIDGET);
        let id = read.named["Widget"];
        (read.types, id)
    });
    Typed { types, id: *id }
}

fn config_map() -> Typed<'static> {
    builtin().kind("v1", "ConfigMap").unwrap()
}

fn deployment() -> Typed<'static> {
    builtin().kind("apps/v1", "Deployment").unwrap()
}

fn request<'a>(
    typed: Typed<'a>,
    manager: &'a str,
    live: Option<&'a Value>,
    config: &'a Value,
) -> Request<'a> {
    let reset = Reset::Status;
    let (subresource, force, time) = (None, false, "2026-01-01T00:00:01Z");
    let api_version = "v1";
    Request {
        live,
        owners: None,
        config,
        typed,
        manager,
        subresource,
        api_version,
        force,
        time,
        reset,
    }
}

fn writer<'a>(typed: Typed<'a>, manager: &'a str) -> Update<'a> {
    let (subresource, api_version) = (None, "v1");
    let time = "2026-01-01T00:00:02Z";
    Update { typed, manager, subresource, api_version, time, reset: Reset::Status }
}

/// An object that several managers applied one after the other.
fn applied(typed: Typed<'_>, configs: &[(&str, Value)]) -> Value {
    let mut live = None;
    for (manager, config) in configs {
        live = Some(apply(request(typed, manager, live.as_ref(), config)).unwrap());
    }
    live.unwrap()
}

fn again(typed: Typed<'_>, live: &Value, manager: &str, config: Value) -> Value {
    apply(request(typed, manager, Some(live), &config)).unwrap()
}

fn refused(typed: Typed<'_>, live: &Value, manager: &str, config: Value) -> String {
    apply(request(typed, manager, Some(live), &config)).unwrap_err().to_string()
}

/// The fields that a manager owns, or null.
fn owned(object: &Value, manager: &str, operation: &str) -> Value {
    entry(object, manager, operation)["fieldsV1"].clone()
}

fn entry(object: &Value, manager: &str, operation: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let mut found = entries
        .into_iter()
        .filter(|entry| entry["manager"] == manager && entry["operation"] == operation);
    let first = found.next().unwrap_or_default();
    assert_eq!(found.next(), None, "two entries of {manager}");
    first
}

fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}
