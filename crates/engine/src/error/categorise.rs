//! The one table from any error to its category.

use std::error::Error as StdError;
use std::io;

use kube::core::Status;
use kube::core::response::reason as api;

use super::{Category, Error, chain, reasons};

const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// The category of a failed read.
///
/// The cause is kept as far as a reference allows: an API status is copied, anything else becomes
/// its text. `Error::from` takes the error itself and loses nothing.
pub fn categorise(error: &kube::Error) -> Error {
    categorise_any(error)
}

/// The category of a failed write, where the same answers mean something else than in a read.
///
/// No component speaks for a failed write, so the server's own words are the message. A missing
/// target is the kind or the namespace, never the object, and a namespace that is going away is
/// refused as if it were a matter of permissions.
pub fn categorise_write(error: &kube::Error) -> Error {
    let mut categorised = categorise(error);
    let kube::Error::Api(status) = error else { return categorised };
    if is_namespace_terminating(status) {
        categorised = Error::missing_upstream(reasons::NAMESPACE_TERMINATING, "")
            .with_cause(Status::clone(status));
    } else if reason_or_code(status, api::NOT_FOUND, 404) {
        categorised = Error::missing_upstream(reasons::REFERENCE_NOT_FOUND, "")
            .with_cause(Status::clone(status));
    }
    if !status.message.is_empty() {
        categorised.message.clone_from(&status.message);
    }
    categorised
}

/// The category of any error; its causes are searched too.
pub fn categorise_any(error: &(dyn StdError + 'static)) -> Error {
    if let Some(known) = links(error).find_map(|link| link.downcast_ref::<Error>()) {
        return known.clone();
    }
    if let Some(status) = links(error).find_map(api_status) {
        return from_status(status).with_cause(status.clone());
    }
    let cause = Described(chain(error));
    if let Some((reason, message)) = links(error).find_map(from_network) {
        return Error::infrastructure(reason, message).with_cause(cause);
    }
    if let Some(operation) = links(error).find_map(network_operation) {
        let message = format!("Network operation failed: {operation}");
        return Error::infrastructure(reasons::NETWORK_ERROR, message).with_cause(cause);
    }
    Error::new(Category::Unknown, reasons::UNKNOWN_ERROR, error.to_string()).with_cause(cause)
}

/// Whether the error means that an object does not exist, however often it has been wrapped.
pub fn is_not_found(error: &Error) -> bool {
    links(error).any(|link| {
        let known = link.downcast_ref::<Error>();
        known.is_some_and(|e| e.reason == reasons::NOT_FOUND)
            || api_status(link).is_some_and(|s| reason_or_code(s, api::NOT_FOUND, 404))
    })
}

/// Whether a server-side apply was refused because another manager owns a field.
pub fn is_field_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if has_cause(status, FIELD_MANAGER_CONFLICT))
}

fn is_namespace_terminating(status: &Status) -> bool {
    // Older API servers say it only in the text.
    has_cause(status, reasons::NAMESPACE_TERMINATING)
        || (reason_or_code(status, api::FORBIDDEN, 403)
            && status.message.contains("because it is being terminated"))
}

fn has_cause(status: &Status, reason: &str) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == reason)
}

fn from_status(status: &Status) -> Error {
    // Two reasons have no code of their own; they go before those that match by code as well.
    if status.reason == api::ALREADY_EXISTS {
        return Error::invalid_spec(reasons::ALREADY_EXISTS, "Resource already exists");
    }
    if status.reason == api::SERVER_TIMEOUT {
        return timeout();
    }
    if status.reason == api::TOO_MANY_REQUESTS || status.code == 429 {
        return Error::infrastructure(reasons::RATE_LIMITED, "Too many requests - rate limited");
    }
    let is = |reason, code| reason_or_code(status, reason, code);
    if is(api::NOT_FOUND, 404) {
        Error::missing_downstream(reasons::NOT_FOUND, "Resource not found")
    } else if is(api::UNAUTHORIZED, 401) {
        Error::auth(reasons::UNAUTHORIZED, "Authentication required or invalid credentials")
    } else if is(api::FORBIDDEN, 403) {
        Error::auth(reasons::FORBIDDEN, "Insufficient permissions to access resource")
    } else if is(api::INVALID, 422) {
        Error::invalid_spec(reasons::INVALID_SPEC, "Resource specification is invalid")
    } else if is(api::CONFLICT, 409) {
        Error::infrastructure(
            reasons::CONFLICT,
            "Resource conflict - version mismatch or concurrent modification",
        )
    } else if is(api::TIMEOUT, 504) {
        timeout()
    } else if is(api::SERVICE_UNAVAILABLE, 503) || is(api::INTERNAL_ERROR, 500) {
        Error::infrastructure(
            reasons::SERVICE_UNAVAILABLE,
            "Kubernetes API server unavailable or internal error",
        )
    } else if (400..500).contains(&status.code) {
        Error::invalid_spec(reasons::CLIENT_ERROR, "Client error (4xx)")
    } else if status.code >= 500 {
        Error::infrastructure(reasons::SERVER_ERROR, "Server error (5xx)")
    } else {
        Error::new(Category::Unknown, reasons::UNKNOWN_ERROR, status.to_string())
    }
}

fn timeout() -> Error {
    Error::infrastructure(reasons::TIMEOUT, "Request timed out")
}

/// The code counts only when the server gave no reason that we know: a proxy in between may answer
/// with a code alone, while an API server's reason is more exact than its code.
fn reason_or_code(status: &Status, reason: &str, code: u16) -> bool {
    status.reason == reason
        || (status.code == code && (status.reason.is_empty() || !api::is_known(&status.reason)))
}

fn api_status(link: Link<'_>) -> Option<&Status> {
    if let Some(kube::Error::Api(status)) = link.downcast_ref::<kube::Error>() {
        return Some(status);
    }
    link.downcast_ref::<Status>().or_else(|| link.downcast_ref::<Box<Status>>().map(Box::as_ref))
}

fn from_network(link: Link<'_>) -> Option<(&'static str, &'static str)> {
    if let Some(error) = link.downcast_ref::<io::Error>() {
        return match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                Some((reasons::CONNECTION_REFUSED, "Connection refused - service may be down"))
            }
            io::ErrorKind::TimedOut => Some((reasons::NETWORK_TIMEOUT, "Network timeout")),
            io::ErrorKind::ConnectionReset => {
                Some((reasons::CONNECTION_RESET, "Connection reset by peer"))
            }
            _ => None,
        };
    }
    // The connector's own type is private to the HTTP library, its text is not.
    let is_dns = link.to_string().starts_with("dns error");
    is_dns.then_some((reasons::DNS_FAILURE, "DNS resolution failed"))
}

fn network_operation(link: Link<'_>) -> Option<&'static str> {
    if let Some(error) = link.downcast_ref::<io::Error>() {
        return match error.kind() {
            io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof => Some("read"),
            io::ErrorKind::BrokenPipe | io::ErrorKind::WriteZero => Some("write"),
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable => Some("dial"),
            _ => None,
        };
    }
    match link.downcast_ref::<kube::Error>() {
        Some(kube::Error::HyperError(_) | kube::Error::ReadEvents(_)) => Some("read"),
        Some(kube::Error::Service(_)) => Some("dial"),
        _ => None,
    }
}

type Link<'a> = &'a (dyn StdError + 'static);

/// The error and its causes, outermost first.
fn links(error: Link<'_>) -> impl Iterator<Item = Link<'_>> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let link = next?;
        next = link.source();
        Some(link)
    })
}

/// What remains of an error that could only be borrowed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Described(String);
