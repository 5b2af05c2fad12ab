//! A small server that speaks as the Hugging Face hub does.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Response, header},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::net::TcpListener;
use windlass_kit::Digest;

pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

#[derive(Default)]
pub(crate) struct Known {
    pub(crate) files: Vec<(&'static str, Vec<u8>)>,
    /// Of a file only so much is sent, and then nothing more.
    pub(crate) send_only: Option<usize>,
    /// Status and code with which everybody is sent away.
    pub(crate) refuse: Option<(u16, &'static str)>,
    /// Path, range and who asked.
    pub(crate) asked: Vec<(String, Option<String>, Option<String>)>,
}

pub(crate) type Shared = Arc<Mutex<Known>>;

pub(crate) struct Hub {
    pub(crate) address: String,
    pub(crate) known: Shared,
}

impl Hub {
    pub(crate) async fn start(files: Vec<(&'static str, Vec<u8>)>) -> Self {
        let known = Arc::new(Mutex::new(Known { files, ..Known::default() }));
        let router = Router::new().fallback(answer).with_state(known.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, known }
    }
}

async fn answer(State(known): State<Shared>, request: Request) -> Response<Body> {
    let mut known = known.lock().unwrap();
    let path = request.uri().path().to_owned();
    let header = |name: header::HeaderName| {
        request.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    let range = header(header::RANGE);
    known.asked.push((path.clone(), range.clone(), header(header::AUTHORIZATION)));
    if let Some((status, code)) = known.refuse {
        let response = Response::builder().status(status).header("x-error-code", code);
        return response.body(Body::empty()).unwrap();
    }
    if path.contains("/revision/") {
        return Response::new(Body::from(json!({"sha": COMMIT}).to_string()));
    }
    if path.ends_with(&format!("/tree/{COMMIT}")) {
        let item = |(path, content): &(&str, Vec<u8>)| {
            json!({"type": "file", "path": path, "size": 130, "oid": "pointer",
                "lfs": {"oid": Digest::of(content).hex(), "size": content.len()}})
        };
        let items: Vec<_> = known.files.iter().map(item).collect();
        return Response::new(Body::from(json!(items).to_string()));
    }
    let name = path.rsplit_once(&format!("/resolve/{COMMIT}/")).map(|(_, name)| name.to_owned());
    let file = known.files.iter().find(|(known, _)| Some(*known) == name.as_deref());
    let Some((_, content)) = file else {
        return Response::builder().status(404).body(Body::empty()).unwrap();
    };
    let from = range.map_or(0, |range| {
        range.trim_start_matches("bytes=").trim_end_matches('-').parse::<usize>().unwrap()
    });
    let rest = Bytes::from(content[from..].to_vec());
    let status = if from > 0 { 206 } else { 200 };
    let response = Response::builder().status(status).header("content-length", rest.len());
    match known.send_only.filter(|count| *count < rest.len()) {
        Some(count) => {
            let first = stream::iter([Ok::<Bytes, std::io::Error>(rest.slice(..count))]);
            let never = stream::once(std::future::pending());
            response.body(Body::from_stream(first.chain(never))).unwrap()
        }
        None => response.body(Body::from(rest)).unwrap(),
    }
}
