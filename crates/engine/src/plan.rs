//! What a pass wants to do to the cluster, as a value: `apply` carries it out and decides nothing.

use std::time::Duration;

use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::kind::{Kind, ObjectKey, TypedScope};

/// Ordered changes; the order is settled by [`Plan::tiers`], not by the order of calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub apply: Vec<Desired>,
    pub delete: Vec<Removal>,
    /// Children that no longer need to be held.
    pub release: Vec<Release>,
    /// Look again after this time even if nothing happens in the cluster.
    pub requeue_after: Option<Duration>,
    /// Objects that could not be written down; reported, never dropped.
    pub rejected: Vec<String>,
}

/// An object as it should be, holding only the fields that are ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    pub kind: Kind,
    pub key: ObjectKey,
    pub body: Value,
    pub ownership: Ownership,
    pub strategy: Strategy,
    pub turn: Turn,
    pub note: Option<UidNote>,
}

/// An object made by [`Strategy::CreateBlind`] is known as ours only by the uid in the answer. This
/// keeps it, in an annotation of an object that is written later and may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UidNote {
    pub kind: Kind,
    pub key: ObjectKey,
    pub annotation: &'static str,
}

/// When an object is written among the others of its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// After what its kind builds on.
    OfItsKind,
    /// Before everything else, because another object of the plan then tells that it is there.
    First,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Garbage-collected with the parent, and ours alone: our fields are forced.
    Owned,
    /// Outlives the parent or is shared by several: no owner reference, and a field that somebody
    /// else holds is a conflict to report.
    Shared,
    /// Of one parent alone, but outside of its namespace, so without an owner reference. Ours by its
    /// labels, and then our fields are forced.
    Claimed,
}

/// How a difference between wanted and live is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Apply,
    /// Applied, and the map at this JSON pointer is ours as a whole: keys of others in it go.
    ApplyWhole(&'static str),
    /// The API server refuses changes (claims, most of a Job): what exists is left as it is.
    CreateOnce,
    /// A changed object is deleted and made again; the change is seen by a hash kept on the object.
    Recreate,
    /// The API server refuses a change of this field, and of no other.
    RecreateFor(&'static str),
    /// Made without looking, because it may not be read; what exists is left as it is.
    CreateBlind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub kind: Kind,
    pub key: ObjectKey,
    pub when: When,
    pub how: Look,
}

/// Whether an object is looked at before it is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Only what is ours goes.
    First,
    /// That it is ours is known already: only the one with this uid goes.
    Known { uid: String },
}

/// A child whose hold (see [`crate::domain::Identity`]) is taken off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    pub kind: Kind,
    pub key: ObjectKey,
}

/// How far a failed write reaches: what does not build on it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HoldsUp {
    Nothing,
    /// The old may still be needed, as the new is not there.
    Deletes,
    /// Everything of the later tiers builds on it, and deletes wait too.
    Later,
}

const WORKLOADS: u8 = 6;

/// Deletes follow a successful apply, except where the old object stands in the way of the new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    BeforeApply,
    AfterApply,
}

impl Plan {
    pub fn apply<K>(&mut self, object: &K)
    where
        K: Resource<DynamicType = (), Scope: TypedScope> + Serialize,
    {
        self.add(object, Ownership::Owned, Strategy::of(&Kind::of::<K>()));
    }

    pub fn apply_shared<K>(&mut self, object: &K)
    where
        K: Resource<DynamicType = (), Scope: TypedScope> + Serialize,
    {
        self.add(object, Ownership::Shared, Strategy::of(&Kind::of::<K>()));
    }

    pub fn apply_claimed<K>(&mut self, object: &K)
    where
        K: Resource<DynamicType = (), Scope: TypedScope> + Serialize,
    {
        self.add(object, Ownership::Claimed, Strategy::of(&Kind::of::<K>()));
    }

    pub fn add<K>(&mut self, object: &K, ownership: Ownership, strategy: Strategy)
    where
        K: Resource<DynamicType = (), Scope: TypedScope> + Serialize,
    {
        match Desired::new(object, ownership, strategy) {
            Ok(desired) => self.apply.push(desired),
            Err(cause) => self.rejected.push(format!(
                "{} {} cannot be written as JSON: {cause}",
                K::kind(&()),
                object.name_any()
            )),
        }
    }

    /// Applies an object that tells in an annotation which `K` of that name this plan has made.
    pub fn apply_with_uid_of<K>(
        &mut self,
        object: &(impl Resource<DynamicType = (), Scope: TypedScope> + Serialize),
        name: &str,
        annotation: &'static str,
    ) where
        K: Resource<DynamicType = (), Scope: TypedScope>,
    {
        let before = self.apply.len();
        self.apply(object);
        for added in &mut self.apply[before..] {
            let key = ObjectKey::new(added.key.namespace.as_deref(), name);
            added.note = Some(UidNote { kind: Kind::of::<K>(), key, annotation });
        }
    }

    /// Makes an object that may not be read, as the first of the plan.
    pub fn create_blind_first<K>(&mut self, object: &K)
    where
        K: Resource<DynamicType = (), Scope: TypedScope> + Serialize,
    {
        let before = self.apply.len();
        self.add(object, Ownership::Owned, Strategy::CreateBlind);
        for added in &mut self.apply[before..] {
            added.turn = Turn::First;
        }
    }

