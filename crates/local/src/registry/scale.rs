//! `/scale`: how many copies, whatever the kind.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Answer, Body, PatchKind, Registry, Source, Target, Write,
    body::{Problems, judge_applied, meta, metadata_mut, set},
    create::Owners,
    patch::{Patch, Refused, check_version, refused},
    update::{Before, From},
};
use crate::{
    apply::{self, scale::API_VERSION},
    builtin,
    crd::ScalePaths,
    error::{Cause, CauseReason, Error, Subject},
    store::{Mode, Object, Transaction},
    types::{self, Typed},
};

/// Stands for a number that a custom object lacks, and that no one can ask for.
const UNSET: i64 = i32::MIN as i64;

/// A scale before it is changed, with all that it takes to bring the change back.
struct Scale<'a> {
    target: &'a Target,
    old: &'a Arc<Object>,
    paths: ScalePaths,
    versions: apply::scale::Paths,
    typed: Typed<'static>,
    /// The object itself.
    object: Value,
    /// The scale, with its owners.
    value: Value,
}

impl Registry {
    pub async fn get_scale(&self, target: &Target) -> Result<Value, Error> {
        let object = self.get(target, None).await?;
        show(target, &target.served.show(&object))
    }

    pub async fn update_scale(
        self: &Arc<Self>,
        target: Target,
        body: Body,
        write: Write,
    ) -> Result<Answer, Error> {
        self.change(write.mode, move |registry, tx| {
            let Some(old) = tx.get(&target.key()) else {
                return Err(Error::NotFound(target.subject()));
            };
            let scale = Scale::new(&target, &old)?;
            let (wanted, unknown) = scale.decode(body.value)?;
            let problems = Problems::new(&body.duplicates, &unknown);
            let mut warnings = problems.judge(write.validation).map_err(|why| cannot(&why))?;
            let wanted = scale.owned(wanted, &write, &Self::time(tx));
            let answer = registry.rescale(tx, scale, wanted, &write)?;
            warnings.extend(answer.warnings);
            Ok(Answer { warnings, ..answer })
        })
        .await
    }

    pub(super) fn patch_scale(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        old: &Arc<Object>,
        kind: PatchKind,
        body: &Body,
        write: &Write,
    ) -> Result<Answer, Error> {
        let scale = Scale::new(target, old)?;
        let patch = Patch { before: &scale.value, kind, body: &body.value, typed: scale.typed };
        let (wanted, unknown) = scale.decode_patched(&patch)?;
        let problems = Problems::new(&body.duplicates, &unknown);
        let mut warnings = patch.judge(problems, write.validation)?;
        let wanted = scale.owned(wanted, write, &Self::time(tx));
        let answer = self.rescale(tx, scale, wanted, write)?;
        warnings.extend(answer.warnings);
        Ok(Answer { warnings, ..answer })
    }

    pub(super) fn apply_scale(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        body: &Body,
        write: &Write,
        force: bool,
    ) -> Result<Answer, Error> {
        let Some(old) = tx.get(&target.key()) else {
            return Err(Error::NotFound(target.subject()));
        };
        let scale = Scale::new(target, &old)?;
        let mut config = body.value.clone();
        target.name_config(&mut config)?;
        check_version(target, &old, &config)?;
        let merged = apply::apply(apply::Request {
            live: Some(&scale.value),
            owners: None,
            config: &config,
            typed: scale.typed,
            manager: &write.manager,
            subresource: Some(&target.subresource),
            api_version: API_VERSION,
            force,
            time: &Self::time(tx),
            reset: apply::Reset::Nothing,
        });
        let merged = merged.map_err(|error| refused(target, &body.value, Refused::Apply(error)))?;
        let mut warnings = judge_applied(&body.duplicates, write.validation)?;
        let (wanted, _) = scale.decode(merged)?;
        let answer = self.rescale(tx, scale, wanted, write)?;
        warnings.extend(answer.warnings);
        Ok(Answer { warnings, ..answer })
    }

    /// Brings what was changed of the scale into the object.
    fn rescale(
        &self,
        tx: &mut Transaction<'_>,
        scale: Scale<'_>,
        wanted: Value,
        write: &Write,
    ) -> Result<Answer, Error> {
        let Scale { target, old, .. } = scale;
        let replicas = scale.replicas(&wanted)?;
        let mut object = scale.object;
        let before = object.pointer("/metadata/managedFields").cloned();
        let owners = apply::scale::to_parent(
            before.as_ref(),
            wanted.pointer("/metadata/managedFields"),
            &scale.versions,
            &target.served.api_version,
        );
        if let Some(metadata) = metadata_mut(&mut object) {
            set(metadata, "managedFields", owners);
            metadata.insert("resourceVersion".into(), meta(&wanted, "resourceVersion").into());
            metadata.insert("uid".into(), meta(&wanted, "uid").into());
        }
        scale.paths.set(&mut object, replicas);
        let before = Before::of(&target.served, old);
        self.update_in(tx, target, before, object, write, Owners::Applied, From::Put)?;
        let now = tx.get(&target.key()).unwrap_or_else(|| old.clone());
        let (before, mut now) = (target.served.show(old), target.served.show(&now));
        if write.mode == Mode::Try {
            now["metadata"]["resourceVersion"] = old.version().to_string().into();
        }
        let warnings = target.served.warnings(&now, Some(&before));
        Ok(Answer { warnings, ..Answer::of(show(target, &now)?) })
    }
}

