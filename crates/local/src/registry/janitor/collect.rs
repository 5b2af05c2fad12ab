//! The garbage collector.

use std::sync::Arc;

use serde_json::Value;

use super::super::{
    Catalog, DeleteOptions, Policy, Registry, Target,
    body::{metadata_mut, set},
    delete::{FOREGROUND, ORPHAN, set_finalizers},
    update::is_over,
};
use crate::{
    error::Error,
    store::{Key, Object, State, Transaction},
};

#[derive(Clone, Copy)]
pub(super) struct Owner<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
    pub(super) uid: &'a str,
    blocks: bool,
}

pub(super) fn owners(object: &Object) -> impl Iterator<Item = Owner<'_>> {
    let all = object.metadata().get("ownerReferences");
    let all = all.and_then(Value::as_array).into_iter().flatten();
    all.map(|owner| {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        Owner {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            blocks: owner.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or_default(),
        }
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Lives,
    /// It waits for its dependents to go first.
    Waits,
    Gone,
}

impl Registry {
    /// Looks at one object as a dependent and as an owner.
    pub(super) async fn collect(self: &Arc<Self>, key: &Key) {
        let catalog = self.catalog();
        let concerned = {
            let state = self.store.read();
            state.get(key).is_some_and(|object| {
                is_forsaken(&catalog, &state, key, object) || holds_dependents(object)
            })
        };
        if !concerned {
            return;
        }
        let key = key.clone();
        self.quietly(move |registry, tx| {
            let Some(target) = registry.target_of(&key) else { return Ok(()) };
            registry.release(tx, &target, &key)?;
            registry.follow_owners(tx, &target, &key)
        })
        .await;
    }

    fn follow_owners(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        key: &Key,
    ) -> Result<(), Error> {
        let Some(object) = tx.get(key) else { return Ok(()) };
        let catalog = self.catalog();
        let standings: Vec<_> = owners(&object)
            .map(|owner| {
                let found = tx.state().find_uid(owner.uid).cloned();
                let there = found.as_ref().and_then(|found| tx.get(found));
                (standing(&catalog, key, owner, found.as_ref(), there.as_deref()), owner)
            })
            .collect();
        let any = |wanted| standings.iter().any(|(standing, _)| *standing == wanted);
        if standings.is_empty() || !(any(Standing::Gone) || any(Standing::Waits)) {
            return Ok(());
        }
        if any(Standing::Lives) {
            let gone = standings.iter().filter(|(standing, _)| *standing != Standing::Lives);
            let gone: Vec<_> = gone.map(|(_, owner)| owner.uid.to_owned()).collect();
            return self.forget_owners(tx, target, &object, &gone);
        }
        if object.is_deleting() {
            return Ok(());
        }
        let foreground =
            any(Standing::Waits) && tx.state().dependents(object.uid()).next().is_some();
        let policy = foreground.then_some(Policy::Foreground).or_else(|| own_policy(&object));
        let options = DeleteOptions {
            policy: policy.or(Some(Policy::Background)),
            uid: Some(object.uid().to_owned()),
            ..DeleteOptions::default()
        };
        self.delete_in(tx, target, &options).map(|_| ())
    }

    fn forget_owners(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        object: &Object,
        gone: &[String],
    ) -> Result<(), Error> {
        let mut value = object.value().clone();
        let Some(metadata) = metadata_mut(&mut value) else { return Ok(()) };
        let kept = metadata.get("ownerReferences").and_then(Value::as_array).cloned();
        let kept: Vec<_> = kept
            .into_iter()
            .flatten()
            .filter(|owner| !gone.iter().any(|uid| owner.get("uid").is_some_and(|own| own == uid)))
            .collect();
        set(metadata, "ownerReferences", (!kept.is_empty()).then(|| kept.into()));
        tx.put(&target.key(), value);
        Ok(())
    }

    /// Takes the collector's finalizers off an owner that need not wait any more.
    fn release(&self, tx: &mut Transaction<'_>, target: &Target, key: &Key) -> Result<(), Error> {
        let Some(object) = tx.get(key) else { return Ok(()) };
        if !holds_dependents(&object) {
            return Ok(());
        }
        let dependents: Vec<_> = tx.state().dependents(object.uid()).cloned().collect();
        let finalizer = if object.finalizers().contains(&ORPHAN) {
            self.orphan(tx, &object, &dependents)?;
            ORPHAN
        } else if self.is_waited_for(tx, &object, &dependents) {
            return Ok(());
        } else {
            FOREGROUND
        };
        let kept = object.finalizers().into_iter().filter(|name| *name != finalizer);
        let kept: Vec<_> = kept.map(str::to_owned).collect();
        let mut value = object.value().clone();
        set_finalizers(&mut value, &kept);
        if is_over(&target.key(), &object, &value) {
            tx.remove(&target.key());
        } else {
            tx.put(&target.key(), value);
        }
        Ok(())
    }

    fn orphan(
        &self,
        tx: &mut Transaction<'_>,
        owner: &Object,
        dependents: &[Key],
    ) -> Result<(), Error> {
        for key in dependents {
            if let (Some(target), Some(object)) = (self.target_of(key), tx.get(key)) {
                self.forget_owners(tx, &target, &object, &[owner.uid().to_owned()])?;
            }
        }
        Ok(())
    }

    /// Whether a dependent that blocks is still there.
    fn is_waited_for(&self, tx: &Transaction<'_>, owner: &Object, dependents: &[Key]) -> bool {
        dependents.iter().filter_map(|key| tx.get(key)).any(|dependent| {
            owners(&dependent).any(|named| named.uid == owner.uid() && named.blocks)
        })
    }
}

/// Whether an owner has gone or wants its dependents gone.
fn is_forsaken(catalog: &Catalog, state: &State, key: &Key, object: &Object) -> bool {
    owners(object).any(|owner| {
        let found = state.find_uid(owner.uid);
        let there = found.and_then(|found| state.get(found));
        let there = there.map(|there| &**there);
        standing(catalog, key, owner, found, there) != Standing::Lives
    })
}

fn standing(
    catalog: &Catalog,
    dependent: &Key,
    owner: Owner<'_>,
    found: Option<&Key>,
    object: Option<&Object>,
) -> Standing {
    let Some(served) = catalog.stored_kind(owner.api_version, owner.kind) else {
        // Nobody can tell what a kind that is not served means.
        return Standing::Lives;
    };
    let (Some(found), Some(object)) = (found, object) else { return Standing::Gone };
    let same_place = found.namespace().is_empty() || found.namespace() == dependent.namespace();
    if found.resource != served.stored_as || found.name() != owner.name || !same_place {
        return Standing::Gone;
    }
    match object.is_deleting() && object.finalizers().contains(&FOREGROUND) {
        true => Standing::Waits,
        false => Standing::Lives,
    }
}

/// Whether it is being deleted in a way that concerns its dependents first.
fn holds_dependents(object: &Object) -> bool {
    let finalizers = object.finalizers();
    object.is_deleting() && (finalizers.contains(&ORPHAN) || finalizers.contains(&FOREGROUND))
}

fn own_policy(object: &Object) -> Option<Policy> {
    let finalizers = object.finalizers();
    if finalizers.contains(&ORPHAN) {
        return Some(Policy::Orphan);
    }
    finalizers.contains(&FOREGROUND).then_some(Policy::Foreground)
}
