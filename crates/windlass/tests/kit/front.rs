//! A registry in this process, and somebody before it who counts and may hold things up.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Method, header};
use http_body_util::BodyExt;
use tokio::net::TcpListener;
use windlass_kit::registry::{Registry, Settings};

#[derive(Default)]
pub(crate) struct Seen {
    /// Bytes of blobs that have come.
    pub(crate) taken: u64,
    /// What was asked for of blobs.
    pub(crate) ranges: Vec<Option<String>>,
    /// After so many parts of an upload nothing is answered any more.
    pub(crate) hold_after: Option<usize>,
    pub(crate) held: usize,
    pub(crate) parts: usize,
    /// Of a blob that is asked for only so much is sent.
    pub(crate) send_only: Option<usize>,
    /// What is answered before anything is looked at, each once: to which method, with which status and
    /// `Retry-After`.
    pub(crate) busy: Vec<(Method, u16, Option<&'static str>)>,
    /// What was asked for when it was answered so.
    pub(crate) refused: Vec<String>,
}

pub(crate) type Shared = Arc<Mutex<Seen>>;

pub(crate) struct Front {
    pub(crate) address: String,
    pub(crate) seen: Shared,
}

impl Front {
    pub(crate) async fn start(root: &Path) -> Self {
        let registry = Registry::open(Settings { root: root.to_owned(), ..Settings::default() });
        let seen = Shared::default();
        let router = registry.unwrap().router().layer(from_fn_with_state(seen.clone(), before));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, seen }
    }
}

async fn before(State(seen): State<Shared>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    if let Some(response) = busy(&seen, request.method()) {
        seen.lock().unwrap().refused.push(request.uri().to_string());
        return response;
    }
    match *request.method() {
        Method::PATCH | Method::PUT if path.contains("/blobs/uploads/") => {
            if is_held(&seen, request.method()) {
                // Until whoever asks has gone.
                std::future::pending::<()>().await;
            }
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            seen.lock().unwrap().taken += bytes.len() as u64;
            next.run(Request::from_parts(parts, Body::from(bytes))).await
        }
        Method::GET if path.contains("/blobs/sha256:") => {
            let range = request.headers().get(header::RANGE);
            let range = range.map(|value| value.to_str().unwrap().to_owned());
            seen.lock().unwrap().ranges.push(range);
            let only = seen.lock().unwrap().send_only;
            let response = next.run(request).await;
            match only {
                Some(count) => cut(response, count).await,
                None => response,
            }
        }
        _ => next.run(request).await,
    }
}

fn busy(seen: &Shared, asked: &Method) -> Option<Response> {
    let mut seen = seen.lock().unwrap();
    let at = seen.busy.iter().position(|(method, ..)| method == asked)?;
    let (_, status, wait) = seen.busy.remove(at);
    let response = Response::builder().status(status);
    let response = match wait {
        Some(wait) => response.header(header::RETRY_AFTER, wait),
        None => response,
    };
    Some(response.body(Body::empty()).unwrap())
}

fn is_held(seen: &Shared, method: &Method) -> bool {
    let mut seen = seen.lock().unwrap();
    let is_held = seen.hold_after.is_some_and(|limit| seen.parts >= limit);
    if is_held {
        seen.held += 1;
    } else if method == Method::PATCH {
        seen.parts += 1;
    }
    is_held
}

/// The beginning comes, and then nothing more.
async fn cut(response: Response, count: usize) -> Response {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let first = bytes.slice(..count.min(bytes.len()));
    let is_whole = first.len() == bytes.len();
    let first = stream::iter([Ok::<Bytes, std::io::Error>(first)]);
    let rest = stream::once(async move {
        if !is_whole {
            std::future::pending::<()>().await;
        }
        Ok(Bytes::new())
    });
    Response::from_parts(parts, Body::from_stream(first.chain(rest)))
}
