//! The options of a request.

use std::{
    num::{IntErrorKind, ParseIntError},
    time::Duration,
};

use http::{HeaderMap, header};
use serde_json::Value;

use super::path::decode;
use crate::{
    builtin,
    error::{Cause, CauseReason, Error, Subject},
    registry::{
        DeleteOptions, ListOptions, Match, Policy, Selection, Served, Validation, WatchOptions,
    },
    store::Mode,
    types,
};

/// The query of a path, decoded. What is not asked for is ignored.
pub(super) struct Query(Vec<(String, String)>);

const LONGEST_MANAGER: usize = 128;

impl Query {
    pub(super) fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // Go passes over a broken escape. What is no text must not be passed over: a selector
            // that is not there selects everything.
            let text = |part| Some(String::from_utf8_lossy(&decode(part, true)?).into_owned());
            Some((text(name)?, text(value)?))
        });
        Self(pairs.collect())
    }

    pub(super) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        if !self.has(name) {
            return Ok(None);
        }
        match self.get(name) {
            "true" | "1" | "t" | "T" | "True" | "TRUE" => Ok(Some(true)),
            "false" | "0" | "" | "f" | "F" | "False" | "FALSE" => Ok(Some(false)),
            other => Err(Error::BadRequest(format!(
                "unable to convert query parameter {name:?}: {other:?} is not a boolean"
            ))),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Error> {
        match self.get(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|error: ParseIntError| {
                let why = match error.kind() {
                    IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                    _ => "invalid syntax",
                };
                Error::BadRequest(format!("strconv.ParseInt: parsing {text:?}: {why}"))
            }),
        }
    }

    /// Zero is a version too. A text that is no number is the caller's to judge.
    fn version(&self) -> Result<Option<u64>, String> {
        match self.get("resourceVersion") {
            "" => Ok(None),
            text => {
                text.parse().map(Some).map_err(|_| format!("invalid resource version {text:?}"))
            }
        }
    }

    pub(super) fn read_version(&self) -> Result<Option<u64>, Error> {
        self.version().map_err(Error::BadRequest)
    }

    fn version_match(&self) -> Result<Option<Match>, Error> {
        match self.get("resourceVersionMatch") {
            "" => Ok(None),
            "Exact" => Ok(Some(Match::Exact)),
            "NotOlderThan" => Ok(Some(Match::NotOlderThan)),
            other => Err(options(
                "ListOptions",
                "resourceVersionMatch",
                CauseReason::NotSupported,
                format!(
                    "Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\", \"\""
                ),
            )),
        }
    }

    fn selection(&self, served: &Served) -> Result<Selection, Error> {
        Selection::parse(served, self.get("labelSelector"), self.get("fieldSelector"))
    }

    pub(super) fn is_watch(&self) -> Result<bool, Error> {
        Ok(self.flag("watch")?.unwrap_or_default())
    }

    pub(super) fn list(&self, served: &Served) -> Result<ListOptions, Error> {
        if self.flag("sendInitialEvents")?.is_some() {
            return Err(crate::registry::forbidden_option(
                "sendInitialEvents is forbidden for list",
            ));
        }
        let limit = self.number("limit")?.unwrap_or_default();
        // It means nothing here, but must be a number all the same.
        self.number("timeoutSeconds")?;
        Ok(ListOptions {
            selection: self.selection(served)?,
            // A negative one means none.
            limit: usize::try_from(limit).unwrap_or_default(),
            go_on: self.get("continue").to_owned(),
            version: self.read_version()?,
            version_match: self.version_match()?,
        })
    }

    pub(super) fn watch(&self, served: &Served) -> Result<WatchOptions, Error> {
        let seconds = self.number("timeoutSeconds")?.filter(|seconds| *seconds > 0);
        Ok(WatchOptions {
            selection: self.selection(served)?,
            // Here Kubernetes has no better word for a mistake.
            version: self.version().map_err(Error::Unspecific)?,
            bookmarks: self.flag("allowWatchBookmarks")?.unwrap_or_default(),
            initial_events: self.flag("sendInitialEvents")?,
            not_older_than: self.version_match()? == Some(Match::NotOlderThan),
            timeout: seconds
                .and_then(|seconds| u64::try_from(seconds).ok())
                .map(Duration::from_secs),
        })
    }

    pub(super) fn mode(&self, kind: &str) -> Result<Mode, Error> {
        let all: Vec<_> = self.0.iter().filter(|(name, _)| name == "dryRun").collect();
        match all.as_slice() {
            [] => Ok(Mode::Store),
            all if all.iter().all(|(_, value)| value == "All") => Ok(Mode::Try),
            all => Err(bad_dry_run(kind, all.iter().map(|(_, value)| value.as_str()))),
        }
    }

    pub(super) fn validation(&self, kind: &str) -> Result<Validation, Error> {
        match self.get("fieldValidation") {
            "" | "Warn" => Ok(Validation::Warn),
            "Ignore" => Ok(Validation::Ignore),
            "Strict" => Ok(Validation::Strict),
            other => Err(options(
                kind,
                "fieldValidation",
                CauseReason::NotSupported,
                format!(
                    "Unsupported value: {other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
                ),
            )),
        }
    }

    /// The name given, or that of the program that asks.
    pub(super) fn manager(&self, kind: &str, headers: &HeaderMap) -> Result<String, Error> {
        let given = self.get("fieldManager");
        if given.len() > LONGEST_MANAGER {
            let message = format!("Too long: may not be more than {LONGEST_MANAGER} bytes");
            return Err(options(kind, "fieldManager", CauseReason::TooLong, message));
        }
        if !given.is_empty() {
            return Ok(given.to_owned());
        }
        let agent = headers.get(header::USER_AGENT).map_or(&b""[..], |agent| agent.as_bytes());
        let agent = String::from_utf8_lossy(agent);
        let agent = agent.split('/').next().unwrap_or_default();
        let agent: String = agent.chars().take(LONGEST_MANAGER).collect();
        Ok(if agent.is_empty() { "unknown".into() } else { agent })
    }

    /// What a patch needs to be an apply, or must not have otherwise.
    pub(super) fn force(&self, apply: bool) -> Result<bool, Error> {
        let force = self.flag("force")?;
        if apply && self.get("fieldManager").is_empty() {
            let message = "Required value: is required for apply patch".into();
            return Err(options("PatchOptions", "fieldManager", CauseReason::Required, message));
        }
        if !apply && force.is_some() {
            let message = "Forbidden: may not be specified for non-apply patch".into();
            return Err(options("PatchOptions", "force", CauseReason::Forbidden, message));
        }
        Ok(force.unwrap_or_default())
    }

    /// From the body, which is read as `DeleteOptions`, and from the query for what it leaves out.
    pub(super) fn delete(&self, body: Option<Value>) -> Result<(DeleteOptions, Mode), Error> {
        let body = body.map(read_options).transpose()?.unwrap_or_default();
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        let dry_run = body.get("dryRun").and_then(Value::as_array).filter(|list| !list.is_empty());
        let mode = match dry_run {
            None => self.mode("DeleteOptions")?,
            Some(list) if list.iter().all(|each| each == "All") => Mode::Try,
            Some(list) => {
                return Err(bad_dry_run("DeleteOptions", list.iter().filter_map(Value::as_str)));
            }
        };
        let named = text("/propagationPolicy").unwrap_or_else(|| self.get("propagationPolicy"));
        let orphans = match body.get("orphanDependents") {
            Some(orphans) => orphans.as_bool(),
            None => self.flag("orphanDependents")?,
        };
        if orphans.is_some() && !named.is_empty() {
            let message = format!(
                "Invalid value: {named:?}: orphanDependents and deletionPropagation cannot be both set"
            );
            let field = "propagationPolicy";
            return Err(options("DeleteOptions", field, CauseReason::Invalid, message));
        }
        let old_policy =
            orphans.map(|orphan| if orphan { Policy::Orphan } else { Policy::Background });
        let options = DeleteOptions {
            grace: match body.get("gracePeriodSeconds") {
                Some(grace) => grace.as_i64(),
                None => self.number("gracePeriodSeconds")?,
            },
            policy: policy(named)?.or(old_policy),
            uid: text("/preconditions/uid").map(str::to_owned),
            version: text("/preconditions/resourceVersion").map(str::to_owned),
        };
        Ok((options, mode))
    }
}

