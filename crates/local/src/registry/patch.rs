//! Patches of all four kinds. They run in the writer, so that none is ever lost to another; an apply is
//! worked out beside it and counts there only if nobody has changed the object meanwhile.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Answer, Body, Registry, Source, Target, Validation, Write,
    body::{Problems, judge_applied, meta, metadata_mut, set},
    create::Owners,
    update::{Before, From},
};
use crate::{
    apply, builtin,
    error::{Cause, CauseReason, Error, MediaType, Subject},
    patch,
    store::{Object, Transaction},
    types::Typed,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply { force: bool },
}

impl Registry {
    pub async fn patch(
        self: &Arc<Self>,
        target: Target,
        kind: PatchKind,
        body: Body,
        write: Write,
    ) -> Result<Answer, Error> {
        if kind == PatchKind::Strategic && matches!(target.served.source, Source::Custom(_)) {
            return Err(Error::MediaType(MediaType::CustomPatch));
        }
        if kind != PatchKind::Json {
            target.served.check_lists(&body.value)?;
        }
        let mode = write.mode;
        let PatchKind::Apply { force } = kind else {
            let change = move |registry: &Arc<Self>, tx: &mut Transaction<'_>| {
                registry.patch_in(tx, &target, kind, &body, &write)
            };
            return self.change(mode, change).await;
        };
        check_applied(&target, &body.value)?;
        let apply = Apply { target, body, write, force };
        let attempt = self.attempt(&apply);
        let change = move |registry: &Arc<Self>, tx: &mut Transaction<'_>| {
            registry.apply_in(tx, &apply, attempt)
        };
        self.change(mode, change).await
    }

    fn patch_in(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        kind: PatchKind,
        body: &Body,
        write: &Write,
    ) -> Result<Answer, Error> {
        let served = &target.served;
        let Some(old) = tx.get(&target.key()) else {
            return Err(Error::NotFound(target.subject()));
        };
        if target.subresource == "scale" {
            return self.patch_scale(tx, target, &old, kind, body, write);
        }
        let before = Before::of(served, &old);
        let patch = Patch { before: &before.shown, kind, body: &body.value, typed: served.typed() };
        let patched = patch.patched()?;
        served.check_lists(&patched)?;
        let duplicates = body.duplicates.clone();
        let decoded = served.decode_patched(Body { value: patched, duplicates }, &patch)?;
        let mut warnings = patch.judge(decoded.problems, write.validation)?;
        let mut object = decoded.object;
        target.check_names(&mut object)?;
        served.default(&mut object);
        warnings.extend(target.warnings(&object, Some(&before.shown)));
        let body =
            self.update_in(tx, target, before, object, write, Owners::Compare, From::Patch)?;
        Ok(Answer { created: false, body, warnings })
    }

    /// Does beside the writer what can be done without it.
    fn attempt(&self, apply: &Apply) -> Option<Attempt> {
        let Apply { target, .. } = apply;
        if target.subresource == "scale" {
            return None;
        }
        let time = super::seconds(self.store.now());
        let old = self.store.read().get(&target.key()).cloned();
        let on = old.as_ref().map(|old| old.version());
        Some(Attempt { on, outcome: self.applied(apply, old, &time) })
    }

    fn apply_in(
        &self,
        tx: &mut Transaction<'_>,
        apply: &Apply,
        attempt: Option<Attempt>,
    ) -> Result<Answer, Error> {
        let Apply { target, body, write, force } = apply;
        let old = tx.get(&target.key());
        if old.is_none() && !target.subresource.is_empty() {
            return Err(Error::NotFound(target.subject()));
        }
        if target.subresource == "scale" {
            return self.apply_scale(tx, target, body, write, *force);
        }
        let on = old.as_ref().map(|old| old.version());
        let outcome = match attempt.filter(|attempt| attempt.on == on) {
            Some(attempt) => attempt.outcome,
            // Somebody was faster.
            None => self.applied(apply, old, &Self::time(tx)),
        };
        let Applied { before, object, warnings, stage } = outcome?;
        let created = before.is_none();
        let owners = Owners::Applied;
        let body = match (before, stage) {
            (None, _) => self.create_in(tx, target, object, write, owners)?,
            (Some(before), Stage::Ready) => {
                self.store_changed(tx, target, before, object, write.mode)?
            }
            (Some(before), Stage::Merged) => {
                self.update_in(tx, target, before, object, write, owners, From::Patch)?
            }
        };
        Ok(Answer { created, body, warnings })
    }

    /// The outcome of an apply, as far as it depends on the object alone.
    fn applied(
        &self,
        apply: &Apply,
        old: Option<Arc<Object>>,
        time: &str,
    ) -> Result<Applied, Error> {
        let Apply { target, body, write, .. } = apply;
        let served = &target.served;
        let mut config = body.value.clone();
        target.name_config(&mut config)?;
        let mut before = old.as_ref().map(|old| Before::of(served, old));
        let merged = apply.merged(before.as_mut(), &config, time);
        let (mut object, problems) = merged.map_err(|error| refused(target, &body.value, error))?;
        let mut warnings = judge_applied(&body.duplicates, write.validation)?;
        warnings.extend(served.judge(problems, write.validation)?);
        served.default(&mut object);
        warnings.extend(target.warnings(&object, before.as_ref().map(|before| &before.shown)));
        let mut stage = Stage::Merged;
        // New objects and definitions depend on others.
        if let Some(before) = &before
            && !served.defines()
        {
            object = self.update_applied(target, before, object, write, time)?;
            stage = Stage::Ready;
        }
        Ok(Applied { before, object, warnings, stage })
    }
}

