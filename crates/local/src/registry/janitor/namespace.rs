//! Namespaces that are being deleted take their content with them.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::super::{DeleteOptions, Registry, Target, start::NAMESPACES, update::is_over};
use crate::{
    error::Error,
    store::{Key, Object, Transaction},
};

/// What of a namespace is still there.
#[derive(Default)]
struct Rest {
    resources: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

impl Registry {
    pub(super) async fn empty_namespace(self: &Arc<Self>, name: &str) {
        let key = Self::namespace_key(name);
        let going = self.store.read().get(&key).is_some_and(|found| found.is_deleting());
        if !going {
            return;
        }
        let name = name.to_owned();
        self.quietly(move |registry, tx| registry.empty_in(tx, &name)).await;
    }

    /// Brings back what somebody has deleted of what every namespace has.
    pub(super) async fn furnish_again(self: &Arc<Self>, name: &str) {
        let complete = {
            let state = self.store.read();
            let stays = state.get(&Self::namespace_key(name)).is_some_and(|ns| !ns.is_deleting());
            let service = Key::new(&"/services".into(), "default", "kubernetes");
            let served =
                name != "default" || (state.get(&service).is_some() && self.is_published(&state));
            let here =
                if stays { self.is_furnished(&state, name) } else { !NAMESPACES.contains(&name) };
            here && served
        };
        if complete {
            return;
        }
        let name = name.to_owned();
        self.quietly(move |registry, tx| {
            registry.furnish_cluster(tx)?;
            let namespace = tx.get(&Self::namespace_key(&name));
            match namespace.is_some_and(|namespace| !namespace.is_deleting()) {
                true => registry.furnish(tx, &name),
                false => Ok(()),
            }
        })
        .await;
    }

    fn empty_in(&self, tx: &mut Transaction<'_>, name: &str) -> Result<(), Error> {
        let rest = self.delete_content(tx, name)?;
        let key = Self::namespace_key(name);
        let Some(namespace) = tx.get(&key).filter(|found| found.is_deleting()) else {
            return Ok(());
        };
        let mut value = namespace.value().clone();
        let conditions = rest.conditions(&namespace, &Self::time(tx));
        value["status"]["conditions"] = conditions.into();
        if rest.resources.is_empty() {
            let finalizers = value.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut);
            if let Some(finalizers) = finalizers {
                finalizers.retain(|finalizer| finalizer != "kubernetes");
            }
        }
        if is_over(&key, &namespace, &value) {
            tx.remove(&key);
        } else if value != *namespace.value() {
            tx.put(&key, value);
        }
        Ok(())
    }

    fn delete_content(&self, tx: &mut Transaction<'_>, name: &str) -> Result<Rest, Error> {
        let (prefix, mut rest) = (format!("{name}/"), Rest::default());
        let catalog = self.catalog();
        for served in catalog.each_stored().filter(|served| served.resource.namespaced) {
            for (_, object) in tx.list(&served.stored_as, &prefix) {
                if object.is_deleting() {
                    continue;
                }
                let target = Target {
                    served: served.clone(),
                    namespace: name.to_owned(),
                    name: object.meta("name").to_owned(),
                    subresource: String::new(),
                };
                let options = DeleteOptions {
                    policy: Some(super::super::Policy::Background),
                    ..DeleteOptions::default()
                };
                self.delete_in(tx, &target, &options)?;
            }
            for (_, object) in tx.list(&served.stored_as, &prefix) {
                *rest
                    .resources
                    .entry(format!("{}.{}", served.resource.plural, served.resource.group))
                    .or_default() += 1;
                for finalizer in object.finalizers() {
                    *rest.finalizers.entry(finalizer.to_owned()).or_default() += 1;
                }
            }
        }
        Ok(rest)
    }
}

impl Rest {
    fn conditions(&self, old: &Object, time: &str) -> Vec<Value> {
        let count = |all: &BTreeMap<String, usize>, word: &str| {
            let each =
                all.iter().map(|(name, count)| format!("{name}{word} {count} resource instances"));
            each.collect::<Vec<_>>().join(", ")
        };
        let no = |kind: &str, reason: &str, message: &str| {
            (kind.to_owned(), "False", reason.to_owned(), message.to_owned())
        };
        let remaining = match self.resources.is_empty() {
            true => no(
                "NamespaceContentRemaining",
                "ContentRemoved",
                "All content successfully removed",
            ),
            false => (
                "NamespaceContentRemaining".into(),
                "True",
                "SomeResourcesRemain".into(),
                format!("Some resources are remaining: {}", count(&self.resources, " has")),
            ),
        };
        let finalizers = match self.finalizers.is_empty() {
            true => no(
                "NamespaceFinalizersRemaining",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
            false => (
                "NamespaceFinalizersRemaining".into(),
                "True",
                "SomeFinalizersRemain".into(),
                format!(
                    "Some content in the namespace has finalizers remaining: {}",
                    count(&self.finalizers, " in")
                ),
            ),
        };
        let all = [
            no(
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            no(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            no(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            remaining,
            finalizers,
        ];
        all.into_iter().map(|condition| dated(condition, old, time)).collect()
    }
}

/// With the time at which its status last changed.
fn dated(
    (kind, status, reason, message): (String, &str, String, String),
    old: &Object,
    time: &str,
) -> Value {
    let before = old.value().pointer("/status/conditions").and_then(Value::as_array);
    let before = before.into_iter().flatten();
    let same = before.clone().find(|known| known["type"] == *kind && known["status"] == status);
    let since = same.and_then(|known| known["lastTransitionTime"].as_str()).unwrap_or(time);
    json!({
        "type": kind,
        "status": status,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    })
}
