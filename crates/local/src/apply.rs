//! Server-side apply and the ownership of fields.
//!
//! Everything here is a function of its arguments; the time is given as text.

use serde_json::Value;

use crate::types::Typed;

/// One apply: what is there, what is wanted, and who wants it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub live: Option<&'a Value>,
    pub config: &'a Value,
    pub typed: Typed<'a>,
    pub manager: &'a str,
    pub subresource: Option<&'a str>,
    pub api_version: &'a str,
    pub force: bool,
    /// RFC 3339 in seconds.
    pub time: &'a str,
    pub reset: Reset,
}

/// Any other write, by whom.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    pub typed: Typed<'a>,
    pub manager: &'a str,
    pub subresource: Option<&'a str>,
    pub api_version: &'a str,
    /// RFC 3339 in seconds.
    pub time: &'a str,
    pub reset: Reset,
}

/// Fields that an endpoint does not write, and whose owners it does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Of kinds without a status subresource.
    Nothing,
    /// Of the main endpoint of the others.
    Status,
    /// Of `/status`.
    AllButStatus,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// In the order in which they are told.
    #[error("{}", conflict_text(.0))]
    Conflicts(Vec<Conflict>),
    /// The object is not of its type; as in `.spec.foo: field not declared in schema`.
    #[error("{0}")]
    Typed(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// As in `conflict with "m3" using apps/v1`, the message of the cause.
    pub message: String,
    /// As in `.spec.replicas`.
    pub field: String,
}

/// The merged object with its `managedFields`, not yet defaulted.
pub fn apply(request: Request<'_>) -> Result<Value, Error> {
    Ok(request.config.clone())
}

/// The object, which is defaulted already, with its `managedFields` after the write.
pub fn update(update: Update<'_>, old: Option<&Value>, new: Value) -> Value {
    let _ = (update, old);
    new
}

/// Whether a write changes nothing but the times of `managedFields`; it is then not stored.
pub fn same_but_times(old: &Value, new: &Value) -> bool {
    old == new
}

fn conflict_text(conflicts: &[Conflict]) -> String {
    format!("Apply failed with {} conflicts", conflicts.len())
}
