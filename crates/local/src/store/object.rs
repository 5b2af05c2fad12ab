//! One stored object: printed, with its metadata at hand.
//!
//! As a tree an object takes many times the room of its text, and there is one of each version that
//! the history remembers. So the text is what is kept, and the tree is made for those who ask.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use axum::body::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Where an object is: `<group>/<plural>` and `<namespace>/<name>`, the namespace empty for
/// objects of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub resource: Arc<str>,
    pub name: Arc<str>,
}

impl Key {
    pub fn new(resource: &Arc<str>, namespace: &str, name: &str) -> Self {
        Self { resource: resource.clone(), name: format!("{namespace}/{name}").into() }
    }

    pub fn namespace(&self) -> &str {
        self.name.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    pub fn name(&self) -> &str {
        self.name.split_once('/').map_or(&self.name, |(_, name)| name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource, self.name)
    }
}

/// An object as it is stored: without `apiVersion` and `kind`, which the reader decides, and
/// without its version, which is beside it.
#[derive(Debug)]
pub struct Object {
    version: u64,
    /// Without the owners of fields, which are the greater part of it and are seldom asked for.
    metadata: Map<String, Value>,
    /// The printed object from its first field of metadata on.
    printed: Bytes,
    /// Made when it is first asked for.
    value: OnceLock<Value>,
}

const START: &[u8] = br#"{"metadata":{"#;
const OWNERS: &str = "managedFields";
/// Not printed when they hold nothing, as an apply may leave them in a custom object.
const UNPRINTED: [&str; 4] = ["annotations", "finalizers", "labels", "ownerReferences"];

fn is_printed((name, value): (&String, &Value)) -> bool {
    let is_empty = match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    !is_empty || !UNPRINTED.contains(&name.as_str())
}

impl Object {
    /// Takes out what is not stored. An object without metadata gets an empty one.
    pub(crate) fn new(mut value: Value, version: u64) -> Self {
        if let Some(map) = value.as_object_mut() {
            map.remove("apiVersion");
            map.remove("kind");
            if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("resourceVersion");
            }
        }
        let printed = print(&value);
        let mut metadata = match value.get_mut("metadata").map(Value::take) {
            Some(Value::Object(metadata)) => metadata,
            _ => Map::new(),
        };
        metadata.remove(OWNERS);
        Self { version, metadata, printed, value: OnceLock::new() }
    }

    pub(super) fn from_disk(stored: &[u8], version: u64) -> Result<Self, serde_json::Error> {
        let value: Value = serde_json::from_slice(stored)?;
        Ok(Self::new(value, version))
    }

    /// What goes to the disk, in two parts.
    pub(super) fn stored(&self) -> [&[u8]; 2] {
        [START, &self.printed]
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    /// Without `apiVersion`, `kind` and version.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            let mut value = self.parse();
            let unprinted = self.metadata.iter().filter(|field| !is_printed(*field));
            for (name, empty) in unprinted {
                value["metadata"][name] = empty.clone();
            }
            value
        })
    }

    fn parse(&self) -> Value {
        // It was printed here, hence it can be read.
        serde_json::from_slice(&self.stored().concat()).unwrap_or_default()
    }

    /// The tree of what is printed, not to be kept here: for objects that are large and that few look
    /// into.
    pub(crate) fn tree(&self) -> Value {
        let Some(mut value) = self.value.get().cloned() else { return self.parse() };
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, value| is_printed((name, value)));
        }
        value
    }

    /// What a type takes of it, without a tree of the rest.
    pub(crate) fn part<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.stored().concat())
    }

    /// Without `managedFields`.
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// A text in the metadata, empty when it is absent.
    pub fn meta(&self, field: &str) -> &str {
        self.metadata.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn uid(&self) -> &str {
        self.meta("uid")
    }

    pub fn is_deleting(&self) -> bool {
        !self.meta("deletionTimestamp").is_empty()
    }

    pub fn finalizers(&self) -> Vec<&str> {
        let list = self.metadata.get("finalizers").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub fn labels(&self) -> Option<&Map<String, Value>> {
        self.metadata.get("labels")?.as_object()
    }

    /// Whether it holds something that no reader sees.
    pub fn has_unprinted(&self) -> bool {
        !self.metadata.iter().all(is_printed)
    }

    /// Whether this value, unprinted parts included, is what is stored.
    pub fn is_stored_as(&self, value: &Value) -> bool {
        let other = Self::new(value.clone(), self.version);
        other.printed == self.printed && other.metadata == self.metadata
    }

    /// Whole, as a reader of this version knows it.
    pub fn to_value(&self, api_version: &str, kind: &str) -> Value {
        let mut value = self.tree();
        if let Some(map) = value.as_object_mut() {
            map.insert("apiVersion".into(), api_version.into());
            map.insert("kind".into(), kind.into());
            if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("resourceVersion".into(), self.version.to_string().into());
            }
        }
        value
    }

    /// Printed whole; `version` is that of the object or of the change that removed it.
    ///
    /// `head` is what precedes the metadata, as in `"kind":"Pod","apiVersion":"v1",`.
    pub fn print_into(&self, head: &str, version: u64, out: &mut Vec<u8>) {
        const REST: usize = 64;
        out.reserve(head.len() + self.printed.len() + REST);
        out.push(b'{');
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(br#""metadata":{"resourceVersion":""#);
        out.extend_from_slice(version.to_string().as_bytes());
        // What follows begins with a field or with the end of the metadata.
        out.extend_from_slice(if self.printed.starts_with(b"}") { b"\"" } else { b"\"," });
        out.extend_from_slice(&self.printed);
    }

    /// Bytes of the printed object.
    pub fn size(&self) -> usize {
        self.printed.len()
    }
}

fn print(value: &Value) -> Bytes {
    let mut out = Vec::with_capacity(512);
    let empty = Map::new();
    let map = value.as_object().unwrap_or(&empty);
    let metadata = map.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    print_fields(metadata.iter().filter(|field| is_printed(*field)), &mut out);
    out.push(b'}');
    let others: Vec<_> = map.iter().filter(|(name, _)| *name != "metadata").collect();
    if !others.is_empty() {
        out.push(b',');
        print_fields(others.into_iter(), &mut out);
    }
    out.push(b'}');
    out.shrink_to_fit();
    out.into()
}

fn print_fields<'a>(fields: impl Iterator<Item = (&'a String, &'a Value)>, out: &mut Vec<u8>) {
    for (at, (name, value)) in fields.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        // Neither can fail: the keys are texts and nothing is written but to memory.
        let _ = serde_json::to_writer(&mut *out, name);
        out.push(b':');
        let _ = serde_json::to_writer(&mut *out, value);
    }
}
