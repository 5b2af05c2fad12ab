//! Writes down who writes what, in the form of the real server's audit log.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
};

use axum::{
    Router,
    extract::Request,
    middleware::{self, Next},
    response::Response,
};
use http::{HeaderMap, Method, header};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// Adds the record to the router; leaves out what only reads.
pub(super) fn writes(router: Router, log: &Path) -> Router {
    let file = OpenOptions::new().create(true).append(true).open(log).unwrap();
    let file = Arc::new(file);
    router.layer(middleware::from_fn(move |request: Request, next: Next| {
        let file = file.clone();
        async move { record(&file, request, next).await }
    }))
}

async fn record(file: &File, request: Request, next: Next) -> Response {
    let Some(verb) = verb(request.method()) else { return next.run(request).await };
    let user = user(request.headers());
    let object = object(request.uri().path());
    let response = next.run(request).await;
    let event = json!({ "stage": "ResponseComplete", "user": { "username": user }, "verb": verb,
        "objectRef": object, "responseStatus": { "code": response.status().as_u16() } });
    let mut file = file;
    // As one write, since requests end at the same time.
    file.write_all(format!("{event}\n").as_bytes()).unwrap();
    response
}

fn verb(method: &Method) -> Option<&'static str> {
    match *method {
        Method::POST => Some("create"),
        Method::PUT => Some("update"),
        Method::PATCH => Some("patch"),
        Method::DELETE => Some("delete"),
        _ => None,
    }
}

/// What a path like `/apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>/<sub>` names.
fn object(path: &str) -> Value {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let rest = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => &[],
    };
    let named = match rest {
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => rest,
        ["namespaces", _, inner @ ..] => inner,
        rest => rest,
    };
    let part = |at: usize| named.get(at).copied().unwrap_or_default();
    json!({ "resource": part(0), "name": part(1), "subresource": part(2) })
}

/// The account that a token says it is of. Whether it is, the server decides by itself.
fn user(headers: &HeaderMap) -> String {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let claims = token.and_then(|token| token.split('.').nth(1)).and_then(decode);
    let subject = claims.and_then(|claims| Some(claims["sub"].as_str()?.to_owned()));
    subject.unwrap_or_else(|| "windlass-admin".to_owned())
}

/// JSON in base64 for addresses and without padding.
fn decode(text: &str) -> Option<Value> {
    let mut text = text.replace('-', "+").replace('_', "/");
    text.extend(std::iter::repeat_n('=', (4 - text.len() % 4) % 4));
    let ByteString(bytes) = serde_json::from_value(text.into()).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_objects() {
        for (path, want) in [
            ("/api/v1/namespaces/a/pods/p/status", ["pods", "p", "status"]),
            ("/api/v1/namespaces/a/pods", ["pods", "", ""]),
            ("/api/v1/namespaces/a", ["namespaces", "a", ""]),
            ("/api/v1/namespaces/a/finalize", ["namespaces", "a", "finalize"]),
            ("/apis/apps/v1/namespaces/a/deployments/d", ["deployments", "d", ""]),
            ("/apis/rbac.authorization.k8s.io/v1/clusterroles/r", ["clusterroles", "r", ""]),
        ] {
            let found = object(path);
            let found = ["resource", "name", "subresource"].map(|part| found[part].clone());
            assert_eq!(found, want.map(Value::from), "{path}");
        }
    }

    #[test]
    fn tokens_of_accounts_name_them() {
        // {"sub":"system:serviceaccount:a:b"}
        let token = "x.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6YTpiIn0.y";
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        assert_eq!(user(&headers), "system:serviceaccount:a:b");
        assert_eq!(user(&HeaderMap::new()), "windlass-admin");
    }
}
