//! Carries a plan out: server-side apply in order of dependency, deletes with preconditions.
//!
//! Nothing is decided here but whether an object is ours. What is not ours is neither written nor
//! deleted, and what is already as wanted is not written again.

mod blind;
mod defaulted;
mod hold;
mod live;
mod predecessor;
mod unchanging;
mod whole;

use std::{borrow::Cow, sync::Arc};

use either::Either;
use futures::future::join_all;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    core::Status,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::{
    cache::Cache,
    compare::{Difference, difference},
    conditions::reasons,
    error::{Category, Error, categorise_write, chain, is_field_conflict},
    kind::{Kind, ObjectKey, Scope},
    labels::{COMPONENT, MANAGED_BY},
    looked::Looked,
    object::{Object, Watched},
    plan::{Desired, HoldsUp, Look, Ownership, Plan, Removal, Strategy, When},
    reader,
    state::{Failure, Phase},
};

use blind::Made;
pub use unchanging::Unchanging;

/// Tells a changed object of [`Strategy::Recreate`].
pub const SPEC_HASH: &str = "windlass.dev/spec-hash";

/// Writes of one controller on their way at once. Each needs a connection with its buffers at both
/// ends, so not too many; but some wait for long without giving the API server work: one that gives
/// rights (a Role, a binding) or an address (a Service) takes ten times as long as others there, and
/// 32 left it idle.
const AT_ONCE: usize = 64;

/// With this version in the body, an apply creates the object or fails: if there is one, its version
/// is another. So an object that somebody else made in the same moment is never overwritten.
const MUST_NOT_EXIST: &str = "1";

pub struct Applier {
    pub client: Client,
    pub cache: Arc<Cache>,
    /// Field manager.
    pub manager: &'static str,
    pub managed_by: &'static str,
    pub name_label: &'static str,
    pub hold: Option<&'static str>,
    pub predecessors: &'static [&'static str],
    pub namespace_label: Option<&'static str>,
    pub unchanging: Unchanging,
    pub slots: Slots,
}

/// Room for the writes that may be on their way at once.
pub struct Slots(Semaphore);

impl Default for Slots {
    fn default() -> Self {
        Self(Semaphore::new(AT_ONCE))
    }
}

/// The object on whose behalf children are written.
#[derive(Clone, Debug)]
pub struct Parent {
    pub kind: Kind,
    pub key: ObjectKey,
    pub uid: String,
    /// The parent's name as it stands in its children's label.
    pub label: String,
}

/// What came of a plan.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    pub written: usize,
    /// Something has changed since the look, and was not written: another look is needed.
    pub skipped: bool,
    pub failures: Vec<Failure>,
    pub corrections: Vec<Correction>,
}

/// A field that somebody else had changed and that is now ours again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    pub kind: Kind,
    pub key: ObjectKey,
    pub difference: Difference,
}

enum Step {
    Unchanged,
    /// The plan was made for what was there before.
    Skipped,
    Written(Option<Correction>),
    Made {
        uid: String,
    },
}

impl Applier {
    pub(crate) async fn run(&self, parent: &Parent, plan: &Plan, looked: &Looked) -> Applied {
        let mut applied = Applied::default();
        for text in &plan.rejected {
            applied.fail(Phase::Apply, Error::invalid_spec("Unserialisable", text.clone()));
        }
        for release in &plan.release {
            let step = self.release(parent, release).await;
            applied.record(Phase::Delete, step);
        }
        self.delete_all(parent, plan, When::BeforeApply, &mut applied).await;
        let mut held_up =
            if applied.failures.is_empty() { HoldsUp::Nothing } else { HoldsUp::Later };
        let mut made = Made::default();
        for tier in plan.tiers() {
            // Later tiers build on this one; within a tier nothing depends on anything.
            if held_up == HoldsUp::Later {
                break;
            }
            let writes = tier.iter().map(|desired| async {
                let _slot = self.slots.0.acquire().await;
                self.apply_one(parent, made.noted_on(desired), looked).await
            });
            let steps = join_all(writes).await;
            for (desired, step) in tier.iter().zip(steps) {
                match &step {
                    Ok(Step::Made { uid }) => made.add(desired, uid),
                    Ok(Step::Written(_)) => made.is_noted_on(desired),
                    Ok(Step::Skipped) => held_up = held_up.max(HoldsUp::Deletes),
                    Ok(Step::Unchanged) => {}
                    Err(_) => held_up = held_up.max(desired.holds_up()),
                }
                applied.record(Phase::Apply, step);
            }
        }
        self.take_back(made).await;
        if held_up == HoldsUp::Nothing {
            self.delete_all(parent, plan, When::AfterApply, &mut applied).await;
        }
        applied
    }

