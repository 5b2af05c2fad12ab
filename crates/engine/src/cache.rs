//! What the watches have delivered: the newest known version of every object that carries our labels.
//!
//! Answers to our own writes are put in as well, so a pass sees what it has written even before the
//! watch brings it back, and an event that brings nothing new wakes nobody.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use crate::{
    fetch::Selector,
    kind::{Kind, ObjectKey},
    labels::owner_label,
    object::Object,
};

/// The caches of one controller, one for each watched kind.
#[derive(Debug, Default)]
pub struct Cache {
    kinds: RwLock<HashMap<Kind, KindCache>>,
    /// Label that names the parent: lists by it do not walk through all objects.
    index_label: &'static str,
    /// What lies in other namespaces is not watched, so nothing is known of it. Empty for all.
    namespaces: Vec<String>,
    own: Mutex<VecDeque<Version>>,
}

/// One version of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    uid: String,
    resource_version: String,
}

impl Version {
    pub fn of(object: &Object) -> Self {
        Self { uid: object.uid.clone(), resource_version: object.resource_version.clone() }
    }
}

#[derive(Debug, Default)]
struct KindCache {
    objects: HashMap<ObjectKey, Arc<Object>>,
    by_parent: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Whether everything that exists has been seen once. Before, what is not here may exist.
    listed: bool,
    /// The last objects seen to go: the answer to an earlier write may come in after the news of
    /// the object's end, and must not bring it back.
    gone: VecDeque<Arc<Object>>,
}

/// Answers that are overtaken by more ends than this do not occur.
const REMEMBERED_ENDS: usize = 256;

/// Our own last writes: more of them than all passes have under way.
const REMEMBERED_WRITES: usize = 1024;

/// The versions known when a listing began.
pub type Versions = HashMap<ObjectKey, String>;

/// Whether an event brought something that was not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    New,
    Known,
}

impl Cache {
    pub fn new(index_label: &'static str, namespaces: Vec<String>) -> Self {
        Self { kinds: RwLock::default(), index_label, namespaces, own: Mutex::default() }
    }

    fn covers(&self, namespace: Option<&str>) -> bool {
        let watched = |name| self.namespaces.iter().any(|watched| watched == name);
        self.namespaces.is_empty() || namespace.is_none_or(watched)
    }

    /// From now on this kind is watched; it is answered from here once it is listed.
    pub fn open(&self, kind: &Kind) {
        self.write().entry(kind.clone()).or_default();
    }

    /// Everything of this kind that exists has been put in. That is so until the kind is closed: while
    /// a watch is taken up again, what was known is the best answer.
    pub fn listed(&self, kind: &Kind) {
        if let Some(cache) = self.write().get_mut(kind) {
            cache.listed = true;
        }
    }

    /// The kind is no longer watched; returns what was known of it.
    pub fn close(&self, kind: &Kind) -> Vec<Arc<Object>> {
        let removed = self.write().remove(kind);
        removed.map(|cache| cache.objects.into_values().collect()).unwrap_or_default()
    }

    /// `None` if the object might not be here even if it existed: the answer must come from elsewhere.
    pub fn get(&self, kind: &Kind, key: &ObjectKey) -> Option<Option<Arc<Object>>> {
        if !self.covers(key.namespace.as_deref()) {
            return None;
        }
        let kinds = self.read();
        let cache = kinds.get(kind).filter(|cache| cache.listed)?;
        Some(cache.objects.get(key).cloned())
    }

    /// The object if it has been seen, by a watch or as the answer to a write; that it has not says nothing.
    pub fn seen(&self, kind: &Kind, key: &ObjectKey) -> Option<Arc<Object>> {
        self.read().get(kind)?.objects.get(key).cloned()
    }

    /// As [`Cache::get`].
    pub fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Option<Vec<Arc<Object>>> {
        if !self.covers(namespace) {
            return None;
        }
        let kinds = self.read();
        let cache = kinds.get(kind).filter(|cache| cache.listed)?;
        Some(self.select(cache, namespace, selector))
    }