/// A request to apply.
struct Apply {
    target: Target,
    body: Body,
    write: Write,
    force: bool,
}

/// An apply that was worked out beside the writer. It counts if the object is still the same.
struct Attempt {
    /// The version of the object; nothing if there was none.
    on: Option<u64>,
    outcome: Result<Applied, Error>,
}

struct Applied {
    before: Option<Before>,
    object: Value,
    warnings: Vec<String>,
    stage: Stage,
}

/// How far an applied object has come.
enum Stage {
    Merged,
    /// Checked, and nothing is left but to store it.
    Ready,
}

impl Apply {
    /// The merged object, read by its kind.
    fn merged(
        &self,
        mut before: Option<&mut Before>,
        config: &Value,
        time: &str,
    ) -> Result<(Value, Problems), Refused> {
        let Self { target, write, force, .. } = self;
        let served = &target.served;
        if let Some(before) = &before {
            check_version(target, &before.stored, config)?;
        }
        // They stand beside the object for the time of the merge.
        let owners = before.as_mut().and_then(|before| {
            metadata_mut(&mut before.shown).and_then(|metadata| metadata.remove("managedFields"))
        });
        let merged = apply::apply(apply::Request {
            live: before.as_ref().map(|before| &before.shown),
            owners: owners.as_ref(),
            config,
            typed: served.typed(),
            manager: &write.manager,
            subresource: Some(&*target.subresource).filter(|name| !name.is_empty()),
            api_version: &served.api_version,
            force: *force,
            time,
            reset: served.reset(&target.subresource),
        });
        if let Some(metadata) = before.and_then(|before| metadata_mut(&mut before.shown)) {
            set(metadata, "managedFields", owners);
        }
        let merged = merged.map_err(Refused::Apply)?;
        let decoded = served.decode_merged(merged)?;
        Ok((decoded.object, decoded.problems))
    }
}

/// A patch that is no apply, and what it is for.
pub(super) struct Patch<'a> {
    pub(super) before: &'a Value,
    pub(super) kind: PatchKind,
    pub(super) body: &'a Value,
    pub(super) typed: Typed<'a>,
}

