//! What the last lines of a failed container give away.

use super::words::has_sequence;
use crate::error::Error;
use crate::health::redact::redact;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogClass {
    /// The cluster refused the container something it should have been given.
    Platform,
    NotFound,
    Auth,
    Storage,
}

/// In the order of precedence: a hub answers 401 for repositories that do not exist, so not found
/// goes before access.
const MARKS: [(LogClass, &[&[&str]]); 4] = [
    (
        LogClass::Platform,
        &[
            &["rbac:", "not found"],
            &["clusterrole", "not found"],
            &["forbidden", "cannot", "resource"],
            &["serviceaccount", "cannot"],
        ],
    ),
    (
        LogClass::NotFound,
        &[
            &["repository not found"],
            &["repositorynotfounderror"],
            &["404", "not", "found"],
            &["not", "found", "404"],
            &["nosuchkey"],
            &["nosuchbucket"],
            &["model", "not", "found"],
            &["file", "not", "found"],
            &["s3", "404"],
        ],
    ),
    (
        LogClass::Auth,
        &[
            &["access", "denied", "s3"],
            &["s3", "403"],
            &["invalidaccesskeyid"],
            &["signaturedoesnotmatch"],
            &["s3", "unauthorized"],
            &["aws", "credentials", "not", "found"],
            &["nocredentialproviders"],
            &["access to model", "is restricted"],
            &["cannot access gated repo"],
            &["invalid", "token", "huggingface"],
            &["huggingface", "authentication", "failed"],
            &["401", "unauthorized", "hf.co"],
            &["403", "forbidden", "hf.co"],
        ],
    ),
    (
        LogClass::Storage,
        &[
            &["no space left on device"],
            &["disk", "full"],
            &["enospc"],
            &["quota", "exceeded"],
            &["storage", "full"],
        ],
    ),
];

/// How many lines to show of a log that nothing is recognised in.
const TAIL: usize = 3;

pub fn classify_log(log: &str) -> Option<LogClass> {
    find(log).map(|(class, _)| class)
}

/// How much to show of it at most, in bytes.
const LONGEST: usize = 1024;

/// The line that tells, or the last ones, without secrets.
pub(super) fn excerpt(log: &str) -> Option<String> {
    let told = find(log).map(|(_, line)| line.trim().to_owned());
    let shown = told.unwrap_or_else(|| {
        let lines: Vec<&str> = log.trim_end().lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    });
    // Secrets first: half of one would not be recognised.
    Some(shorten(redact(&shown))).filter(|shown| !shown.trim().is_empty())
}

fn shorten(mut text: String) -> String {
    if text.len() > LONGEST {
        let end = "…";
        text.truncate(text.floor_char_boundary(LONGEST - end.len()));
        text.push_str(end);
    }
    text
}

pub(super) fn error(class: LogClass, message: &str) -> Error {
    match class {
        LogClass::Platform => Error::infrastructure(
            "PlatformError",
            format!("Platform error detected in pod logs: {message}"),
        ),
        LogClass::NotFound => Error::invalid_spec(
            "SourceNotFound",
            format!("Source resource not found (404): {message}"),
        ),
        LogClass::Auth => Error::auth(
            "AuthError",
            format!("Authentication error detected in pod logs: {message}"),
        ),
        LogClass::Storage => Error::resource_exhaustion(
            "StorageFull",
            format!("Storage full error detected in pod logs: {message}"),
        ),
    }
}

fn find(log: &str) -> Option<(LogClass, &str)> {
    let lines: Vec<(&str, String)> = log.lines().map(|line| (line, line.to_lowercase())).collect();
    MARKS.iter().find_map(|(class, sequences)| {
        let tells = |lower: &str| sequences.iter().any(|marks| has_sequence(lower, marks));
        lines.iter().find(|(_, lower)| tells(lower)).map(|(line, _)| (*class, *line))
    })
}