    /// Deletes the object if it exists and is ours.
    pub fn delete<K>(&mut self, namespace: Option<&str>, name: &str, when: When)
    where
        K: Resource<DynamicType = (), Scope: TypedScope>,
    {
        self.delete.push(Removal {
            kind: Kind::of::<K>(),
            key: ObjectKey::new(namespace, name),
            when,
            how: Look::First,
        });
    }

    /// Deletes the object without reading it, if it still has the uid with which we made it.
    pub fn delete_blind<K>(&mut self, key: ObjectKey, uid: String, when: When)
    where
        K: Resource<DynamicType = (), Scope: TypedScope>,
    {
        self.delete.push(Removal { kind: Kind::of::<K>(), key, when, how: Look::Known { uid } });
    }

    /// Deletes this very object, which the domain has found to be ours by other signs than its owner.
    pub fn delete_known<K>(&mut self, object: &K, when: When)
    where
        K: Resource<DynamicType = (), Scope: TypedScope>,
    {
        let metadata = object.meta();
        self.delete.push(Removal {
            kind: Kind::of::<K>(),
            key: ObjectKey::new(metadata.namespace.as_deref(), &object.name_any()),
            when,
            how: Look::Known { uid: metadata.uid.clone().unwrap_or_default() },
        });
    }

    /// Takes off the hold, if the object exists, is ours and has it.
    pub fn release<K>(&mut self, namespace: Option<&str>, name: &str)
    where
        K: Resource<DynamicType = (), Scope: TypedScope>,
    {
        let key = ObjectKey::new(namespace, name);
        self.release.push(Release { kind: Kind::of::<K>(), key });
    }

    pub fn requeue_after(&mut self, delay: Duration) {
        self.requeue_after = Some(self.requeue_after.map_or(delay, |known| known.min(delay)));
    }

    /// The objects to apply in groups: what stands in one group may be written in any order.
    pub fn tiers(&self) -> Vec<Vec<&Desired>> {
        let mut sorted: Vec<&Desired> = self.apply.iter().collect();
        sorted.sort_by_key(|d| d.order());
        let mut tiers: Vec<Vec<&Desired>> = Vec::new();
        for desired in sorted {
            match tiers.last_mut() {
                Some(last) if last.first().is_some_and(|d| d.tier() == desired.tier()) => {
                    last.push(desired);
                }
                _ => tiers.push(vec![desired]),
            }
        }
        tiers
    }

    pub fn removals(&self, when: When) -> impl Iterator<Item = &Removal> {
        self.delete.iter().filter(move |removal| removal.when == when)
    }
}

impl Strategy {
    /// What the kind allows: most kinds take changes, some only in part.
    pub fn of(kind: &Kind) -> Self {
        match (kind.group.as_ref(), kind.kind.as_ref()) {
            ("batch", "Job") => Self::Recreate,
            ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
                Self::RecreateFor("roleRef")
            }
            ("", "PersistentVolumeClaim") => Self::CreateOnce,
            _ => Self::Apply,
        }
    }
}

impl Desired {
    pub fn new<K>(
        object: &K,
        ownership: Ownership,
        strategy: Strategy,
    ) -> Result<Self, serde_json::Error>
    where
        K: Resource<DynamicType = (), Scope: TypedScope> + Serialize,
    {
        let kind = Kind::of::<K>();
        let key = ObjectKey::new(object.meta().namespace.as_deref(), &object.name_any());
        let mut body = serde_json::to_value(object)?;
        if let Value::Object(map) = &mut body {
            // Types of CustomResourceDefinitions serialise an empty status; it is never ours to apply here.
            map.remove("status");
            map.insert("apiVersion".to_owned(), kind.api_version().into());
            map.insert("kind".to_owned(), kind.kind.as_ref().into());
        }
        strip_nulls(&mut body);
        Ok(Self { kind, key, body, ownership, strategy, turn: Turn::OfItsKind, note: None })
    }

    pub fn metadata_mut(&mut self) -> Option<&mut Map<String, Value>> {
        self.body.get_mut("metadata")?.as_object_mut()
    }

    /// Dependencies first: accounts, rights, configuration, storage, workloads, routes.
    fn tier(&self) -> u8 {
        if self.turn == Turn::First {
            return 0;
        }
        match (self.kind.group.as_ref(), self.kind.kind.as_ref()) {
            ("", "Namespace") => 1,
            ("", "ServiceAccount") => 2,
            ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => 3,
            // Who may only give rights that it has is asked for the role when it binds it.
            ("rbac.authorization.k8s.io", _) => 4,
            ("", "ConfigMap" | "Secret") => 4,
            ("", "PersistentVolumeClaim") => 5,
            ("gateway.networking.k8s.io" | "networking.istio.io" | "monitoring.coreos.com", _) => 7,
            _ => WORKLOADS,
        }
    }

    /// What must wait when this object could not be written.
    pub fn holds_up(&self) -> HoldsUp {
        match (self.kind.group.as_ref(), self.kind.kind.as_ref()) {
            ("autoscaling" | "policy" | "monitoring.coreos.com", _) => HoldsUp::Nothing,
            ("", "Service") => HoldsUp::Later,
            _ if self.tier() < WORKLOADS => HoldsUp::Later,
            _ => HoldsUp::Deletes,
        }
    }

    fn order(&self) -> (u8, String, String, &ObjectKey) {
        (self.tier(), self.kind.api_version(), self.kind.kind.to_string(), &self.key)
    }
}

fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
