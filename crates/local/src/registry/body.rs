//! A request's object on its way in: read by its kind, with what is odd about it.

use serde_json::{Map, Value};

use super::{Served, Source, Target, Validation, patch::Patch};
use crate::{
    builtin,
    error::{Cause, CauseReason, Error, Subject},
};

/// A parsed body.
#[derive(Clone, Debug, Default)]
pub struct Body {
    pub value: Value,
    pub duplicates: Duplicates,
}

/// Fields that were there twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// Their paths.
    Fields(Vec<String>),
    /// What YAML tells of them.
    Lines(Vec<String>),
}

impl Default for Duplicates {
    fn default() -> Self {
        Self::Fields(Vec::new())
    }
}

/// What is odd about a body though it can be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Problems {
    /// As in `line 3: key "a" already set in map`.
    lines: Vec<String>,
    /// As in `unknown field "spec.a"`.
    fields: Vec<String>,
}

impl Problems {
    pub(super) fn new(duplicates: &Duplicates, unknown: &[String]) -> Self {
        let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
        match duplicates {
            Duplicates::Lines(lines) => Self { lines: lines.clone(), fields: unknown.collect() },
            Duplicates::Fields(paths) => {
                let twice = paths.iter().map(|path| format!("duplicate field {path:?}"));
                Self { lines: Vec::new(), fields: unknown.chain(twice).collect() }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.fields.is_empty()
    }

    pub(super) fn warnings(self) -> Vec<String> {
        self.lines.into_iter().chain(self.fields).collect()
    }

    pub(super) fn strict(&self) -> String {
        let lines = (!self.lines.is_empty()).then(|| unmarshal(&self.lines));
        let all: Vec<String> = lines.into_iter().chain(self.fields.iter().cloned()).collect();
        format!("strict decoding error: {}", all.join(", "))
    }
}

fn unmarshal(lines: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", lines.join("\n  "))
}

/// The warnings about the text of an apply, which is YAML whatever it looks like.
pub(super) fn judge_applied(
    duplicates: &Duplicates,
    validation: Validation,
) -> Result<Vec<String>, Error> {
    match (duplicates, validation) {
        (Duplicates::Lines(lines), Validation::Strict) if !lines.is_empty() => {
            Err(Error::BadRequest(format!(
                "error strict decoding YAML: error converting YAML to JSON: {}",
                unmarshal(lines)
            )))
        }
        (Duplicates::Lines(lines), Validation::Warn) => Ok(lines.clone()),
        _ => Ok(Vec::new()),
    }
}

/// An object as its kind reads it, not yet defaulted.
pub(super) struct Decoded {
    pub(super) object: Value,
    pub(super) problems: Problems,
}

/// What becomes of nulls in custom objects that may have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nulls {
    Dropped,
    Kept,
}

/// Why a body is not taken.
enum Untaken {
    Refused(Error),
    Unfit(builtin::Unfit),
}

impl From<Error> for Untaken {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<builtin::Unfit> for Untaken {
    fn from(unfit: builtin::Unfit) -> Self {
        Self::Unfit(unfit)
    }
}

impl Served {
    pub(super) fn decode(&self, body: Body) -> Result<Decoded, Error> {
        self.read(body, Nulls::Dropped).map_err(|untaken| self.untaken(untaken))
    }

    /// What a patch has made of an object. That it fits no more is the patch's fault.
    pub(super) fn decode_patched(&self, body: Body, patch: &Patch<'_>) -> Result<Decoded, Error> {
        self.read(body, Nulls::Dropped).map_err(|untaken| match untaken {
            Untaken::Refused(error) => error,
            Untaken::Unfit(unfit) => patch.unfit(&unfit),
        })
    }

    /// An object that was merged from others rather than read. What the merge has emptied is null.
    pub(super) fn decode_merged(&self, value: Value) -> Result<Decoded, Error> {
        let merged = Body { value, ..Body::default() };
        self.read(merged, Nulls::Kept).map_err(|untaken| self.untaken(untaken))
    }

    fn untaken(&self, untaken: Untaken) -> Error {
        match untaken {
            Untaken::Refused(error) => error,
            Untaken::Unfit(unfit) => self.not_this_kind(&unfit.read),
        }
    }

    fn read(&self, body: Body, nulls: Nulls) -> Result<Decoded, Untaken> {
        let Body { mut value, duplicates } = body;
        self.check_kind(&value)?;
        let (object, unknown) = match &self.source {
            Source::Builtin(typed) => {
                mark_reset(&mut value);
                let decoded = builtin::decode(&self.resource, value, *typed)?;
                let mut object = decoded.object;
                if self.is("", "secrets") {
                    // What is written as text is stored, and owned, as data.
                    builtin::on_update(&self.resource, &mut object, &Value::Null);
                }
                (object, decoded.unknown)
            }
            Source::Custom(custom) => {
                let merged = (nulls == Nulls::Kept).then(|| value.get("metadata").cloned());
                let mut unknown = builtin::decode_metadata(&mut value)?;
                keep_empty(&mut value, merged.flatten());
                unknown.extend(custom.version().prune(&mut value));
                if nulls == Nulls::Dropped {
                    custom.version().drop_nulls(&mut value);
                }
                (value, unknown)
            }
        };
        let problems = Problems::new(&duplicates, &unknown);
        Ok(Decoded { object: self.named(object), problems })
    }

    /// Built-in kinds may leave their name out, and always carry it from here on.
    fn named(&self, mut object: Value) -> Value {
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".into(), self.api_version.as_str().into());
            map.insert("kind".into(), self.resource.kind.as_ref().into());
        }
        object
    }

