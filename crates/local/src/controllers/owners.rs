//! Which objects belong to which owner: those that its selector fits and that have no other.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::{
    Api, Resource, ResourceExt,
    api::Patch,
    core::{NamespaceResourceScope, Selector, SelectorExt},
};
use serde_json::{Value, json};

use super::{
    Cache, Context, Error, Kind,
    cache::{controller, version_of},
    patching,
};

/// Whether the labels of this object are what is selected. Who selects nothing does not select all.
pub fn selects(selector: &LabelSelector, object: &impl Resource) -> bool {
    let empty = LabelSelector::default();
    let Ok(parsed) = Selector::try_from(selector.clone()) else { return false };
    *selector != empty
        && parsed.matches(object.meta().labels.as_ref().unwrap_or(&Default::default()))
}

/// As Kubernetes writes the reference to a controller.
pub fn reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        block_owner_deletion: Some(true),
        ..owner.controller_owner_ref(&()).unwrap_or_default()
    }
}

/// An owner, and what it can own.
pub(super) struct Owner<'a, K> {
    pub(super) object: &'a K,
    pub(super) selector: &'a LabelSelector,
    /// What it puts on its objects for as long as they are its own.
    pub(super) finalizer: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Ours,
    Adopt,
    Release,
    Foreign,
}

impl<K: Resource<DynamicType = ()>> Owner<'_, K> {
    fn claim(&self, object: &impl Resource) -> Claim {
        let leaves = self.object.meta().deletion_timestamp.is_some();
        let fits = selects(self.selector, object);
        match controller(object) {
            Some(other) if Some(&other.uid) != self.object.meta().uid.as_ref() => Claim::Foreign,
            Some(_) if fits => Claim::Ours,
            Some(_) if leaves => Claim::Foreign,
            Some(_) => Claim::Release,
            None if fits && !leaves && object.meta().deletion_timestamp.is_none() => Claim::Adopt,
            None => Claim::Foreign,
        }
    }

    /// Whether it is ours already, without a change.
    pub(super) fn owns(&self, object: &impl Resource) -> bool {
        self.claim(object) == Claim::Ours
    }

    fn adoption(&self, object: &impl Resource) -> Value {
        let meta = object.meta();
        let mut owners = meta.owner_references.clone().unwrap_or_default();
        owners.retain(|known| Some(&known.uid) != self.object.meta().uid.as_ref());
        owners.push(reference(self.object));
        let mut finalizers = meta.finalizers.clone().unwrap_or_default();
        let ours = self.finalizer.filter(|ours| finalizers.iter().all(|known| known != ours));
        finalizers.extend(ours.map(str::to_owned));
        ownership(object, &owners, &finalizers)
    }

    fn release(&self, object: &impl Resource) -> Value {
        let meta = object.meta();
        let mut owners = meta.owner_references.clone().unwrap_or_default();
        owners.retain(|known| Some(&known.uid) != self.object.meta().uid.as_ref());
        let mut finalizers = meta.finalizers.clone().unwrap_or_default();
        finalizers.retain(|known| Some(known.as_str()) != self.finalizer);
        ownership(object, &owners, &finalizers)
    }
}

/// Only of the state that was looked at.
fn ownership(object: &impl Resource, owners: &[OwnerReference], finalizers: &[String]) -> Value {
    let meta = object.meta();
    json!({"metadata": {
        "uid": meta.uid,
        "resourceVersion": version_of(object),
        "ownerReferences": owners,
        "finalizers": finalizers,
    }})
}

impl Context {
    /// Those of the objects that belong to the owner: it takes those without an owner that it
    /// selects and lets go of its own that it does not select any more.
    pub(super) async fn claim<K, T>(
        &self,
        owner: &Owner<'_, K>,
        objects: Vec<Arc<T>>,
        cache: &Cache<T>,
    ) -> Result<Vec<Arc<T>>, Error>
    where
        K: Kind + Resource<Scope = NamespaceResourceScope>,
        T: Kind + Resource<Scope = NamespaceResourceScope>,
    {
        let mut ours = Vec::new();
        let namespace = owner.object.namespace().unwrap_or_default();
        let api: Api<T> = self.api(&namespace);
        let mut may_adopt = None;
        for object in objects {
            let patch = match owner.claim(&*object) {
                Claim::Ours => {
                    ours.push(object);
                    continue;
                }
                Claim::Foreign => continue,
                Claim::Release => owner.release(&*object),
                Claim::Adopt => {
                    let may = match may_adopt {
                        Some(may) => may,
                        None => self.is_there_to_stay(owner.object).await?,
                    };
                    may_adopt = Some(may);
                    if !may {
                        continue;
                    }
                    owner.adoption(&*object)
                }
            };
            let name = object.name_any();
            match api.patch(&name, &patching(), &Patch::Merge(patch)).await {
                Ok(changed) => {
                    if owner.owns(&changed) {
                        ours.push(Arc::new(changed.clone()));
                    }
                    cache.note(changed);
                }
                Err(kube::Error::Api(status)) if status.code == 404 => cache.forget(&object),
                Err(error) => return Err(Error::on("change the owner of", &name)(error)),
            }
        }
        Ok(ours)
    }

