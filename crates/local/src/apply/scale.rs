//! Who owns the number of replicas, told in terms of a `Scale` and back.
//!
//! A write of `/scale` is one of a small object of another kind. Its owners are made from those of
//! the object itself and put back afterwards.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    element::Element,
    managed::{Entry, Managed},
    set::Set,
};

/// How a `Scale` names its version.
pub const API_VERSION: &str = "autoscaling/v1";

/// By `apiVersion`, where the number is; `None` for versions without a scale.
pub type Paths = BTreeMap<String, Option<Vec<String>>>;

fn elements(path: &[String]) -> Vec<Element> {
    path.iter().map(|name| Element::field(name)).collect()
}

fn only(path: &[Element]) -> Set {
    let mut set = Set::default();
    set.insert(path);
    set
}

fn in_scale() -> Vec<Element> {
    ["spec", "replicas"].map(Element::field).to_vec()
}

/// The `managedFields` of the scale of an object that has these.
pub fn to_scale(parent: Option<&Value>, paths: &Paths) -> Option<Value> {
    let parent = Managed::read(parent).unwrap_or_default();
    let entries = parent.entries.into_iter().filter_map(|entry| {
        let path = paths.get(&entry.api_version)?.as_ref()?;
        entry.set.contains(&elements(path)).then(|| Entry {
            api_version: API_VERSION.to_owned(),
            set: only(&in_scale()),
            ..entry
        })
    });
    Managed { entries: entries.collect() }.write()
}

/// The `managedFields` of the object after those of its scale have become `scale`.
pub fn to_parent(
    parent: Option<&Value>,
    scale: Option<&Value>,
    paths: &Paths,
    api_version: &str,
) -> Option<Value> {
    let parent = Managed::read(parent).unwrap_or_default();
    let mut scale = Managed::read(scale).unwrap_or_default().entries;
    let mut entries = Vec::new();
    for mut entry in parent.entries {
        let Some(path) = paths.get(&entry.api_version) else { continue };
        let path = path.as_ref().map(|path| elements(path));
        if let Some(path) = path.filter(|path| entry.set.contains(path)) {
            // Only those who apply are found again: of all others the version is part of the name.
            match scale.iter().position(|other| other.is_of_same(&entry)) {
                Some(at) => {
                    scale.remove(at);
                }
                None => entry.set = entry.set.difference(&only(&path)),
            }
        }
        entries.push(entry);
    }
    let own = paths.get(api_version).and_then(Option::as_ref).map(|path| elements(path));
    let own = own.map(|path| only(&path)).unwrap_or_default();
    entries.extend(scale.into_iter().filter(|entry| entry.set.contains(&in_scale())).map(
        // Kubernetes forgets when.
        |entry| Entry {
            api_version: api_version.to_owned(),
            set: own.clone(),
            time: None,
            ..entry
        },
    ));
    let mut managed = Managed { entries };
    managed.drop_empty();
    managed.write()
}
