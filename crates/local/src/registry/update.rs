//! Changed objects: PUT, and the last steps of every patch.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Answer, Body, Content, Registry, Served, Source, Target, Write,
    body::{meta, metadata_mut, set},
    check::{NAMESPACES, check_depth, check_size, parse_version},
    create::Owners,
    definitions,
};
use crate::{
    apply,
    error::{Cause, CauseReason, Error},
    store::{Key, Mode, Object, Transaction},
};

/// Where a new uid stands decides how it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Put,
    Patch,
}

/// An object before a write: as it is stored, and as its reader sees it.
pub(super) struct Before {
    pub(super) stored: Arc<Object>,
    pub(super) shown: Value,
}

impl Before {
    pub(super) fn of(served: &Served, stored: &Arc<Object>) -> Self {
        Self { stored: stored.clone(), shown: served.show(stored) }
    }
}

impl Registry {
    pub async fn update(
        self: &Arc<Self>,
        target: Target,
        body: Body,
        write: Write,
    ) -> Result<Answer, Error> {
        target.served.check_lists(&body.value)?;
        let decoded = target.served.decode(body)?;
        let mut warnings = target.served.judge(decoded.problems, write.validation)?;
        let mut object = decoded.object;
        target.check_names(&mut object)?;
        let version = meta(&object, "resourceVersion");
        if !version.is_empty() {
            parse_version(version)?;
        }
        let served = target.served.clone();
        served.default(&mut object);
        let done = self.change(write.mode, move |registry, tx| {
            let Some(old) = tx.get(&target.key()) else {
                if !target.served.resource.put_creates || !target.subresource.is_empty() {
                    return Err(Error::NotFound(target.subject()));
                }
                if !meta(&object, "uid").is_empty() {
                    return Err(other_uid(&target, meta(&object, "uid"), ""));
                }
                let warnings = target.warnings(&object, None);
                let body = registry.create_in(tx, &target, object, &write, Owners::Compare)?;
                return Ok(Answer { created: true, body, warnings });
            };
            check_version_given(&target, &object)?;
            let before = Before::of(&target.served, &old);
            let warnings = target.warnings(&object, Some(&before.shown));
            let owners = Owners::Compare;
            let body =
                registry.update_in(tx, &target, before, object, &write, owners, From::Put)?;
            Ok(Answer { created: false, body, warnings })
        });
        let done = done.await?;
        warnings.extend(done.warnings);
        Ok(Answer { warnings, ..done })
    }

    /// The object is decoded and defaulted.
    #[allow(clippy::too_many_arguments, reason = "each says one thing about the write")]
    pub(super) fn update_in(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        before: Before,
        new: Value,
        write: &Write,
        owners: Owners,
        from: From,
    ) -> Result<Content, Error> {
        let served = &target.served;
        check_preconditions(target, &before.stored, &new, from)?;
        let time = Self::time(tx);
        let new = match owners {
            Owners::Applied => new,
            Owners::Compare => {
                let update = apply::Update {
                    typed: served.typed(),
                    manager: &write.manager,
                    subresource: Some(&*target.subresource).filter(|name| !name.is_empty()),
                    api_version: &served.api_version,
                    time: &time,
                    reset: served.reset(&target.subresource),
                };
                apply::update(update, Some(&before.shown), new)
            }
        };
        let mut new = self.kept(target, &before.shown, new, write, &time)?;
        if target.subresource.is_empty() && served.defines() {
            definitions::accept(tx, served, &mut new);
            // They are applied at every start, and to check one takes long.
            if is_unchanged(&before, &new) && !before.stored.is_deleting() {
                return Ok(Content::Shown(before.shown));
            }
        }
        target.check_changed(&before.shown, &mut new)?;
        self.store_changed(tx, target, before, new, write.mode)
    }

    /// The new object with what this endpoint cannot change, and with what its kind makes of it.
    fn kept(
        &self,
        target: &Target,
        before: &Value,
        new: Value,
        write: &Write,
        time: &str,
    ) -> Result<Value, Error> {
        let mut new = keep(target, before, new);
        self.on_update(target, before, &mut new, write, time)?;
        Ok(new)
    }

    /// What has been applied, ready to be stored in place of the old object: all that is done about an
    /// update without a look at other objects.
    pub(super) fn update_applied(
        &self,
        target: &Target,
        before: &Before,
        applied: Value,
        write: &Write,
        time: &str,
    ) -> Result<Value, Error> {
        check_preconditions(target, &before.stored, &applied, From::Patch)?;
        let mut new = self.kept(target, &before.shown, applied, write, time)?;
        target.check_changed(&before.shown, &mut new)?;
        Ok(new)
    }

