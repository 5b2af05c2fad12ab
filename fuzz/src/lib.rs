//! What several targets need.

use serde_json::{Value, json};
use windlass_kit::tar::BLOCK;
use windlass_local::{
    builtin::{self, Resource},
    http::fuzzing,
    types::{self, Typed},
};

/// As deep as the store takes them.
const DEEPEST: usize = 120;
/// When everything happens.
pub const TIME: &str = "2024-01-01T00:00:00Z";

/// Two texts, one on the first line and one behind it.
pub fn two(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    Some((&data[..end], &data[end + 1..]))
}

pub fn json(bytes: &[u8]) -> Option<Value> {
    fuzzing::body("application/json", bytes)
}

/// Whether a value is read again as what it was written as. Deeper ones are never stored.
pub fn survives(value: &Value) -> bool {
    depth(value) > DEEPEST || json(value.to_string().as_bytes()).as_ref() == Some(value)
}

fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or_default()
}

/// The built-in kind that an object says it is of.
pub fn kind(object: &Value) -> Option<(&'static Resource, Typed<'static>)> {
    let (version, kind) = (object.get("apiVersion")?.as_str()?, object.get("kind")?.as_str()?);
    let mut all = builtin::RESOURCES.iter();
    let resource = all.find(|known| known.kind == kind && known.api_version() == version)?;
    Some((resource, types::builtin().kind(version, kind)?))
}

/// An object as it could be stored: read by its kind and defaulted.
pub fn read(resource: &Resource, typed: Typed<'_>, object: Value) -> Option<Value> {
    let mut object = builtin::decode(resource, object, typed).ok()?.object;
    builtin::default(resource, &mut object);
    Some(object)
}

/// No name in an archive or a manifest leads out of where it is put.
pub fn stays_below(path: &str) -> bool {
    !path.starts_with('/') && !path.split('/').any(|element| element == "..")
}

/// A custom kind with a field of every sort, a rule and all subresources.
pub fn definition() -> Value {
    let item = json!({"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "value": {"type": "string"}}});
    let spec = json!({
        "type": "object",
        "x-kubernetes-validations": [{"rule": "!has(self.size) || self.size < 10"}],
        "properties": {
            "size": {"type": "integer", "default": 1},
            "color": {"type": "string", "enum": ["red", "blue"]},
            "items": {"type": "array", "items": item, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"]},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "port": {"x-kubernetes-int-or-string": true},
            "replicas": {"type": "integer"},
        },
    });
    let schema = json!({"type": "object", "properties": {"spec": spec,
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            }],
        },
    })
}

/// An archive whose headers all have the sum that they should: most damage is found by it, and
/// nothing behind it would ever be reached.
pub fn signed(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    for block in bytes.chunks_exact_mut(BLOCK).filter(|block| block[257..].starts_with(b"ustar")) {
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().copied().map(u32::from).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    bytes
}