    /// As [`Cache::seen`].
    pub fn list_seen(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Vec<Arc<Object>> {
        let kinds = self.read();
        kinds.get(kind).map(|cache| self.select(cache, namespace, selector)).unwrap_or_default()
    }

    fn select(
        &self,
        cache: &KindCache,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Vec<Arc<Object>> {
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
        found
    }

    /// Takes in a version of an object, unless a newer one is known already.
    pub fn put(&self, kind: &Kind, object: Arc<Object>) -> Change {
        self.put_if(kind, object, false, |known, object| {
            known.resource_version != object.resource_version && object.is_newer_than(known)
        })
    }

    /// Takes in the answer to a write of ours.
    pub fn put_own(&self, kind: &Kind, object: Arc<Object>) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() == REMEMBERED_WRITES {
            own.pop_front();
        }
        own.push_back(Version::of(&object));
        drop(own);
        self.put(kind, object);
    }

    /// Whether this version came of a write of ours: the watch may bring it before the answer.
    pub fn is_own(&self, version: &Version) -> bool {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.iter().rev().any(|known| known == version)
    }

    /// Takes in an object of a listing. A listing is the truth even if its versions are older, as
    /// after a restored backup, except about what has changed here since it began.
    pub fn put_listed(&self, kind: &Kind, object: Arc<Object>, before: &Versions) -> Change {
        self.put_if(kind, object, true, |known, object| {
            known.resource_version != object.resource_version
                && (before.get(&known.key) == Some(&known.resource_version)
                    || object.is_newer_than(known))
        })
    }

    fn put_if(
        &self,
        kind: &Kind,
        object: Arc<Object>,
        listed: bool,
        replaces: impl FnOnce(&Object, &Object) -> bool,
    ) -> Change {
        let mut kinds = self.write();
        let Some(cache) = kinds.get_mut(kind) else { return Change::New };
        let stale = match cache.objects.get(&object.key) {
            Some(known) => !replaces(known, &object),
            // One that only lost our label for a while comes back with a newer version.
            None => {
                !listed
                    && cache.gone.iter().any(|g| g.uid == object.uid && !object.is_newer_than(g))
            }
        };
        if stale {
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
    pub fn remove(&self, kind: &Kind, object: Arc<Object>) {
        let mut kinds = self.write();
        let Some(cache) = kinds.get_mut(kind) else { return };
        if cache.objects.get(&object.key).is_some_and(|known| known.uid == object.uid) {
            cache.unindex(&object.key, self.index_label);
            cache.objects.remove(&object.key);
        }
        if cache.gone.len() == REMEMBERED_ENDS {
            cache.gone.pop_front();
        }
        cache.gone.push_back(object);
    }

    /// After a fresh listing: forgets what was not in it and returns that.
    ///
    /// What was not known when it began was written by us meanwhile and stays.
    pub fn retain(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        listed: &HashSet<ObjectKey>,
        before: &Versions,
    ) -> Vec<Arc<Object>> {
        let mut kinds = self.write();
        let Some(cache) = kinds.get_mut(kind) else { return Vec::new() };
        let gone: Vec<ObjectKey> = before
            .keys()
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

    /// The object of this name, or the one whose name stands in labels as this.
    pub fn named(&self, kind: &Kind, namespace: Option<&str>, label: &str) -> Option<ObjectKey> {
        let kinds = self.read();
        let objects = &kinds.get(kind)?.objects;
        let key = ObjectKey::new(namespace, label);
        if objects.contains_key(&key) {
            return Some(key);
        }
        let stands_for =
            |k: &&ObjectKey| k.namespace == key.namespace && owner_label(&k.name) == label;
        objects.keys().find(stands_for).cloned()
    }

    pub fn keys(&self, kind: &Kind) -> HashSet<ObjectKey> {
        self.read().get(kind).map(|c| c.objects.keys().cloned().collect()).unwrap_or_default()
    }

    pub fn versions(&self, kind: &Kind) -> Versions {
        let kinds = self.read();
        let objects = kinds.get(kind).into_iter().flat_map(|cache| cache.objects.values());
        objects.map(|object| (object.key.clone(), object.resource_version.clone())).collect()
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
