//! What the watches have delivered: the newest known version of every object that carries our labels.
//!
//! Answers to our own writes are put in as well, so a pass sees what it has written even before the
//! watch brings it back, and an event that brings nothing new wakes nobody.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use crate::{
    fetch::Selector,
    kind::{Kind, ObjectKey},
    object::Object,
};

/// The caches of one controller, one for each watched kind.
#[derive(Debug, Default)]
pub struct Cache {
    kinds: RwLock<HashMap<Kind, KindCache>>,
    /// Label that names the parent: lists by it do not walk through all objects.
    index_label: &'static str,
}

#[derive(Debug, Default)]
struct KindCache {
    objects: HashMap<ObjectKey, Arc<Object>>,
    by_parent: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
}

/// Whether an event brought something that was not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    New,
    Known,
}

impl Cache {
    pub fn new(index_label: &'static str) -> Self {
        Self { kinds: RwLock::default(), index_label }
    }

    /// From now on this kind is answered from here.
    pub fn open(&self, kind: &Kind) {
        self.write().entry(kind.clone()).or_default();
    }

    /// The kind is no longer watched; returns what was known of it.
    pub fn close(&self, kind: &Kind) -> Vec<Arc<Object>> {
        let removed = self.write().remove(kind);
        removed.map(|cache| cache.objects.into_values().collect()).unwrap_or_default()
    }

    /// `None` if the kind is not cached, so the answer must come from elsewhere.
    pub fn get(&self, kind: &Kind, key: &ObjectKey) -> Option<Option<Arc<Object>>> {
        Some(self.read().get(kind)?.objects.get(key).cloned())
    }

    pub fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Option<Vec<Arc<Object>>> {
        let kinds = self.read();
        let cache = kinds.get(kind)?;
        let fits = |object: &&Arc<Object>| {
            namespace.is_none_or(|wanted| object.key.namespace.as_deref() == Some(wanted))
                && selector.matches_labels(&object.labels)
        };
        let mut found: Vec<_> = match (namespace, selector.labels.get(self.index_label)) {
            (Some(namespace), Some(parent)) => {
                let keys = cache.by_parent.get(&ObjectKey::new(Some(namespace), parent));
                keys.into_iter()
                    .flatten()
                    .filter_map(|key| cache.objects.get(key))
                    .filter(fits)
                    .cloned()
                    .collect()
            }
            _ => cache.objects.values().filter(fits).cloned().collect(),
        };
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Some(found)
    }

    /// Takes in a version of an object, unless a newer one is known already.
    pub fn put(&self, kind: &Kind, object: Arc<Object>) -> Change {
        let mut kinds = self.write();
        let Some(cache) = kinds.get_mut(kind) else { return Change::New };
        if let Some(known) = cache.objects.get(&object.key)
            && (known.resource_version == object.resource_version
                || (known.uid == object.uid && known.is_newer_than(&object)))
        {
            return Change::Known;
        }
        cache.unindex(&object.key, self.index_label);
        if let Some(parent) = parent_key(&object, self.index_label) {
            cache.by_parent.entry(parent).or_default().insert(object.key.clone());
        }
        cache.objects.insert(object.key.clone(), object);
        Change::New
    }

    /// The object is gone. A successor of the same name with another uid stays.
    pub fn remove(&self, kind: &Kind, key: &ObjectKey, uid: &str) -> Option<Arc<Object>> {
        let mut kinds = self.write();
        let cache = kinds.get_mut(kind)?;
        if cache.objects.get(key).is_none_or(|known| known.uid != uid) {
            return None;
        }
        cache.unindex(key, self.index_label);
        cache.objects.remove(key)
    }

    /// After a fresh listing: forgets what was not in it and returns that.
    ///
    /// An object newer than the listing was written by us meanwhile and stays.
    pub fn retain(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        listed: &HashSet<ObjectKey>,
        known_before: &HashSet<ObjectKey>,
    ) -> Vec<Arc<Object>> {
        let mut kinds = self.write();
        let Some(cache) = kinds.get_mut(kind) else { return Vec::new() };
        let gone: Vec<ObjectKey> = known_before
            .iter()
            .filter(|key| namespace.is_none_or(|wanted| key.namespace.as_deref() == Some(wanted)))
            .filter(|key| !listed.contains(*key))
            .cloned()
            .collect();
        gone.into_iter()
            .filter_map(|key| {
                cache.unindex(&key, self.index_label);
                cache.objects.remove(&key)
            })
            .collect()
    }

    pub fn keys(&self, kind: &Kind) -> HashSet<ObjectKey> {
        self.read().get(kind).map(|c| c.objects.keys().cloned().collect()).unwrap_or_default()
    }

    pub fn is_open(&self, kind: &Kind) -> bool {
        self.read().contains_key(kind)
    }

    // A panic elsewhere while the lock was held leaves complete entries behind: each change below is
    // one insert or one remove.
    fn read(&self) -> RwLockReadGuard<'_, HashMap<Kind, KindCache>> {
        self.kinds.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<Kind, KindCache>> {
        self.kinds.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KindCache {
    fn unindex(&mut self, key: &ObjectKey, index_label: &str) {
        let Some(parent) = self.objects.get(key).and_then(|o| parent_key(o, index_label)) else {
            return;
        };
        if let Some(children) = self.by_parent.get_mut(&parent) {
            children.remove(key);
            if children.is_empty() {
                self.by_parent.remove(&parent);
            }
        }
    }
}

fn parent_key(object: &Object, index_label: &str) -> Option<ObjectKey> {
    let name = object.labels.get(index_label)?;
    Some(ObjectKey::new(object.key.namespace.as_deref(), name))
}

#[cfg(test)]
mod tests;