    /// By the rule that a write which changes nothing is none.
    pub(super) fn store_changed(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        before: Before,
        new: Value,
        mode: Mode,
    ) -> Result<Content, Error> {
        let (served, key, old) = (&target.served, target.key(), &before.stored);
        if is_over(&key, old, &new) {
            tx.remove(&key);
            return Ok(Content::Shown(new));
        }
        if is_unchanged(&before, &new) {
            return Ok(Content::Shown(before.shown));
        }
        self.check_address(tx, target, &new, Some(&before.shown))?;
        self.check_growth(tx, target, &new, &before.shown)?;
        check_depth(&new)?;
        served.check_lists(&new)?;
        let stored = tx.put(&key, served.to_stored(new));
        check_size(&stored, mode)?;
        if mode == Mode::Store {
            return Ok(Content::Stored(stored));
        }
        let mut shown = served.show(&stored);
        shown["metadata"]["resourceVersion"] = old.version().to_string().into();
        Ok(Content::Shown(shown))
    }
}

impl Target {
    /// Counts the generation on, if that is due, and validates.
    fn check_changed(&self, before: &Value, new: &mut Value) -> Result<(), Error> {
        let served = &self.served;
        if served.resource.has_generation
            && self.subresource != "status"
            && served.is_wanted_differently(before, new)
        {
            raise_generation(new);
        }
        served.validate_through(&self.subresource, new, Some(before))
    }
}

fn is_unchanged(before: &Before, new: &Value) -> bool {
    match before.stored.has_unprinted() {
        true => before.stored.is_stored_as(new),
        false => apply::same_but_times(&before.shown, new),
    }
}

/// Whether an object that is being deleted has nothing left to wait for.
pub(super) fn is_over(key: &Key, old: &Object, new: &Value) -> bool {
    let none = |pointer: &str| {
        new.pointer(pointer).and_then(Value::as_array).is_none_or(|list| list.is_empty())
    };
    let grace = old.metadata().get("deletionGracePeriodSeconds");
    let grace = grace.and_then(Value::as_i64).unwrap_or_default();
    // Only namespaces have finalizers in their spec; elsewhere that is a field like others.
    let spec = *key.resource != *NAMESPACES || none("/spec/finalizers");
    old.is_deleting() && grace == 0 && none("/metadata/finalizers") && spec
}

/// Custom objects, and those of a few other kinds, are never replaced unseen.
fn check_version_given(target: &Target, object: &Value) -> Result<(), Error> {
    let served = &target.served;
    let guarded = matches!(served.source, Source::Custom(_))
        || served.defines()
        || served.is("coordination.k8s.io", "leases")
        || served.is("policy", "poddisruptionbudgets");
    if !guarded || !meta(object, "resourceVersion").is_empty() {
        return Ok(());
    }
    let cause = Cause {
        reason: CauseReason::Invalid,
        field: "metadata.resourceVersion".into(),
        message: "Invalid value: 0: must be specified for an update".into(),
    };
    Err(Error::invalid(target.subject(), cause))
}

fn other_uid(target: &Target, wanted: &str, found: &str) -> Error {
    Error::Conflict {
        subject: target.subject(),
        text: format!(
            "Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
        ),
    }
}

fn check_preconditions(
    target: &Target,
    old: &Object,
    new: &Value,
    from: From,
) -> Result<(), Error> {
    let uid = meta(new, "uid");
    if !uid.is_empty() && uid != old.uid() {
        return Err(match from {
            From::Put => other_uid(target, uid, old.uid()),
            From::Patch => {
                let message = format!("Invalid value: {uid:?}: field is immutable");
                target.invalid(CauseReason::Invalid, "metadata.uid", message)
            }
        });
    }
    let version = meta(new, "resourceVersion");
    if !version.is_empty() {
        // Zero means whichever, as absence does.
        let version = parse_version(version)?;
        if version != 0 && version != old.version() {
            return Err(target.modified());
        }
    }
    Ok(())
}

/// What this endpoint cannot change is taken from the old object.
fn keep(target: &Target, old: &Value, mut new: Value) -> Value {
    let served = &target.served;
    let owners = metadata_mut(&mut new).and_then(|metadata| metadata.remove("managedFields"));
    let mut kept = served.reset(&target.subresource).restore(old, new);
    let before = old.get("metadata");
    if let Some(metadata) = metadata_mut(&mut kept) {
        set(metadata, "managedFields", owners);
        let mut fields = vec!["uid", "creationTimestamp", "deletionTimestamp"];
        fields.extend(["deletionGracePeriodSeconds", "resourceVersion", "namespace"]);
        if served.resource.has_generation {
            fields.push("generation");
        }
        for field in fields {
            set(metadata, field, before.and_then(|all| all.get(field)).cloned());
        }
        metadata.remove("selfLink");
    }
    kept
}

pub(super) fn raise_generation(object: &mut Value) {
    if let Some(metadata) = metadata_mut(object) {
        let old = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
        metadata.insert("generation".into(), old.saturating_add(1).into());
    }
}
