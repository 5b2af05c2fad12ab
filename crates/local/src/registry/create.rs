//! New objects.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Answer, Body, Content, Registry, Served, Source, Target, Write,
    body::{meta, metadata_mut, set},
    catalog::DEFINITIONS,
    check::{check_depth, check_size, suffix, uid},
};
use crate::{
    apply,
    error::{CauseReason, Error},
    store::{Key, Mode, Transaction},
};

/// The longest base of a generated name.
const BASE: usize = 58;
/// How often a generated name may be taken.
const TRIES: usize = 8;

/// Who records the owners of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owners {
    /// This write, by comparison.
    Compare,
    /// An apply has done so.
    Applied,
}

impl Registry {
    pub async fn create(
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
        if !meta(&object, "resourceVersion").is_empty() {
            let text = "resourceVersion should not be set on objects to be created";
            return Err(Error::Unspecific(text.into()));
        }
        let served = target.served.clone();
        served.default(&mut object);
        warnings.extend(served.warnings(&object, None));
        let body = self.change(write.mode, move |registry, tx| {
            registry.create_in(tx, &target, object, &write, Owners::Compare)
        });
        Ok(Answer { created: true, body: body.await?, warnings })
    }

    /// The object is defaulted.
    pub(super) fn create_in(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        mut object: Value,
        write: &Write,
        owners: Owners,
    ) -> Result<Content, Error> {
        let served = &target.served;
        let version = meta(&object, "resourceVersion").to_owned();
        target.check_namespace(tx, meta(&object, "name"))?;
        name(tx, target, &mut object)?;
        check_definition(tx, target, meta(&object, "name"))?;
        // Nobody owns what is not taken from the body.
        if let Some(metadata) = metadata_mut(&mut object) {
            for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
                metadata.remove(field);
            }
        }
        if owners == Owners::Compare {
            let time = Self::time(tx);
            let update = apply::Update {
                typed: served.typed(),
                manager: &write.manager,
                subresource: None,
                api_version: &served.api_version,
                time: &time,
                reset: served.reset(""),
            };
            object = apply::update(update, None, object);
        }
        drop_status(served, &mut object);
        stamp(tx, served, &mut object)?;
        self.on_create(tx, target, &mut object, write)?;
        served.validate(&object, None)?;
        // Whoever asks by name has asked for a change.
        if !target.name.is_empty() {
            self.check_may_create(target, write)?;
        }
        let key = target.key_of(meta(&object, "name"));
        if let Some(found) = tx.get(&key) {
            let subject = served.subject(key.name());
            return Err(match found.is_deleting() {
                true => Error::StillExists(subject),
                false => Error::AlreadyExists(subject),
            });
        }
        self.check_address(tx, target, &object, None)?;
        check_depth(&object)?;
        served.check_lists(&object)?;
        let stored = tx.put(&key, served.to_stored(object));
        check_size(&stored, write.mode)?;
        self.after_create(tx, target, &key)?;
        if write.mode == Mode::Store {
            return Ok(Content::Stored(stored));
        }
        let mut shown = served.show(&stored);
        // What is not stored gets none. One that came with the body, as it may with PUT, is left alone.
        if let Some(metadata) = metadata_mut(&mut shown) {
            let version = Some(version).filter(|version| !version.is_empty());
            set(metadata, "resourceVersion", version.map(Value::from));
        }
        Ok(Content::Shown(shown))
    }
}

/// A kind that is on its way out gets no new objects, and one that has gone while the request was
/// read gets none either: nobody would ever see them.
fn check_definition(tx: &Transaction<'_>, target: &Target, name: &str) -> Result<(), Error> {
    let served = &target.served;
    let Source::Custom(custom) = &served.source else { return Ok(()) };
    let definition = format!("{}.{}", served.resource.plural, served.resource.group);
    let found = tx.get(&Key::new(&DEFINITIONS.into(), "", &definition));
    match found.filter(|found| found.uid() == custom.uid) {
        None => Err(Error::NoSuchPath),
        Some(found) if found.is_deleting() => {
            let text = "create not allowed while custom resource definition is terminating";
            Err(Error::forbidden(served.subject(name), text))
        }
        Some(_) => Ok(()),
    }
}

/// Takes the name given or makes one.
fn name(tx: &Transaction<'_>, target: &Target, object: &mut Value) -> Result<(), Error> {
    if !meta(object, "name").is_empty() {
        return Ok(());
    }
    let base = meta(object, "generateName");
    if base.is_empty() {
        let message = "Required value: name or generateName is required".into();
        return Err(target.invalid(CauseReason::Required, "metadata.name", message));
    }
    let base = base.chars().scan(0, |length, letter| {
        *length += letter.len_utf8();
        (*length <= BASE).then_some(letter)
    });
    let base: String = base.collect();
    let mut name = format!("{base}{}", suffix()?);
    for _ in 0..TRIES {
        if tx.get(&target.key_of(&name)).is_none() {
            break;
        }
        name = format!("{base}{}", suffix()?);
    }
    if let Some(metadata) = metadata_mut(object) {
        metadata.insert("name".into(), name.into());
    }
    Ok(())
}

/// What only `/status` may say does not come with a new object; defaults of it do.
fn drop_status(served: &Served, object: &mut Value) {
    if !served.resource.has_status {
        return;
    }
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    served.default(object);
}

/// What the server says of every object.
fn stamp(tx: &Transaction<'_>, served: &Served, object: &mut Value) -> Result<(), Error> {
    let time = Registry::time(tx);
    let Some(metadata) = metadata_mut(object) else { return Ok(()) };
    metadata.remove("resourceVersion");
    set(metadata, "uid", Some(uid()?.into()));
    set(metadata, "creationTimestamp", Some(time.into()));
    if served.resource.has_generation {
        set(metadata, "generation", Some(1.into()));
    }
    Ok(())
}