    async fn delete_all(&self, parent: &Parent, plan: &Plan, when: When, applied: &mut Applied) {
        for removal in plan.removals(when) {
            let step = self.delete_one(parent, removal).await;
            applied.record(Phase::Delete, step);
        }
    }

    async fn apply_one(
        &self,
        parent: &Parent,
        mut desired: Desired,
        looked: &Looked,
    ) -> Result<Step, Error> {
        check_scope(parent, &desired)?;
        if desired.strategy == Strategy::Recreate {
            add_spec_hash(&mut desired);
        }
        if desired.ownership == Ownership::Owned {
            add_owner(&mut desired, parent);
        }
        if desired.strategy == Strategy::CreateBlind {
            return self.create_blind(&desired).await;
        }
        let live = self.live_since(looked, &desired.kind, &desired.key).await;
        let live = live.map_err(|error| failed("apply", &desired, error))?;
        if looked.is_outdated_by(&desired.kind, &desired.key, live.as_deref()) {
            return Ok(Step::Skipped);
        }
        match live {
            None => self.create(parent, desired).await,
            Some(live) => self.update(parent, &desired, &live).await,
        }
    }

    async fn create(&self, parent: &Parent, mut desired: Desired) -> Result<Step, Error> {
        set_metadata(&mut desired.body, "resourceVersion", MUST_NOT_EXIST.into());
        let answer = self.patch(&desired, &desired.body).await;
        if let Some(metadata) = desired.metadata_mut() {
            metadata.remove("resourceVersion");
        }
        let desired = &desired;
        match answer {
            Ok(_) => Ok(Step::Written(None)),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                // It exists although the cache does not know it: foreign, or the cache is behind.
                let found = self.api(&desired.kind, &desired.key).get_opt(&desired.key.name).await;
                match found.map_err(|error| failed("apply", desired, error))? {
                    Some(found) => self.update(parent, desired, &found.into()).await,
                    None => Err(Error::infrastructure(
                        "Conflict",
                        format!("{} is changing", describe(desired)),
                    )),
                }
            }
            Err(error) => Err(failed("apply", desired, error)),
        }
    }

    async fn update(
        &self,
        parent: &Parent,
        desired: &Desired,
        live: &Object,
    ) -> Result<Step, Error> {
        if !self.is_ours(parent, desired.ownership, live) && !self.is_orphan(desired, live) {
            return Err(if is_left_behind(parent, live) {
                let what = describe(desired);
                let message = format!("{what} is of an earlier {} and about to go", parent.kind);
                Error::infrastructure("AwaitingGarbageCollection", message)
            } else {
                not_ours(desired, live)
            });
        }
        // Nothing can be changed in an object on its way out; its end is an event.
        if live.deleting {
            return Ok(Step::Unchanged);
        }
        let current = live.value();
        let desired = &self.with_name_of_one_parent(parent, desired, &current);
        match desired.strategy {
            Strategy::Apply | Strategy::ApplyWhole(_) => {}
            Strategy::RecreateFor(field) if current[field] == desired.body[field] => {}
            Strategy::RecreateFor(_) => return self.replace(desired, live).await,
            Strategy::CreateOnce | Strategy::CreateBlind => {
                return self.reclaim(desired, live).await;
            }
            Strategy::Recreate => return self.recreate(desired, live, &current).await,
        }
        let taken_over = self.inherit(desired, live, &current).await?;
        let (live, current) = match &taken_over {
            Some(now) => (now, now.value()),
            None => (live, current),
        };
        let Some((cleared, correction)) = self.clear(desired, live, &current).await? else {
            return self.mend(parent, desired, live, &current).await;
        };
        self.mend(parent, desired, &cleared, &cleared.value()).await?;
        Ok(Step::Written(Some(correction)))
    }

    /// Applies what differs, if anything does.
    async fn mend(
        &self,
        parent: &Parent,
        desired: &Desired,
        live: &Object,
        current: &Value,
    ) -> Result<Step, Error> {
        let Some(difference) = difference(&desired.body, current, self.manager, "") else {
            return Ok(Step::Unchanged);
        };
        if self.unchanging.knows(&parent.key, &desired.kind, live, &desired.body) {
            return Ok(Step::Unchanged);
        }
        if let Some(mut first) = defaulted::with_defaults_in_the_way(desired, current) {
            set_metadata(&mut first, "uid", live.uid.clone().into());
            self.patch(desired, &first).await.map_err(|error| failed("apply", desired, error))?;
        }
        let mut body = desired.body.clone();
        set_metadata(&mut body, "uid", live.uid.clone().into());
        match self.patch(desired, &body).await {
            Ok(now) if now.resource_version == live.resource_version => {
                self.unchanging.remember(&parent.key, &desired.kind, &now, &desired.body);
                Ok(Step::Unchanged)
            }
            // Not the object that was looked at, but one that took its name since.
            Err(kube::Error::Api(status)) if status.code == 422 && names_uid(&status) => Err(
                Error::infrastructure("Conflict", format!("{} was replaced", describe(desired))),
            ),
            Ok(_) => {
                let key = desired.key.clone();
                let drift = difference.holder.is_some();
                let correction = Correction { kind: desired.kind.clone(), key, difference };
                Ok(Step::Written(drift.then_some(correction)))
            }
            Err(error) if is_field_conflict(&error) => Err(field_conflict(desired, error)),
            Err(error) => Err(failed("apply", desired, error)),
        }
    }

    async fn recreate(
        &self,
        desired: &Desired,
        live: &Object,
        current: &Value,
    ) -> Result<Step, Error> {
        let hash = |body: &Value| body["metadata"]["annotations"][SPEC_HASH].clone();
        // Without a hash it was written by a predecessor and is taken as it is.
        if hash(current).is_null() || hash(current) == hash(&desired.body) {
            return self.reclaim(desired, live).await;
        }
        self.replace(desired, live).await
    }

    async fn replace(&self, desired: &Desired, live: &Object) -> Result<Step, Error> {
        self.delete(&desired.kind, live)
            .await
            .map_err(|error| failed("replace", desired, error))?;
        // If it is gone already the new one can follow; otherwise its end is an event.
        match self.cache.get(&desired.kind, &desired.key) {
            Some(Some(_)) => Ok(Step::Written(None)),
            _ => {
                let mut body = desired.body.clone();
                set_metadata(&mut body, "resourceVersion", MUST_NOT_EXIST.into());
                self.patch(desired, &body).await.map_err(|e| failed("replace", desired, e))?;
                Ok(Step::Written(None))
            }
        }
    }

    /// Even where nothing else is changed an object keeps the labels by which we find it, and the
    /// owner with which it goes.
    async fn reclaim(&self, desired: &Desired, live: &Object) -> Result<Step, Error> {
        let wanted = &desired.body["metadata"];
        let label = |key: &str| wanted["labels"][key].as_str();
        let mut metadata = Map::new();
        for key in [MANAGED_BY, COMPONENT, self.name_label] {
            if label(key).is_some() && live.labels.get(key).map(String::as_str) != label(key) {
                let labels = metadata.entry("labels").or_insert_with(|| json!({}));
                labels[key] = label(key).into();
            }
        }
        if desired.ownership == Ownership::Owned && live.controller().is_none() {
            let mut owners = json!(live.owners);
            if let (Value::Array(all), Value::Array(ours)) =
                (&mut owners, &wanted["ownerReferences"])
            {
                all.retain(|known| ours.iter().all(|owner| owner["uid"] != known["uid"]));
                all.extend(ours.iter().cloned());
            }
            metadata.insert("ownerReferences".to_owned(), owners);
            // The list is replaced as a whole, so it must be the one that was read.
            metadata.insert("resourceVersion".to_owned(), live.resource_version.clone().into());
        }
        if metadata.is_empty() {
            return Ok(Step::Unchanged);
        }
        metadata.insert("uid".to_owned(), live.uid.clone().into());
        let params = PatchParams { field_manager: Some(self.manager.into()), ..<_>::default() };
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let api = self.api(&desired.kind, &desired.key);
        let now = api.patch(&desired.key.name, &params, &patch).await;
        let now = now.map_err(|error| failed("reclaim", desired, error))?;
        self.cache.put(&desired.kind, Arc::new(now.into()));
        Ok(Step::Written(None))
    }

    /// What several parents share carries the name of one of them for as long as that one exists;
    /// otherwise each would write its own over the other's.
    fn with_name_of_one_parent<'a>(
        &self,
        parent: &Parent,
        desired: &'a Desired,
        current: &Value,
    ) -> Cow<'a, Desired> {
        let namespace = parent.key.namespace.as_deref();
        let named = current["metadata"]["labels"][self.name_label].as_str();
        let exists = |name: &str| self.cache.named(&parent.kind, namespace, name).is_some();
        if desired.ownership != Ownership::Shared || !named.is_some_and(exists) {
            return Cow::Borrowed(desired);
        }
        let mut desired = desired.clone();
        let metadata = desired.metadata_mut().into_iter().flat_map(|map| map.iter_mut());
        for (field, values) in metadata {
            if let ("labels" | "annotations", Some(values)) =
                (field.as_str(), values.as_object_mut())
            {
                values.remove(self.name_label);
                if let Some(value) = current["metadata"][field].get(self.name_label) {
                    values.insert(self.name_label.to_owned(), value.clone());
                }
            }
        }
        Cow::Owned(desired)
    }

    async fn delete_one(&self, parent: &Parent, removal: &Removal) -> Result<Step, Error> {
        let failed = |error: kube::Error| {
            let text = chain(&error);
            let message = format!("delete failed for {} {}: {text}", removal.kind, removal.key);
            Error { message, ..categorise_write(&error) }
        };
        if let Look::Known { uid } = &removal.how {
            return self.delete_unseen(removal, uid).await.map_err(failed);
        }
        let live = self.live(&removal.kind, &removal.key).await.map_err(failed)?;
        let Some(live) = live else { return Ok(Step::Unchanged) };
        let outside = removal.key.namespace.is_none() && parent.key.namespace.is_some();
        let ownership = if outside { Ownership::Claimed } else { Ownership::Owned };
        if live.deleting || !self.is_ours(parent, ownership, &live) {
            return Ok(Step::Unchanged);
        }
        self.delete(&removal.kind, &live).await.map_err(failed)?;
        Ok(Step::Written(None))
    }

    /// In the background, dependents too; only this very object, not one that took its name since.
    async fn delete(&self, kind: &Kind, live: &Object) -> Result<(), kube::Error> {
        let preconditions = Preconditions { uid: Some(live.uid.clone()), resource_version: None };
        let params = DeleteParams::background().preconditions(preconditions);
        match self.api(kind, &live.key).delete(&live.key.name, &params).await {
            Ok(Either::Left(object)) => {
                self.cache.put(kind, Arc::new(object.into()));
            }
            Ok(Either::Right(_)) => {
                self.cache.remove(kind, Arc::new(live.clone()));
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.cache.remove(kind, Arc::new(live.clone()));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn patch(&self, desired: &Desired, body: &Value) -> Result<Object, kube::Error> {
        let mut params = PatchParams::apply(self.manager);
        params.force = desired.ownership != Ownership::Shared;
        let api = self.api(&desired.kind, &desired.key);
        let object =
            Object::from(api.patch(&desired.key.name, &params, &Patch::Apply(body)).await?);
        self.cache.put_own(&desired.kind, Arc::new(object.clone()));
        Ok(object)
    }

    fn api(&self, kind: &Kind, key: &ObjectKey) -> Api<Watched> {
        reader::api(&self.client, kind, key.namespace.as_deref())
    }

    /// Whether the labels name this parent. A predecessor may have left them out.
    fn names(&self, parent: &Parent, live: &Object) -> bool {
        let namespace = self.namespace_label.and_then(|key| live.labels.get(key));
        let name = live.labels.get(self.name_label);
        name.is_none_or(|name| *name == parent.label)
            && namespace.is_none_or(|named| Some(named) == parent.key.namespace.as_ref())
    }

    /// By its controlling owner; an object without one (restored from a backup, or orphaned) by our labels.
    fn is_ours(&self, parent: &Parent, ownership: Ownership, live: &Object) -> bool {
        let labelled = live.labels.get(MANAGED_BY).is_some_and(|value| value == self.managed_by);
        match (ownership, live.controller()) {
            (Ownership::Shared, _) => labelled,
            (Ownership::Claimed, _) => labelled && self.names(parent, live),
            (Ownership::Owned, Some(owner)) => owner.uid == parent.uid,
            (Ownership::Owned, None) => {
                labelled && live.labels.get(self.name_label) == Some(&parent.label)
            }
        }
    }
}

impl Applied {
    pub(crate) fn add(&mut self, other: Self) {
        self.written += other.written;
        self.skipped = other.skipped;
        self.failures = other.failures;
        self.corrections.extend(other.corrections);
    }

    fn record(&mut self, phase: Phase, step: Result<Step, Error>) {
        match step {
            Ok(Step::Unchanged) => {}
            Ok(Step::Skipped) => self.skipped = true,
            Ok(Step::Made { .. }) => self.written += 1,
            Ok(Step::Written(correction)) => {
                self.written += 1;
                self.corrections.extend(correction);
            }
            Err(error) => self.fail(phase, error),
        }
    }

    fn fail(&mut self, phase: Phase, error: Error) {
        self.failures.push(Failure { phase, error });
    }
}

/// An owner reference that crosses namespaces makes the garbage collector remove the child.
fn check_scope(parent: &Parent, desired: &Desired) -> Result<(), Error> {
    let fits = match (&parent.key.namespace, desired.kind.scope) {
        (Some(_), Scope::Cluster) => false,
        (Some(namespace), Scope::Namespaced) => desired.key.namespace.as_ref() == Some(namespace),
        (None, _) => true,
    };
    if fits || desired.ownership != Ownership::Owned {
        return Ok(());
    }
    let message = format!(
        "{} cannot be owned by {} {}: an owner must be in the same namespace",
        describe(desired),
        parent.kind,
        parent.key
    );
    Err(Error::invalid_spec("InvalidOwner", message))
}

fn add_owner(desired: &mut Desired, parent: &Parent) {
    let owner = json!({
        "apiVersion": parent.kind.api_version(),
        "kind": parent.kind.kind,
        "name": parent.key.name,
        "uid": parent.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    });
    let Some(metadata) = desired.metadata_mut() else { return };
    let owners = metadata.entry("ownerReferences").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(owners) = owners {
        owners.retain(|known| known["uid"] != owner["uid"]);
        owners.push(owner);
    }
}

fn add_spec_hash(desired: &mut Desired) {
    let mut content = desired.body.clone();
    if let Some(map) = content.as_object_mut() {
        map.remove("metadata");
    }
    let digest = Sha256::digest(content.to_string());
    let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    if let Some(metadata) = desired.metadata_mut() {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        annotations[SPEC_HASH] = hash.into();
    }
}

fn set_metadata(body: &mut Value, field: &str, value: Value) {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(field.to_owned(), value);
    }
}

fn describe(desired: &Desired) -> String {
    format!("{} {}", desired.kind, desired.key)
}

fn failed(verb: &str, desired: &Desired, error: kube::Error) -> Error {
    let text = match &error {
        kube::Error::Api(status) => status.message.clone(),
        other => chain(other),
    };
    let message = format!("failed to {verb} {} {}: {text}", desired.kind, desired.key.name);
    Error { message, ..categorise_write(&error) }.with_cause(error)
}

/// The parent was deleted and made again; the garbage collector has yet to remove this.
fn is_left_behind(parent: &Parent, live: &Object) -> bool {
    live.controller().is_some_and(|owner| {
        owner.kind == parent.kind.kind
            && owner.api_version == parent.kind.api_version()
            && owner.name == parent.key.name
    })
}

fn names_uid(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.field == "metadata.uid")
}

fn field_conflict(desired: &Desired, error: kube::Error) -> Error {
    // Only a person can settle it, like any other refusal of what the object asks for.
    let category = Category::InvalidSpec;
    Error { category, reason: "FieldConflict".to_owned(), ..failed("apply", desired, error) }
}

fn not_ours(desired: &Desired, live: &Object) -> Error {
    let holder = match live.controller() {
        Some(owner) => format!("belongs to {} {}", owner.kind, owner.name),
        None => "was not made by this controller".to_owned(),
    };
    let message = format!(
        "{} exists and {holder}; it is left as it is. Delete or rename it, or choose another name",
        describe(desired)
    );
    Error::invalid_spec(reasons::NOT_OWNED, message)
}
