//! Everything that is not a resource: discovery, OpenAPI, versions and health.

use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::json;

use super::{answer, handle::Asked, path::Path, status::plain};
use crate::error::Error;

/// The Kubernetes whose behaviour this is.
const MINOR: &str = "36";
const LIKE: &str = "v1.36.3";

pub(super) fn document(asked: Asked<'_>, path: Path) -> Result<Response, Error> {
    if asked.parts.method != Method::GET {
        return Err(Error::MethodNotAllowed);
    }
    match path {
        Path::Other => other(&asked),
        _ => Err(Error::NoSuchPath),
    }
}

fn other(asked: &Asked<'_>) -> Result<Response, Error> {
    match asked.parts.uri.path() {
        "/healthz" | "/livez" | "/readyz" => health(asked),
        "/version" => Ok(answer::json(StatusCode::OK, &version())),
        _ => Err(Error::NoSuchPath),
    }
}

fn health(asked: &Asked<'_>) -> Result<Response, Error> {
    match asked.server.registry.store().is_stopped() {
        false => Ok(plain(StatusCode::OK, "ok")),
        true => Err(Error::Store),
    }
}

fn version() -> serde_json::Value {
    json!({
        "major": "1",
        "minor": MINOR,
        "gitVersion": format!("{LIKE}+windlass.{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