    /// The API is asked, as the cache may not know of a deletion yet, whose orphans must stay such.
    async fn is_there_to_stay<K>(&self, owner: &K) -> Result<bool, Error>
    where
        K: Kind + Resource<Scope = NamespaceResourceScope>,
    {
        let name = owner.name_any();
        let api: Api<K> = self.api(&owner.namespace().unwrap_or_default());
        let found = api.get_opt(&name).await.map_err(Error::on("read", &name))?;
        Ok(found.is_some_and(|found| {
            found.meta().uid == owner.meta().uid && found.meta().deletion_timestamp.is_none()
        }))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
    use serde_json::{Value, from_value};

    use super::*;

    fn set(leaves: bool) -> ReplicaSet {
        let deleted = leaves.then_some("2026-01-01T00:00:00Z");
        let meta = json!({"name": "r", "uid": "u", "deletionTimestamp": deleted});
        let spec = json!({"selector": {"matchLabels": {"a": "b"}}});
        from_value(json!({"metadata": meta, "spec": spec})).unwrap()
    }

    fn pod(label: &str, owner: Value, leaves: bool) -> Pod {
        let deleted = leaves.then_some("2026-01-01T00:00:00Z");
        let owners: Vec<Value> = if owner.is_null() {
            Vec::new()
        } else {
            vec![json!({"uid": owner, "name": "r", "kind": "ReplicaSet", "apiVersion": "apps/v1",
                        "controller": true})]
        };
        from_value(json!({"metadata": {
            "name": "p", "uid": "p", "resourceVersion": "7", "labels": {"a": label},
            "ownerReferences": owners, "finalizers": ["x.io/other"], "deletionTimestamp": deleted,
        }}))
        .unwrap()
    }

    #[test]
    fn objects_are_claimed_by_owner_and_selector() {
        use Claim::{Adopt, Foreign, Ours, Release};
        let none = Value::Null;
        for (pod, owner_leaves, want) in [
            (pod("b", json!("u"), false), false, Ours),
            (pod("b", json!("u"), true), false, Ours),
            (pod("b", json!("other"), false), false, Foreign),
            (pod("b", none.clone(), false), false, Adopt),
            (pod("b", none.clone(), true), false, Foreign),
            (pod("b", none.clone(), false), true, Foreign),
            (pod("x", none, false), false, Foreign),
            (pod("x", json!("u"), false), false, Release),
            (pod("x", json!("u"), false), true, Foreign),
        ] {
            let set = set(owner_leaves);
            let selector = &set.spec.as_ref().unwrap().selector;
            let owner = Owner { object: &set, selector, finalizer: None };
            assert_eq!(owner.claim(&pod), want, "{:?} {owner_leaves}", pod.metadata);
        }
    }

    #[test]
    fn adoption_and_release_keep_what_belongs_to_others() {
        let set = set(false);
        let selector = &set.spec.as_ref().unwrap().selector;
        let owner = Owner { object: &set, selector, finalizer: Some("x.io/ours") };
        let adopted = owner.adoption(&pod("b", Value::Null, false));
        assert_eq!(adopted["metadata"]["finalizers"], json!(["x.io/other", "x.io/ours"]));
        assert_eq!(adopted["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(adopted["metadata"]["resourceVersion"], "7");
        let released = owner.release(&pod("x", json!("u"), false));
        assert_eq!(released["metadata"]["ownerReferences"], json!([]));
        assert_eq!(released["metadata"]["finalizers"], json!(["x.io/other"]));
    }

    #[test]
    fn an_empty_selector_selects_nothing() {
        assert!(!selects(&LabelSelector::default(), &pod("b", Value::Null, false)));
    }
}
