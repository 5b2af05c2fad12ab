//! Refusals in the form of the protocol.

use axum::{body::Body, response::Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    code: &'static str,
    message: String,
    /// A header that goes with it.
    header: Option<(&'static str, String)>,
}

impl Refused {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), header: None }
    }

    pub(super) fn name(name: &str) -> Self {
        let message = format!("{name:?} is no name of a repository");
        Self::new(StatusCode::BAD_REQUEST, "NAME_INVALID", message)
    }

    pub(super) fn unknown_name(name: &str) -> Self {
        let message = format!("there is no repository {name}");
        Self::new(StatusCode::NOT_FOUND, "NAME_UNKNOWN", message)
    }

    pub(super) fn path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "UNSUPPORTED", "nothing is served under this path")
    }

    pub(super) fn method() -> Self {
        let message = "this cannot be done here";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", message)
    }

    pub(super) fn read_only() -> Self {
        let message = "this registry can only be read";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", message)
    }

    pub(super) fn unauthorized() -> Self {
        let message = "this registry asks for a user and a password";
        let challenge = "Basic realm=\"windlass\"".to_owned();
        Self {
            header: Some(("www-authenticate", challenge)),
            ..Self::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
        }
    }

    pub(super) fn stranger() -> Self {
        let message =
            "this registry answers to names of its own machine only, and to no page of a browser";
        Self::new(StatusCode::FORBIDDEN, "DENIED", message)
    }

    pub(super) fn blob(digest: impl std::fmt::Display) -> Self {
        let message = format!("there is no blob {digest}");
        Self::new(StatusCode::NOT_FOUND, "BLOB_UNKNOWN", message)
    }

    pub(super) fn digest(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "DIGEST_INVALID", message)
    }

    pub(super) fn upload() -> Self {
        let message = "there is no such upload; it may have been finished or removed";
        Self::new(StatusCode::NOT_FOUND, "BLOB_UPLOAD_UNKNOWN", message)
    }

    pub(super) fn body(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BLOB_UPLOAD_INVALID", message)
    }

    /// `range` is what the client should go on from.
    pub(super) fn range(message: impl Into<String>, range: Option<String>) -> Self {
        let header = range.map(|range| ("range", range));
        let status = StatusCode::RANGE_NOT_SATISFIABLE;
        Self { header, ..Self::new(status, "BLOB_UPLOAD_INVALID", message) }
    }

    pub(super) fn manifest(reference: impl std::fmt::Display) -> Self {
        let message = format!("there is no manifest {reference}");
        Self::new(StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN", message)
    }

    pub(super) fn invalid_manifest(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "MANIFEST_INVALID", message)
    }

    pub(super) fn missing_blob(digest: impl std::fmt::Display) -> Self {
        let message = format!("the manifest names {digest}, which has not been pushed");
        Self::new(StatusCode::BAD_REQUEST, "MANIFEST_BLOB_UNKNOWN", message)
    }

    pub(super) fn large_manifest() -> Self {
        let message = format!("a manifest has at most {} bytes", crate::manifest::LIMIT);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "MANIFEST_INVALID", message)
    }

    pub(super) fn tag(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "TAG_INVALID", message)
    }

    pub(super) fn into_response(self) -> Response {
        let error = json!({"errors": [{"code": self.code, "message": self.message}]});
        let mut response = Response::new(Body::from(error.to_string()));
        *response.status_mut() = self.status;
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        if let Some((name, value)) = self.header {
            super::set(response.headers_mut(), name, &value);
        }
        response
    }
}

/// The cause is for the log: clients must not learn of our disk.
impl From<std::io::Error> for Refused {
    fn from(error: std::io::Error) -> Self {
        tracing::warn!(%error, "a file of the registry cannot be read or written");
        let (status, message) = match error.kind() {
            std::io::ErrorKind::StorageFull => {
                (StatusCode::INSUFFICIENT_STORAGE, "there is no room left on the registry's disk")
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "the registry cannot use its disk"),
        };
        Self::new(status, "UNKNOWN", message)
    }
}