impl<'a> Scale<'a> {
    fn new(target: &'a Target, old: &'a Arc<Object>) -> Result<Self, Error> {
        let found = (paths(target), types::builtin().kind(API_VERSION, "Scale"));
        let (Some(paths), Some(typed)) = found else {
            return Err(Error::NotFound(target.subject()));
        };
        let object = target.served.show(old);
        let versions = versions(target);
        let mut value = show(target, &object)?;
        if target.served.resource.custom && paths.wanted(&object).is_none() {
            value["spec"]["replicas"] = UNSET.into();
        }
        let owners = object.pointer("/metadata/managedFields");
        let owners = apply::scale::to_scale(owners, &versions);
        if let Some(metadata) = metadata_mut(&mut value) {
            set(metadata, "managedFields", owners);
        }
        Ok(Self { target, old, paths, versions, typed, object, value })
    }

    /// The scale that the body holds, and the fields that no scale has.
    fn decode(&self, body: Value) -> Result<(Value, Vec<String>), Error> {
        self.read(body, |unfit| cannot(&unfit.read))
    }

    fn decode_patched(&self, patch: &Patch<'_>) -> Result<(Value, Vec<String>), Error> {
        self.read(patch.patched()?, |unfit| patch.unfit(&unfit))
    }

    fn read(
        &self,
        body: Value,
        unfit: impl FnOnce(builtin::Unfit) -> Error,
    ) -> Result<(Value, Vec<String>), Error> {
        if !body.is_object() || body.get("kind").is_some_and(|kind| kind != "Scale") {
            return Err(cannot("the body is of another kind"));
        }
        let name = meta(&body, "name");
        if !name.is_empty() && name != self.target.name {
            return Err(Error::BadRequest(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                self.target.name
            )));
        }
        let decoded = builtin::decode_kind(API_VERSION, "Scale", body, self.typed);
        let decoded = decoded.map_err(unfit)?;
        Ok((decoded.object, decoded.unknown))
    }

    /// The scale as it is wanted, with its owners after the write.
    fn owned(&self, wanted: Value, write: &Write, time: &str) -> Value {
        let update = apply::Update {
            typed: self.typed,
            manager: &write.manager,
            subresource: Some(&self.target.subresource),
            api_version: API_VERSION,
            time,
            reset: apply::Reset::Nothing,
        };
        apply::update(update, Some(&self.value), wanted)
    }

    /// The number that is asked for. What custom kinds allow their schema says.
    fn replicas(&self, wanted: &Value) -> Result<i64, Error> {
        let replicas = wanted.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default();
        let custom = self.target.served.resource.custom;
        if custom && replicas == UNSET {
            let path = &self.paths.spec_replicas;
            let text = format!("the spec replicas field {path:?} cannot be empty");
            return Err(Error::BadRequest(text));
        }
        if !custom && replicas < 0 {
            let cause = Cause {
                reason: CauseReason::Invalid,
                field: "spec.replicas".into(),
                message: format!("Invalid value: {replicas}: must be greater than or equal to 0"),
            };
            let subject = Subject::new("autoscaling", "Scale", &self.target.name);
            return Err(Error::invalid(subject, cause));
        }
        Ok(replicas)
    }
}

fn cannot(why: &str) -> Error {
    Error::BadRequest(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}"))
}

fn paths(target: &Target) -> Option<ScalePaths> {
    match &target.served.source {
        Source::Builtin(_) => Some(ScalePaths::builtin()),
        Source::Custom(custom) => custom.version().scale.clone(),
    }
}

/// Where each version of the kind has the number.
fn versions(target: &Target) -> apply::scale::Paths {
    let served = &target.served;
    match &served.source {
        Source::Builtin(_) => {
            let path = ScalePaths::builtin().spec_path();
            [(served.api_version.clone(), Some(path))].into()
        }
        Source::Custom(custom) => {
            let path = |version: &crate::crd::Version| {
                let name = format!("{}/{}", served.resource.group, version.name);
                (name, version.scale.as_ref().map(ScalePaths::spec_path))
            };
            custom.definition.versions.iter().map(path).collect()
        }
    }
}

fn show(target: &Target, object: &Value) -> Result<Value, Error> {
    let Some(paths) = paths(target) else { return Err(Error::NotFound(target.subject())) };
    let mut scale = paths.of(object);
    if let Source::Builtin(_) = target.served.source {
        let selector = object.pointer("/spec/selector").map(selector_text).unwrap_or_default();
        if !selector.is_empty() {
            scale["status"]["selector"] = json!(selector);
        }
    }
    Ok(scale)
}

/// A label selector as clients would type it.
fn selector_text(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let rules = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let rules = rules.filter_map(|rule| {
        let key = rule.get("key")?.as_str()?;
        let values = rule.get("values").and_then(Value::as_array).into_iter().flatten();
        let values: Vec<_> = values.filter_map(Value::as_str).collect();
        Some(match rule.get("operator")?.as_str()? {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        })
    });
    labels.chain(rules).collect::<Vec<_>>().join(",")
}