/// The options of a deletion as their kind has them. What is not of its type must not count as
/// absent, lest something be deleted that was not to be.
fn read_options(body: Value) -> Result<Value, Error> {
    const KIND: &str = "DeleteOptions";
    let name = |field: &str| body.get(field).and_then(Value::as_str).unwrap_or_default();
    let kind = name("kind");
    if !kind.is_empty() && kind != KIND {
        let version = name("apiVersion");
        let text = format!("no kind {kind:?} is registered for version {version:?}");
        return Err(Error::BadRequest(text));
    }
    if body.is_null() {
        return Ok(body);
    }
    if !body.is_object() {
        let text = "couldn't get version/kind; json parse error: the options are not an object";
        return Err(Error::BadRequest(text.into()));
    }
    let typed = types::builtin().kind("v1", KIND).ok_or(Error::Internal)?;
    let decoded = builtin::decode_kind("v1", KIND, body, typed);
    let decoded = decoded.map_err(|unfit| Error::BadRequest(unfit.read))?;
    Ok(decoded.object)
}

fn policy(text: &str) -> Result<Option<Policy>, Error> {
    match text {
        "" => Ok(None),
        "Background" => Ok(Some(Policy::Background)),
        "Foreground" => Ok(Some(Policy::Foreground)),
        "Orphan" => Ok(Some(Policy::Orphan)),
        other => Err(options(
            "DeleteOptions",
            "propagationPolicy",
            CauseReason::NotSupported,
            format!(
                "Unsupported value: {other:?}: supported values: \"Foreground\", \"Background\", \
                 \"Orphan\", \"nil\""
            ),
        )),
    }
}

fn bad_dry_run<'a>(kind: &str, given: impl Iterator<Item = &'a str>) -> Error {
    let given = Value::from(given.collect::<Vec<_>>());
    let message = format!("Unsupported value: {given}: supported values: \"All\"");
    options(kind, "dryRun", CauseReason::NotSupported, message)
}

fn options(kind: &str, field: &str, reason: CauseReason, message: String) -> Error {
    let subject = Subject::new("meta.k8s.io", kind, "");
    Error::invalid(subject, Cause { reason, field: field.into(), message })
}