impl Patch<'_> {
    pub(super) fn patched(&self) -> Result<Value, Error> {
        let Self { before, body, typed, .. } = *self;
        let done = match self.kind {
            PatchKind::Json => patch::json(before, body),
            PatchKind::Strategic if body.is_object() => patch::strategic(before, body, typed),
            _ if !body.is_object() => {
                let text = "error decoding patch: the patch is not an object";
                return Err(Error::BadRequest(text.into()));
            }
            _ => {
                let mut patched = before.clone();
                patch::merge(&mut patched, body);
                Ok(patched)
            }
        };
        done.map_err(|error| match error {
            patch::Error::Decode(_) => Error::BadRequest(error.to_string()),
            patch::Error::Rejected => Error::RejectedPatch,
            patch::Error::Strategic(text) => Error::Unspecific(text),
            patch::Error::TooLarge(_) => Error::PatchTooLarge(error.to_string()),
        })
    }

    /// What it makes of the object is none of its kind.
    pub(super) fn unfit(&self, unfit: &builtin::Unfit) -> Error {
        let strategic = self.kind == PatchKind::Strategic;
        self.invalid(if strategic { &unfit.converted } else { &unfit.read })
    }

    /// The warnings, unless the writer wants none or an error.
    pub(super) fn judge(
        &self,
        problems: Problems,
        validation: Validation,
    ) -> Result<Vec<String>, Error> {
        match validation {
            Validation::Strict if !problems.is_empty() => Err(self.invalid(&problems.strict())),
            Validation::Warn => Ok(problems.warnings()),
            _ => Ok(Vec::new()),
        }
    }

    /// Kubernetes shows what came of the patch, but of a strategic one the patch itself.
    fn invalid(&self, text: &str) -> Error {
        let shown = match self.kind {
            PatchKind::Strategic => apply::go_text(self.body),
            _ => self.patched().unwrap_or_default().to_string(),
        };
        let message = format!("Invalid value: {}: {text}", Value::from(shown));
        let cause = Cause { reason: CauseReason::Invalid, field: "patch".into(), message };
        Error::invalid(Subject::default(), cause)
    }
}

/// What an apply may not say, whatever is stored.
fn check_applied(target: &Target, config: &Value) -> Result<(), Error> {
    let bad = |text: String| Err(Error::BadRequest(text));
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    if !config.is_object() {
        return bad("error decoding YAML: the body is not an object".into());
    }
    if config.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return bad("metadata.managedFields must be nil".into());
    }
    let (kind, api_version) = match &*target.subresource {
        "scale" => ("Scale", apply::scale::API_VERSION),
        _ => (&*target.served.resource.kind, &*target.served.api_version),
    };
    if text("kind") != kind || text("apiVersion") != api_version {
        let version = text("apiVersion");
        let version = if version.contains('/') { version.into() } else { format!("/{version}") };
        return bad(format!("invalid object type: {version}, Kind={}", text("kind")));
    }
    Ok(())
}

impl Target {
    /// The path names what the config leaves out.
    pub(super) fn name_config(&self, config: &mut Value) -> Result<(), Error> {
        if meta(config, "name").is_empty()
            && let Some(metadata) = super::body::metadata_mut(config)
        {
            metadata.insert("name".into(), self.name.as_str().into());
        }
        self.check_names(config)
    }
}

pub(super) fn check_version(target: &Target, old: &Object, config: &Value) -> Result<(), Error> {
    let version = meta(config, "resourceVersion");
    if !version.is_empty() && version != old.version().to_string() {
        return Err(target.modified());
    }
    Ok(())
}

/// Why an apply has not happened.
pub(super) enum Refused {
    Apply(apply::Error),
    Other(Error),
}

impl std::convert::From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// `config` is what was sent, which messages name as it names itself.
pub(super) fn refused(target: &Target, config: &Value, refused: Refused) -> Error {
    let error = match refused {
        Refused::Apply(error) => error,
        Refused::Other(error) => return error,
    };
    let text = error.to_string();
    match error {
        apply::Error::Conflicts(conflicts) => {
            let conflicts =
                conflicts.into_iter().map(|conflict| (conflict.message, conflict.field));
            Error::Owned { text, conflicts: conflicts.collect() }
        }
        apply::Error::Typed(text) => {
            let served = &target.served;
            let (version, kind) = match (&*target.subresource, &*served.resource.group) {
                ("scale", _) => (apply::scale::API_VERSION.to_owned(), "Scale"),
                (_, "") => (format!("/{}", served.resource.version), &*served.resource.kind),
                _ => (served.api_version.clone(), &*served.resource.kind),
            };
            let place = format!("{}/{}", meta(config, "namespace"), meta(config, "name"));
            Error::Unspecific(format!(
                "failed to create typed patch object ({place}; {version}, Kind={kind}): {text}"
            ))
        }
    }
}
