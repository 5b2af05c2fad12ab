//! Checks and steps that writes share.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Registry, Served, Source, Target, body::meta};
use crate::{
    apply,
    builtin::{self, Storage},
    crd,
    error::{Cause, CauseReason, Error, Subject},
    store::{Key, Mode, Object, Transaction},
};

pub(super) const NAMESPACES: &str = "/namespaces";

impl Served {
    /// Everything that is wrong with the object, as one error.
    pub(super) fn validate(&self, new: &Value, old: Option<&Value>) -> Result<(), Error> {
        self.validate_through("", new, old)
    }

    /// As [`Self::validate`] for what a subresource writes.
    pub(super) fn validate_through(
        &self,
        subresource: &str,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), Error> {
        let causes = match &self.source {
            Source::Builtin(_) if self.defines() => {
                let mut causes = builtin::validate(&self.resource, new, old);
                causes.extend(crd::validate_definition(new, old));
                causes
            }
            Source::Builtin(_) => builtin::validate(&self.resource, new, old),
            Source::Custom(custom) => {
                let mut causes = builtin::validate_metadata(&self.resource, new, old);
                causes.extend(match subresource {
                    "status" => custom.version().validate_status(new, old),
                    _ => custom.version().validate(new, old),
                });
                causes
            }
        };
        match causes.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid { subject: self.subject_kind(meta(new, "name")), causes }),
        }
    }

    /// Fields whose owners do not change through the endpoint.
    pub(super) fn reset(&self, subresource: &str) -> apply::Reset {
        match subresource {
            "status" if self.resource.custom => apply::Reset::AllButStatus,
            "status" if self.is("apps", "deployments") => {
                apply::Reset::Spec { metadata: &["labels"] }
            }
            "status" if self.is("", "pods") => {
                apply::Reset::Spec { metadata: &["deletionTimestamp", "ownerReferences"] }
            }
            "status" => apply::Reset::Spec { metadata: &[] },
            _ if self.resource.has_status => apply::Reset::Status,
            _ => apply::Reset::Nothing,
        }
    }

    /// Whether what is wanted differs, so that the generation rises.
    pub(super) fn is_wanted_differently(&self, old: &Value, new: &Value) -> bool {
        // Kinds that keep their status apart do not count it.
        let keeps_status = self.resource.has_status || matches!(self.source, Source::Builtin(_));
        let annotations = "/metadata/annotations";
        wanted(old, keeps_status) != wanted(new, keeps_status)
            || self.is("apps", "deployments")
                && old.pointer(annotations) != new.pointer(annotations)
    }

    /// What the writer should hear of, now that the object is stored in place of the old one.
    pub(super) fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        match self.resource.storage {
            Storage::WithoutEffect => self.resource.warning().into_iter().collect(),
            _ => builtin::warnings(&self.resource, new, old),
        }
    }
}

impl Target {
    /// Only the main endpoint changes what warnings are about.
    pub(super) fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        match &*self.subresource {
            "status" => Vec::new(),
            _ => self.served.warnings(new, old),
        }
    }
}

/// The fields that say what is wanted.
fn wanted(object: &Value, keeps_status: bool) -> BTreeMap<&String, &Value> {
    let fields = object.as_object().into_iter().flatten();
    let counted = fields.filter(|(name, _)| match name.as_str() {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !keeps_status,
        _ => true,
    });
    counted.collect()
}

impl Target {
    /// New objects need their namespace, and it must not be on its way out.
    pub(super) fn check_namespace(&self, tx: &Transaction<'_>, name: &str) -> Result<(), Error> {
        if !self.served.resource.namespaced {
            return Ok(());
        }
        let namespace = &self.namespace;
        let key = Key::new(&NAMESPACES.into(), "", namespace);
        let Some(found) = tx.get(&key) else {
            return Err(Error::NotFound(Subject::namespace(namespace)));
        };
        if !found.is_deleting() {
            return Ok(());
        }
        Err(Error::Forbidden {
            subject: Some(self.served.subject(name)),
            text: format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            ),
            causes: vec![(
                "NamespaceTerminating",
                format!("namespace {namespace} is being terminated"),
                "metadata.namespace".into(),
            )],
        })
    }

    pub(super) fn modified(&self) -> Error {
        Error::Conflict {
            subject: self.subject(),
            text: "the object has been modified; please apply your changes to the latest version \
                   and try again"
                .into(),
        }
    }

    pub(super) fn invalid(&self, reason: CauseReason, field: &str, message: String) -> Error {
        let subject = self.served.subject_kind(&self.name);
        Error::invalid(subject, Cause { reason, field: field.into(), message })
    }
}

impl Registry {
    pub(super) fn time(tx: &Transaction<'_>) -> String {
        super::seconds(tx.now())
    }
}

/// How deep a stored object may nest, its owners included: deeper ones could not be read again.
const DEEPEST: usize = 120;

pub(super) fn check_depth(object: &Value) -> Result<(), Error> {
    if fits(object, DEEPEST) {
        return Ok(());
    }
    let text = format!("the object and its managedFields nest more than {DEEPEST} levels deep");
    Err(Error::BadRequest(text))
}

/// As much as etcd takes. Every version of an object is also in the history.
const LARGEST: usize = 1536 * 1024;

/// Whether the object may stay in the store. The text is that of etcd, which never sees a dry run.
pub(super) fn check_size(stored: &Object, mode: Mode) -> Result<(), Error> {
    match mode == Mode::Store && stored.size() > LARGEST {
        true => Err(Error::Unspecific("etcdserver: request is too large".into())),
        false => Ok(()),
    }
}

/// How many items a list may have that is gone through item by item. More than anybody needs, and
/// few enough that no write keeps the others waiting.
const LONGEST: usize = 10_000;

impl Served {
    /// Of custom objects, whose lists are mostly taken as they are, only the metadata counts.
    pub(super) fn check_lists(&self, object: &Value) -> Result<(), Error> {
        let mut left = match self.source {
            Source::Builtin(_) => vec![object],
            Source::Custom(_) => object.get("metadata").into_iter().collect(),
        };
        while let Some(value) = left.pop() {
            if let Value::Array(list) = value
                && list.len() > LONGEST
            {
                let got = list.len();
                let text = format!("a list has {got} items, the most that are taken is {LONGEST}");
                return Err(Error::BadRequest(text));
            }
            left.extend(children(value));
        }
        Ok(())
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Object(map) => Box::new(map.values()),
        Value::Array(list) => Box::new(list.iter()),
        _ => Box::new(std::iter::empty()),
    }
}

fn fits(value: &Value, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else { return false };
    match value {
        Value::Object(map) => map.values().all(|value| fits(value, left)),
        Value::Array(list) => list.iter().all(|value| fits(value, left)),
        _ => true,
    }
}

/// A version as clients send it.
pub(super) fn parse_version(text: &str) -> Result<u64, Error> {
    let text_of =
        |why: &str| Error::Unspecific(format!("strconv.ParseUint: parsing {text:?}: {why}"));
    match text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        true => text.parse().map_err(|_| text_of("value out of range")),
        false => Err(text_of("invalid syntax")),
    }
}

/// Random, in the form of a version 4 UUID.
pub(super) fn uid() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| Error::Internal)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

/// Five characters that form no words.
pub(super) fn suffix() -> Result<String, Error> {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut bytes = [0; 5];
    getrandom::fill(&mut bytes).map_err(|_| Error::Internal)?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect())
}