    fn check_kind(&self, value: &Value) -> Result<(), Error> {
        let Some(map) = value.as_object() else {
            let text = "couldn't get version/kind; json parse error: the body is not an object";
            return Err(self.unrecognized(text));
        };
        let text = |name: &str| map.get(name).and_then(Value::as_str).unwrap_or_default();
        let (kind, version) = (text("kind"), text("apiVersion"));
        let custom = matches!(self.source, Source::Custom(_));
        if custom && kind.is_empty() {
            return Err(self.unrecognized(&format!("Object 'Kind' is missing in '{value}'")));
        }
        if custom && version.is_empty() {
            return Err(self.unrecognized(&format!("Object 'apiVersion' is missing in '{value}'")));
        }
        let same_kind = kind.is_empty() || kind == self.resource.kind;
        let same_version = version.is_empty() || version == self.api_version;
        match (same_kind && same_version, custom) {
            (true, _) => Ok(()),
            (false, false) => Err(Error::BadRequest(format!(
                "{kind} in version {:?} cannot be handled as a {}: converting ({version}.{kind}) \
                 to ({}.{}): unknown conversion",
                version.rsplit('/').next().unwrap_or_default(),
                self.resource.kind,
                self.api_version,
                self.resource.kind,
            ))),
            (false, true) => {
                let (field, got, want) = if same_kind {
                    ("apiVersion", version, self.api_version.as_str())
                } else {
                    ("kind", kind, self.resource.kind.as_ref())
                };
                let named = Subject::new(&self.resource.group, kind, meta(value, "name"));
                Err(Error::invalid(
                    named,
                    Cause {
                        reason: CauseReason::Invalid,
                        field: field.into(),
                        message: format!("Invalid value: {got:?}: must be {want}"),
                    },
                ))
            }
        }
    }

    /// A body that is not even JSON.
    pub(crate) fn unreadable(&self, text: &str) -> Error {
        self.unrecognized(&format!("couldn't get version/kind; json parse error: {text}"))
    }

    fn unrecognized(&self, text: &str) -> Error {
        let kind = &self.resource.kind;
        Error::BadRequest(format!(
            "the object provided is unrecognized (must be of type {kind}): {text}"
        ))
    }

    fn not_this_kind(&self, text: &str) -> Error {
        let (kind, version) = (&self.resource.kind, &self.resource.version);
        Error::BadRequest(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {text}"
        ))
    }

    /// The warnings, unless the writer wants none or an error.
    pub(super) fn judge(
        &self,
        problems: Problems,
        validation: Validation,
    ) -> Result<Vec<String>, Error> {
        match validation {
            Validation::Strict if !problems.is_empty() => {
                Err(self.not_this_kind(&problems.strict()))
            }
            Validation::Warn => Ok(problems.warnings()),
            _ => Ok(Vec::new()),
        }
    }
}

impl Problems {
    /// As [`Served::judge`], for a body of a kind that is not the resource's own.
    pub(super) fn judge(self, validation: Validation) -> Result<Vec<String>, String> {
        match validation {
            Validation::Strict if !self.is_empty() => Err(self.strict()),
            Validation::Warn => Ok(self.warnings()),
            _ => Ok(Vec::new()),
        }
    }
}

/// What an apply leaves empty is stored so, and counts as a change, though nobody sees it.
fn keep_empty(object: &mut Value, merged: Option<Value>) {
    let Some(Value::Object(merged)) = merged else { return };
    if let Some(metadata) = metadata_mut(object) {
        for name in ["annotations", "finalizers", "labels", "ownerReferences"] {
            let merged = merged.get(name).filter(|_| !metadata.contains_key(name));
            if let Some(value) = merged {
                metadata.insert(name.to_owned(), value.clone());
            }
        }
    }
}

/// An empty list asks to forget all owners, but would not survive the reading.
fn mark_reset(object: &mut Value) {
    let owners = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    if let Some(owners) = owners.filter(|owners| owners.is_empty()) {
        owners.push(Map::new().into());
    }
}

/// The object's metadata, made if it is missing or is not a map.
pub(super) fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let map = object.as_object_mut()?;
    let metadata = map.entry("metadata").or_insert_with(|| Map::new().into());
    if !metadata.is_object() {
        *metadata = Map::new().into();
    }
    metadata.as_object_mut()
}

pub(super) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    let found = object.get("metadata").and_then(|all| all.get(field));
    found.and_then(Value::as_str).unwrap_or_default()
}

/// Sets or, if there is nothing to set, removes.
pub(super) fn set(map: &mut Map<String, Value>, field: &str, value: Option<Value>) {
    match value {
        Some(value) => map.insert(field.into(), value),
        None => map.remove(field),
    };
}

impl Target {
    /// What the body says of itself must be what the path says. An empty name in the path is one
    /// that the body gives.
    pub(super) fn check_names(&self, object: &mut Value) -> Result<(), Error> {
        let bad = |text: String| Err(Error::BadRequest(text));
        let (name, namespace) = (meta(object, "name"), meta(object, "namespace"));
        if !self.name.is_empty() && name != self.name {
            return bad(match name {
                "" => format!(
                    "the name of the object ({} based on URL) was undeterminable: name must be provided",
                    self.name
                ),
                other => format!(
                    "the name of the object ({other}) does not match the name on the URL ({})",
                    self.name
                ),
            });
        }
        if !namespace.is_empty() && namespace != self.namespace && self.served.resource.namespaced {
            return bad(
                "the namespace of the provided object does not match the namespace sent on the request"
                    .into(),
            );
        }
        let namespace = Some(self.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        if let Some(metadata) = metadata_mut(object) {
            set(metadata, "namespace", namespace.map(Value::from));
        }
        Ok(())
    }
}
