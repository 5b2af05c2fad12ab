//! The newest state in memory, and the indexes over it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
    sync::Arc,
};

use serde_json::Value;

use super::{Change, Expired, Key, Object, history::History};

/// The key within a resource, and what is there.
pub type Entry = (Arc<str>, Arc<Object>);
pub(super) type Objects = BTreeMap<Arc<str>, Arc<Object>>;

pub struct State {
    version: u64,
    resources: HashMap<Arc<str>, Objects>,
    /// The last change of each resource.
    changed: HashMap<Arc<str>, u64>,
    uids: HashMap<String, Key>,
    /// From an owner's uid to those who name it.
    dependents: HashMap<String, BTreeSet<Key>>,
    history: History,
}

impl State {
    pub(super) fn new(version: u64) -> Self {
        Self {
            version,
            resources: HashMap::new(),
            changed: HashMap::new(),
            uids: HashMap::new(),
            dependents: HashMap::new(),
            history: History::new(version),
        }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    /// Later changes have versions above this one, and nothing before it is remembered.
    pub(super) fn go_on_after(&mut self, version: u64) {
        self.version = version.saturating_add(1);
        self.history = History::new(self.version);
    }

    /// The version of the last change to any object of the resource since the start.
    pub fn changed(&self, resource: &str) -> u64 {
        self.changed.get(resource).copied().unwrap_or_default()
    }

    pub fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.resources.get(&key.resource)?.get(&key.name)
    }

    /// In the order of the keys. An empty `prefix` means all, `<namespace>/` those of a namespace.
    pub fn list<'a>(
        &'a self,
        resource: &str,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Object>)> {
        self.resources.get(resource).into_iter().flat_map(move |all| within(all, prefix))
    }

    pub fn count(&self, resource: &str) -> usize {
        self.resources.get(resource).map_or(0, BTreeMap::len)
    }

    /// The resources that have objects.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<str>> {
        self.resources.iter().filter(|(_, all)| !all.is_empty()).map(|(name, _)| name)
    }

    /// The state of one resource as it was at `version`.
    pub fn list_at(
        &self,
        resource: &str,
        prefix: &str,
        version: u64,
    ) -> Result<Vec<Entry>, Expired> {
        let undone = self.history.undo(version)?;
        let mut all: Objects = self
            .list(resource, prefix)
            .map(|(key, object)| (key.clone(), object.clone()))
            .collect();
        let undone = undone.filter(|change| {
            &*change.key.resource == resource && change.key.name.starts_with(prefix)
        });
        for change in undone {
            match &change.old {
                Some(old) => all.insert(change.key.name.clone(), old.clone()),
                None => all.remove(&change.key.name),
            };
        }
        Ok(all.into_iter().collect())
    }

    pub fn find_uid(&self, uid: &str) -> Option<&Key> {
        self.uids.get(uid)
    }

    /// Those whose owner references name this uid.
    pub fn dependents(&self, uid: &str) -> impl Iterator<Item = &Key> {
        self.dependents.get(uid).into_iter().flatten()
    }

    pub(super) fn history(&self) -> &History {
        &self.history
    }

    pub(super) fn publish(&mut self, changes: Vec<Change>) {
        for change in changes {
            self.version = change.version;
            self.changed.insert(change.key.resource.clone(), change.version);
            self.set(&change.key, change.new.clone());
            self.history.push(change);
        }
    }

    pub(super) fn set(&mut self, key: &Key, new: Option<Arc<Object>>) {
        let all = self.resources.entry(key.resource.clone()).or_default();
        let old = match &new {
            Some(object) => all.insert(key.name.clone(), object.clone()),
            None => all.remove(&key.name),
        };
        if let Some(old) = old {
            self.uids.remove(old.uid());
            for owner in owner_uids(&old) {
                if let Some(keys) = self.dependents.get_mut(owner) {
                    keys.remove(key);
                    if keys.is_empty() {
                        self.dependents.remove(owner);
                    }
                }
            }
        }
        if let Some(new) = new {
            self.uids.insert(new.uid().to_owned(), key.clone());
            for owner in owner_uids(&new) {
                self.dependents.entry(owner.to_owned()).or_default().insert(key.clone());
            }
        }
    }
}

pub(super) fn within<'a>(
    all: &'a Objects,
    prefix: &'a str,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Object>)> {
    all.range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
        .take_while(move |(key, _)| key.starts_with(prefix))
}

fn owner_uids(object: &Object) -> impl Iterator<Item = &str> {
    let owners = object.metadata().get("ownerReferences");
    let owners = owners.and_then(Value::as_array).into_iter().flatten();
    owners.filter_map(|owner| owner.get("uid")?.as_str())
}
