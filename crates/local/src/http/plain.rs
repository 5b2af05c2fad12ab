//! Everything that is not a resource: discovery, OpenAPI, versions and health.

use std::collections::BTreeSet;

use axum::response::Response;
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

use super::{
    answer,
    handle::Asked,
    negotiate::{self, Discovery},
    path::Path,
    status::plain,
};
use crate::{
    auth::Tokens,
    error::Error,
    show::{discovery, openapi},
};

/// The Kubernetes whose behaviour this is.
const MINOR: &str = "36";
const LIKE: &str = "v1.36.3";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// What is there whatever kinds there are.
const PATHS: [&str; 14] = [
    "/.well-known/openid-configuration",
    "/api",
    "/apis",
    "/healthz",
    "/healthz/ping",
    "/livez",
    "/livez/ping",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openid/v1/jwks",
    "/readyz",
    "/readyz/ping",
    "/version",
];
const OPENAPI_V2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

pub(super) fn document(asked: Asked<'_>, path: Path) -> Result<Response, Error> {
    let known = match path {
        Path::Other => other(&asked)?,
        path => discovered(&asked, path)?,
    };
    match asked.parts.method {
        Method::GET => Ok(known),
        _ => Err(Error::MethodNotAllowed),
    }
}

fn discovered(asked: &Asked<'_>, path: Path) -> Result<Response, Error> {
    let catalog = asked.server.registry.catalog();
    let resources = catalog.resources();
    let wanted = negotiate::discovery(&asked.parts.headers)?;
    if let (Path::Roots { core }, Discovery::Aggregated) = (&path, wanted) {
        let mut response = answer::json(StatusCode::OK, &discovery::aggregated(&resources, *core));
        let media = HeaderValue::from_static(AGGREGATED);
        response.headers_mut().insert(header::CONTENT_TYPE, media);
        return Ok(response);
    }
    let found = match &path {
        Path::Roots { core: true } => Some(discovery::api_versions(&address(asked))),
        Path::Roots { core: false } => Some(discovery::api_group_list(&resources)),
        Path::Group(group) => discovery::api_group(&resources, group),
        Path::Version { group, version } => {
            discovery::api_resource_list(&resources, group, version)
        }
        _ => None,
    };
    Ok(answer::json(StatusCode::OK, &found.ok_or(Error::NoSuchPath)?))
}

/// Where we are, as far as whoever asks has told.
fn address(asked: &Asked<'_>) -> String {
    let host = asked.parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = asked.parts.uri.authority().map(|authority| authority.as_str());
    authority.or(host).unwrap_or("localhost").to_owned()
}

/// The index of the documents or one of them.
fn documented(asked: &Asked<'_>, path: &str) -> Result<Response, Error> {
    let catalog = asked.server.registry.catalog();
    let documents = catalog.documents();
    if path.is_empty() {
        let all = documents.iter().map(|(path, document)| (path.as_str(), document.hash.as_str()));
        return Ok(answer::json(StatusCode::OK, &openapi::index(all)));
    }
    let document = path.strip_prefix('/').and_then(|path| documents.get(path));
    let document = document.ok_or(Error::NoSuchPath)?;
    Ok(answer::json_bytes(StatusCode::OK, document.body.clone()))
}

fn other(asked: &Asked<'_>) -> Result<Response, Error> {
    let tokens = || asked.server.tokens.as_deref().ok_or(Error::NoSuchPath);
    match asked.parts.uri.path() {
        "/" | "/index.html" => Ok(answer::json(StatusCode::OK, &index(asked))),
        "/healthz" | "/livez" | "/readyz" => health(asked),
        "/healthz/ping" | "/livez/ping" | "/readyz/ping" => Ok(plain(StatusCode::OK, "ok")),
        "/metrics" => Ok(metrics(asked)),
        // Most client libraries ask with the slash.
        "/version" | "/version/" => Ok(answer::json(StatusCode::OK, &version())),
        "/openapi/v2" => openapi_v2(asked),
        "/openid/v1/jwks" | "/openid/v1/jwks/" => {
            Ok(answer::json(StatusCode::OK, &tokens()?.jwks()))
        }
        "/.well-known/openid-configuration" | "/.well-known/openid-configuration/" => {
            let base = "https://kubernetes.default.svc";
            Ok(answer::json(StatusCode::OK, &Tokens::configuration(base)))
        }
        path => match path.strip_prefix("/openapi/v3") {
            Some(path) => documented(asked, path),
            None => Err(Error::NoSuchPath),
        },
    }
}

/// Where there is something to read.
fn index(asked: &Asked<'_>) -> Value {
    let catalog = asked.server.registry.catalog();
    let mut paths: BTreeSet<String> = PATHS.iter().map(|path| (*path).to_owned()).collect();
    for document in catalog.documents().keys() {
        paths.insert(format!("/{document}"));
        if let Some(group) = document.strip_prefix("apis/").and_then(|path| path.split('/').next())
        {
            paths.insert(format!("/apis/{group}"));
        }
    }
    json!({ "paths": paths })
}

/// Without any kind: those that are served are in the documents of v3. It is what clients ask next
/// for a kind they do not find there, and they do not get over its absence.
fn openapi_v2(asked: &Asked<'_>) -> Result<Response, Error> {
    if !negotiate::openapi_in_protobuf(&asked.parts.headers)? {
        return Ok(answer::json(StatusCode::OK, &openapi::empty_v2()));
    }
    let mut response = answer::json_bytes(StatusCode::OK, openapi::EMPTY_V2);
    let media = HeaderValue::from_static(OPENAPI_V2);
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    Ok(response)
}

fn health(asked: &Asked<'_>) -> Result<Response, Error> {
    if asked.server.registry.store().is_stopped() {
        return Err(Error::Store);
    }
    let name = asked.parts.uri.path().trim_start_matches('/');
    Ok(match asked.query.has("verbose") {
        false => plain(StatusCode::OK, "ok"),
        true => plain(StatusCode::OK, format!("[+]ping ok\n[+]store ok\n{name} check passed\n")),
    })
}

/// What can be counted without keeping count, and what others count.
fn metrics(asked: &Asked<'_>) -> Response {
    let state = asked.server.registry.store().read();
    let mut text = String::from("# TYPE windlass_local_objects gauge\n");
    let mut resources: Vec<_> = state.resources().collect();
    resources.sort();
    for resource in resources {
        let count = state.count(resource);
        text += &format!("windlass_local_objects{{resource={resource:?}}} {count}\n");
    }
    text += "# TYPE windlass_local_version counter\n";
    text += &format!("windlass_local_version {}\n", state.version());
    if let Some(figures) = asked.server.figures.get() {
        text += &figures();
    }
    plain(StatusCode::OK, text)
}

fn version() -> Value {
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
