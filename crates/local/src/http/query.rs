//! The options of a request.

use std::time::Duration;

use http::{HeaderMap, header};
use serde_json::Value;

use super::path::decode;
use crate::{
    error::{Cause, CauseReason, Error, Subject},
    registry::{
        DeleteOptions, ListOptions, Match, Policy, Selection, Served, Validation, WatchOptions,
    },
    store::Mode,
};

/// The query of a path, decoded. What is not asked for is ignored.
pub(super) struct Query(Vec<(String, String)>);

const LONGEST_MANAGER: usize = 128;

impl Query {
    pub(super) fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name, true)?, decode(value, true)?))
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

    fn number(&self, name: &str) -> Result<Option<i64>, Error> {
        match self.get(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Error::BadRequest(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
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
        let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let agent = agent.and_then(|agent| agent.split('/').next()).unwrap_or_default();
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

    /// From the body if there is one, else from the query.
    pub(super) fn delete(&self, body: Option<&Value>) -> Result<(DeleteOptions, Mode), Error> {
        let Some(body) = body else {
            let options = DeleteOptions {
                grace: self.number("gracePeriodSeconds")?,
                policy: policy(self.get("propagationPolicy"))?,
                uid: None,
                version: None,
            };
            return Ok((options, self.mode("DeleteOptions")?));
        };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let given = body.get("preconditions");
        let mode = match body.get("dryRun").and_then(Value::as_array) {
            None => self.mode("DeleteOptions")?,
            Some(list) if list.is_empty() => self.mode("DeleteOptions")?,
            Some(list) if list.iter().all(|each| each == "All") => Mode::Try,
            Some(list) => {
                return Err(bad_dry_run("DeleteOptions", list.iter().filter_map(Value::as_str)));
            }
        };
        let in_body = text(body.get("propagationPolicy")).unwrap_or_default();
        let in_query = self.get("propagationPolicy").to_owned();
        let orphans = body.get("orphanDependents").and_then(Value::as_bool);
        let old_policy =
            orphans.map(|orphan| if orphan { Policy::Orphan } else { Policy::Background });
        let options = DeleteOptions {
            grace: match body.get("gracePeriodSeconds").and_then(Value::as_i64) {
                Some(grace) => Some(grace),
                None => self.number("gracePeriodSeconds")?,
            },
            policy: policy(if in_body.is_empty() { &in_query } else { &in_body })?.or(old_policy),
            uid: text(given.and_then(|given| given.get("uid"))),
            version: text(given.and_then(|given| given.get("resourceVersion"))),
        };
        Ok((options, mode))
    }
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
