//! Which writes are not worth repeating.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

use crate::{
    kind::{Kind, ObjectKey},
    object::Object,
};

/// Applies that turned out to change nothing although they looked as if they would: the server
/// normalises some values in ways we cannot foresee. Remembered, so that they are not sent again.
#[derive(Debug, Default)]
pub struct Unchanging(Mutex<HashMap<ObjectKey, Remembered>>);

/// By child: the hash of what was applied, and the version that it did not change.
type Remembered = HashMap<(Kind, ObjectKey), (u64, String)>;

impl Unchanging {
    pub(crate) fn knows(
        &self,
        parent: &ObjectKey,
        kind: &Kind,
        live: &Object,
        body: &Value,
    ) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry =
            known.get(parent).and_then(|objects| objects.get(&(kind.clone(), live.key.clone())));
        entry.is_some_and(|(hash, version)| {
            *version == live.resource_version && *hash == hash_of(body)
        })
    }

    pub(crate) fn remember(&self, parent: &ObjectKey, kind: &Kind, live: &Object, body: &Value) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = (hash_of(body), live.resource_version.clone());
        let objects = known.entry(parent.clone()).or_default();
        objects.insert((kind.clone(), live.key.clone()), entry);
    }

    /// The parent is gone, and with it the need to remember its children.
    pub fn forget(&self, parent: &ObjectKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(parent);
    }
}

fn hash_of(body: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    body.to_string().hash(&mut hasher);
    hasher.finish()
}
