//! Definitions that are being deleted take their instances with them.

use std::sync::Arc;

use serde_json::Value;

use super::super::{
    DeleteOptions, Registry, Served, Source, Target,
    catalog::DEFINITIONS,
    definitions,
    delete::{CLEAN_UP, set_finalizers},
    update::is_over,
};
use crate::{
    apply,
    error::Error,
    store::{Key, Object, Transaction},
};

impl Registry {
    /// Deletes the instances of a definition that is going, then lets it go.
    pub(super) async fn clean_up(self: &Arc<Self>, key: &Key) {
        let going = self.store.read().get(key).is_some_and(|found| is_going(found));
        if !going {
            return;
        }
        let key = key.clone();
        self.quietly(move |registry, tx| registry.clean_up_in(tx, &key)).await;
    }

    /// An instance has gone: its definition may have waited for it.
    pub(super) async fn clean_up_after(self: &Arc<Self>, resource: &str) {
        let (group, plural) = resource.split_once('/').unwrap_or_default();
        if !group.is_empty() {
            let name = format!("{plural}.{group}");
            self.clean_up(&Key::new(&DEFINITIONS.into(), "", &name)).await;
        }
    }

    fn clean_up_in(&self, tx: &mut Transaction<'_>, key: &Key) -> Result<(), Error> {
        let Some(definition) = tx.get(key).filter(|found| is_going(found)) else { return Ok(()) };
        let text = |pointer: &str| {
            definition.value().pointer(pointer).and_then(Value::as_str).unwrap_or_default()
        };
        let resource: Arc<str> =
            format!("{}/{}", text("/spec/group"), text("/spec/names/plural")).into();
        let catalog = self.catalog();
        let served = catalog.stored(&resource).filter(|served| is_custom(served));
        for (name, instance) in tx.list(&resource, "") {
            let at = Key { resource: resource.clone(), name };
            match served {
                Some(served) if !instance.is_deleting() => {
                    let target = Target {
                        served: served.clone(),
                        namespace: at.namespace().to_owned(),
                        name: at.name().to_owned(),
                        subresource: String::new(),
                    };
                    self.delete_in(tx, &target, &DeleteOptions::default())?;
                }
                Some(_) => {}
                // No version is served any more, so nobody could take a finalizer off.
                None => {
                    tx.remove(&at);
                }
            }
        }
        if !tx.list(&resource, "").is_empty() {
            if let Some(served) = catalog.stored(DEFINITIONS) {
                let before = served.show(&definition);
                let told = definitions::tell_deletion(served, &before, &Self::time(tx));
                if !apply::same_but_times(&before, &told) {
                    tx.put(key, served.to_stored(told));
                }
            }
            return Ok(());
        }
        let kept = definition.finalizers().into_iter().filter(|name| *name != CLEAN_UP);
        let kept: Vec<_> = kept.map(str::to_owned).collect();
        let mut value = definition.value().clone();
        set_finalizers(&mut value, &kept);
        if is_over(key, &definition, &value) {
            tx.remove(key);
        } else {
            tx.put(key, value);
        }
        Ok(())
    }
}

fn is_going(definition: &Object) -> bool {
    definition.is_deleting() && definition.finalizers().contains(&CLEAN_UP)
}

fn is_custom(served: &Served) -> bool {
    matches!(served.source, Source::Custom(_))
}
