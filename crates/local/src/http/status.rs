//! Errors as the `Status` that clients read: the only place that knows both.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};

use crate::error::{Cause, Error, Subject};

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        if self == Self::NoSuchPath {
            return plain(StatusCode::NOT_FOUND, "404 page not found\n");
        }
        let status = status(&self);
        let code = status.get("code").and_then(Value::as_u64).unwrap_or(500);
        let code = u16::try_from(code).ok().and_then(|code| StatusCode::from_u16(code).ok());
        let mut response = super::json(code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &status);
        if let Some(seconds) = retry_after(&self) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

pub(super) fn plain(code: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = code;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// The `Status` object, which watches send too.
pub fn status(error: &Error) -> Value {
    let (code, reason) = code(error);
    let mut metadata = Map::new();
    if let Error::Expired { go_on: Some(token), .. } = error {
        metadata.insert("continue".into(), token.as_str().into());
    }
    let mut status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": metadata,
        "status": "Failure",
        "message": error.to_string(),
        "code": code,
    });
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    if let Some(details) = details(error) {
        status["details"] = details.into();
    }
    status
}

fn code(error: &Error) -> (u16, &'static str) {
    match error {
        Error::NoSuchPath | Error::NoSuchResource | Error::NotFound(_) => (404, "NotFound"),
        Error::AlreadyExists(_) | Error::StillExists(_) => (409, "AlreadyExists"),
        Error::MethodNotAllowed => (405, "MethodNotAllowed"),
        Error::BadRequest(_) => (400, "BadRequest"),
        Error::Invalid { .. } | Error::RejectedPatch => (422, "Invalid"),
        Error::Conflict { .. } | Error::Owned { .. } => (409, "Conflict"),
        Error::Unspecific(_) => (500, ""),
        Error::MediaType(_) => (415, "UnsupportedMediaType"),
        Error::NotAcceptable => (406, "NotAcceptable"),
        Error::TooLarge { .. } | Error::PatchTooLarge(_) => (413, "RequestEntityTooLarge"),
        Error::Expired { .. } => (410, "Expired"),
        Error::NotYet { .. } | Error::Slow => (504, "Timeout"),
        Error::Unauthorized => (401, "Unauthorized"),
        Error::Forbidden { .. } => (403, "Forbidden"),
        Error::Misdirected => (421, "BadRequest"),
        Error::TooMany(_) => (429, "TooManyRequests"),
        Error::Full(_) | Error::Store | Error::Internal => (500, "InternalError"),
    }
}

fn retry_after(error: &Error) -> Option<u64> {
    matches!(error, Error::NotYet { .. } | Error::TooMany(_)).then_some(1)
}

fn details(error: &Error) -> Option<Map<String, Value>> {
    let mut details = match error {
        Error::NotFound(subject)
        | Error::AlreadyExists(subject)
        | Error::StillExists(subject)
        | Error::Conflict { subject, .. }
        | Error::Invalid { subject, .. } => named(subject),
        Error::Forbidden { subject, .. } => named(subject.as_ref().unwrap_or(&Subject::default())),
        Error::NoSuchResource
        | Error::MethodNotAllowed
        | Error::RejectedPatch
        | Error::MediaType(crate::error::MediaType::Patch)
        | Error::NotAcceptable
        | Error::Owned { .. }
        | Error::NotYet { .. }
        | Error::TooMany(_) => Map::new(),
        _ => return None,
    };
    let causes = causes(error);
    if !causes.is_empty() {
        details.insert("causes".into(), causes.into());
    }
    if let Some(seconds) = retry_after(error) {
        details.insert("retryAfterSeconds".into(), seconds.into());
    }
    Some(details)
}

fn named(subject: &Subject) -> Map<String, Value> {
    let fields = [("name", &subject.name), ("group", &subject.group), ("kind", &subject.kind)];
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    fields.map(|(name, value)| (name.to_owned(), value.as_str().into())).collect()
}

fn causes(error: &Error) -> Vec<Value> {
    let cause = |reason: &str, message: &str, field: &str| {
        let mut cause = json!({"reason": reason, "message": message});
        if !field.is_empty() {
            cause["field"] = field.into();
        }
        cause
    };
    match error {
        Error::Invalid { causes, .. } => {
            let told = |one: &Cause| cause(one.reason.as_str(), &one.message, &one.field);
            causes.iter().map(told).collect()
        }
        Error::Owned { conflicts, .. } => conflicts
            .iter()
            .map(|(message, field)| cause("FieldManagerConflict", message, field))
            .collect(),
        Error::Forbidden { causes, .. } => {
            causes.iter().map(|(reason, message, field)| cause(reason, message, field)).collect()
        }
        Error::NotYet { .. } => {
            vec![cause("ResourceVersionTooLarge", "Too large resource version", "")]
        }
        _ => Vec::new(),
    }
}
