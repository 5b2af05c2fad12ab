//! What went wrong, sorted by who can repair it.
//!
//! Every failure is turned into one [`Error`] here and nowhere else; its [`Category`] alone decides
//! the condition it drives, whether changes are still applied, and how soon to try again.

mod categorise;
#[cfg(test)]
mod tests;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

pub use categorise::{
    categorise, categorise_any, categorise_write, is_field_conflict, is_not_found,
};

/// Reasons of categorised errors that come from the API or the network.
pub mod reasons {
    pub const NOT_FOUND: &str = "NotFound";
    pub const UNAUTHORIZED: &str = "Unauthorized";
    pub const FORBIDDEN: &str = "Forbidden";
    pub const INVALID_SPEC: &str = "InvalidSpec";
    pub const ALREADY_EXISTS: &str = "AlreadyExists";
    pub const CONFLICT: &str = "Conflict";
    pub const TIMEOUT: &str = "Timeout";
    pub const SERVICE_UNAVAILABLE: &str = "ServiceUnavailable";
    pub const RATE_LIMITED: &str = "RateLimited";
    pub const SERVER_ERROR: &str = "ServerError";
    pub const CLIENT_ERROR: &str = "ClientError";
    pub const CONNECTION_REFUSED: &str = "ConnectionRefused";
    pub const NETWORK_TIMEOUT: &str = "NetworkTimeout";
    pub const CONNECTION_RESET: &str = "ConnectionReset";
    pub const DNS_FAILURE: &str = "DNSFailure";
    pub const NETWORK_ERROR: &str = "NetworkError";
    pub const UNKNOWN_ERROR: &str = "UnknownError";
    pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";
    pub const REFERENCE_NOT_FOUND: &str = "ReferenceNotFound";
    pub const RESOURCE_NOT_READY: &str = "ResourceNotReady";
    pub const LOG_TOO_SLOW: &str = "LogTooSlow";
    pub const LOG_INTERRUPTED: &str = "LogInterrupted";
    pub const LOG_TOO_LONG: &str = "LogTooLong";
    /// Logs that were found, but could not be read to their end.
    pub const LOG_UNREAD: [&str; 3] = [LOG_TOO_SLOW, LOG_INTERRUPTED, LOG_TOO_LONG];
}

/// Who can repair an error, and therefore how it is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// The network or the API server; heals by itself.
    Infrastructure,
    /// Credentials or permissions.
    Auth,
    /// One of our own objects is not there yet.
    MissingDownstream,
    /// Something the object refers to is not there.
    MissingUpstream,
    /// The user has to change the object.
    InvalidSpec,
    /// Memory, disk or quota ran out.
    ResourceExhaustion,
    /// Not recognised. Printed under its own name, treated as [`Category::Infrastructure`].
    Unknown,
}

impl Category {
    /// The one place that says an unrecognised error is treated like an unreachable server.
    pub fn is_infrastructure(self) -> bool {
        matches!(self, Self::Infrastructure | Self::Unknown)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Infrastructure => "Infrastructure",
            Self::Auth => "Auth",
            Self::MissingDownstream => "MissingDependency",
            Self::MissingUpstream => "MissingReference",
            Self::InvalidSpec => "InvalidSpec",
            Self::ResourceExhaustion => "ResourceExhaustion",
            Self::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The cause of a categorised error; shared, because errors are kept as values and copied around.
pub type Cause = Arc<dyn StdError + Send + Sync>;

/// A failure that knows its category.
#[derive(Clone, Debug)]
pub struct Error {
    pub category: Category,
    /// Machine-readable, shown as the reason of conditions and events.
    pub reason: String,
    /// For the user, shown as the message of conditions.
    pub message: String,
    /// The field of the object that is wrong, as a path from its root, where one can be named.
    pub field: Option<String>,
    pub cause: Option<Cause>,
}

impl Error {
    pub fn new(category: Category, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { category, reason: reason.into(), message: message.into(), field: None, cause: None }
    }

    pub fn infrastructure(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Category::Infrastructure, reason, message)
    }

    pub fn auth(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Category::Auth, reason, message)
    }

    pub fn invalid_spec(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Category::InvalidSpec, reason, message)
    }

    pub fn missing_upstream(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Category::MissingUpstream, reason, message)
    }

    pub fn missing_downstream(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Category::MissingDownstream, reason, message)
    }

    pub fn resource_exhaustion(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Category::ResourceExhaustion, reason, message)
    }

    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    #[must_use]
    pub fn with_cause(mut self, cause: impl StdError + Send + Sync + 'static) -> Self {
        self.cause = Some(Arc::new(cause));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.reason.as_str(), self.message.as_str(), &self.cause) {
            ("", "", Some(cause)) => write!(f, "{cause}"),
            ("", "", None) => f.write_str("unknown error"),
            ("", text, _) | (text, "", _) => f.write_str(text),
            (reason, message, _) => write!(f, "{reason}: {message}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn StdError + 'static))
    }
}

/// Keeps the original as the cause, which [`categorise`] cannot do from a reference.
impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        let categorised = categorise(&error);
        Self { cause: Some(Arc::new(error)), ..categorised }
    }
}

/// Failures that the retry queue should back off from.
///
/// The text names only their number: queues and logs that group by text must not see a new error
/// each time an address or a timestamp in a cause changes.
#[derive(Clone, Debug, Default)]
pub struct InfrastructureError {
    pub causes: Vec<Error>,
}

impl fmt::Display for InfrastructureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.causes.len() {
            1 => f.write_str("infrastructure error (1 failure)"),
            n => write!(f, "infrastructure errors ({n} failures)"),
        }
    }
}

impl StdError for InfrastructureError {
    /// The standard chain has one branch; the others are in `causes`.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.causes.first().map(|cause| cause as &(dyn StdError + 'static))
    }
}

/// An error and its causes in one line.
///
/// Some libraries print the cause in their own text as well, so a link that the line already
/// contains is not added again.
pub fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(link) = next {
        let text = link.to_string();
        if !text.is_empty() && !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        next = link.source();
    }
    line
}
