//! An API object of any kind, as it came: the JSON text plus the few metadata the engine works with.
//!
//! Text instead of a tree keeps the caches small, compressed all the more: most of it is managed
//! fields, which repeat themselves. Nothing but broken metadata can make an object unreadable: whether a
//! domain's type fits is found out when the domain reads it.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope},
};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::kind::ObjectKey;

#[derive(Clone)]
pub struct Object {
    pub key: ObjectKey,
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    pub labels: BTreeMap<String, String>,
    pub owners: Vec<OwnerReference>,
    pub deleting: bool,
    pub finalizers: Vec<String>,
    packed: Box<[u8]>,
}

/// The owner that manages the object of this metadata, if it has one.
pub fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    managing(metadata.owner_references.as_deref().unwrap_or_default())
}

/// Whether the object of this metadata is managed by this very owner, not by a namesake of it.
pub fn is_controlled_by(metadata: &ObjectMeta, owner: &ObjectMeta) -> bool {
    let uid = owner.uid.as_ref();
    uid.is_some() && controller(metadata).map(|owner| &owner.uid) == uid
}

fn managing(owners: &[OwnerReference]) -> Option<&OwnerReference> {
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// The JSON text does not fit the type asked for.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {key} as {kind}")]
pub struct Unreadable {
    pub key: ObjectKey,
    pub kind: String,
    pub source: serde_json::Error,
}

impl Object {
    pub fn parse<K: DeserializeOwned>(&self) -> Result<K, Unreadable> {
        serde_json::from_slice(&self.text()).map_err(|source| Unreadable {
            key: self.key.clone(),
            kind: std::any::type_name::<K>().rsplit("::").next().unwrap_or_default().to_owned(),
            source,
        })
    }

    /// The object as a tree.
    pub fn value(&self) -> Value {
        // The text was taken in whole by a parser, so it always parses.
        serde_json::from_slice(&self.text()).unwrap_or_default()
    }

    fn text(&self) -> Vec<u8> {
        // What we packed can always be unpacked.
        lz4_flex::decompress_size_prepended(&self.packed).unwrap_or_default()
    }

    pub fn from_value(value: Value) -> Result<Self, serde_json::Error> {
        Watched::deserialize(value).map(Self::from)
    }

    /// The owner that manages this object, if it has one.
    pub fn controller(&self) -> Option<&OwnerReference> {
        managing(&self.owners)
    }

    /// The name of the Deployment that a pod is of. Its set is named after both the Deployment and the
    /// template, and the template is a label.
    pub fn deployment(&self) -> Option<&str> {
        let set = self.controller().filter(|owner| owner.kind == "ReplicaSet")?;
        let template = self.labels.get("pod-template-hash")?;
        set.name.strip_suffix(template.as_str())?.strip_suffix('-')
    }

    /// Whether `self` was written after `other`, both being versions of one object.
    ///
    /// Versions are compared as numbers, which Kubernetes promises since 1.35 and every etcd-backed
    /// server has always done; a version that is no number counts as newer, as a watch delivers in order.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        match (self.resource_version.parse::<u64>(), other.resource_version.parse::<u64>()) {
            (Ok(ours), Ok(theirs)) => ours > theirs,
            _ => true,
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the content: it may be a Secret's.
        write!(f, "Object({} at {})", self.key, self.resource_version)
    }
}

impl From<Watched> for Object {
    fn from(watched: Watched) -> Self {
        let Watched { metadata, json } = watched;
        Self {
            key: ObjectKey {
                namespace: metadata.namespace,
                name: metadata.name.unwrap_or_default(),
            },
            uid: metadata.uid.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default(),
            owners: metadata.owner_references.unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            finalizers: metadata.finalizers.unwrap_or_default(),
            packed: lz4_flex::compress_prepend_size(json.as_bytes()).into_boxed_slice(),
        }
    }
}

/// The form in which kube's client and watcher hand over an object.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    metadata: ObjectMeta,
    json: Box<str>,
}

/// What we read of an object before somebody asks for the rest. Managed fields, often its larger part,
/// are passed over.
#[derive(Deserialize)]
struct Head {
    metadata: Option<Metadata>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Vec<String>>,
}

impl Watched {
    fn from_text(json: Box<RawValue>) -> Result<Self, serde_json::Error> {
        let head: Head = serde_json::from_str(json.get())?;
        let head = head.metadata.unwrap_or_default();
        let metadata = ObjectMeta {
            name: head.name,
            namespace: head.namespace,
            uid: head.uid,
            resource_version: head.resource_version,
            generation: head.generation,
            labels: head.labels,
            owner_references: head.owner_references,
            deletion_timestamp: head.deletion_timestamp,
            finalizers: head.finalizers,
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, json: json.into() })
    }
}

impl<'de> Deserialize<'de> for Watched {
    /// The text as it was sent: a tree of it would only be made to be written down again.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_text(json).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Watched {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<Value>(&self.json)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl Resource for Watched {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(dt: &ApiResource) -> Cow<'_, str> {
        dt.kind.as_str().into()
    }
    fn group(dt: &ApiResource) -> Cow<'_, str> {
        dt.group.as_str().into()
    }
    fn version(dt: &ApiResource) -> Cow<'_, str> {
        dt.version.as_str().into()
    }
    fn plural(dt: &ApiResource) -> Cow<'_, str> {
        dt.plural.as_str().into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests;
