//! Errors in the form of OpenAI's API.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::{Value, json};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) message: String,
    /// The member of the body that is wrong.
    pub(super) param: Option<String>,
    pub(super) code: Option<&'static str>,
}

impl Refused {
    pub(super) fn bad(param: &str, message: impl Into<String>) -> Self {
        let param = Some(param.to_owned()).filter(|param| !param.is_empty());
        Self { status: StatusCode::BAD_REQUEST, message: message.into(), param, code: None }
    }

    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code: Some(code) }
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "engine_failed", message)
    }

    pub(super) fn body(&self) -> Value {
        let kind =
            if self.status.is_server_error() { "server_error" } else { "invalid_request_error" };
        let Self { message, param, code, .. } = self;
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let kind = [(header::CONTENT_TYPE, "application/json")];
        (self.status, kind, self.body().to_string()).into_response()
    }
}
