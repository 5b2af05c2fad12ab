//! Against a small server of files.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::net::TcpListener;

use super::*;
use crate::Digest;

#[derive(Default)]
struct World {
    content: Vec<u8>,
    etag: Option<&'static str>,
    kind: Option<&'static str>,
    status: Option<u16>,
    /// After so many bytes the connection is cut, once.
    cut: Option<usize>,
    asked: Vec<HeaderMap>,
}

type Shared = Arc<Mutex<World>>;

async fn serve(State(world): State<Shared>, request: Request) -> http::Response<Body> {
    let mut world = world.lock().unwrap();
    world.asked.push(request.headers().clone());
    if let Some(status) = world.status {
        return http::Response::builder().status(status).body(Body::empty()).unwrap();
    }
    let header = |name: &str| request.headers().get(name).map(|v| v.to_str().unwrap().to_owned());
    let is_same = header("if-range").is_none_or(|etag| Some(etag.as_str()) == world.etag);
    let from = header("range").filter(|_| is_same).map_or(0, |range| {
        range.trim_start_matches("bytes=").trim_end_matches('-').parse::<usize>().unwrap()
    });
    let size = world.content.len();
    if from > 0 && from >= size {
        return http::Response::builder().status(416).body(Body::empty()).unwrap();
    }
    let rest = Bytes::from(world.content[from..].to_vec());
    let mut response = http::Response::builder().header("content-length", rest.len());
    if from > 0 {
        let range = format!("bytes {from}-{}/{size}", size - 1);
        response = response.status(206).header("content-range", range);
    }
    for (name, value) in [("etag", world.etag), ("content-type", world.kind)] {
        if let Some(value) = value {
            response = response.header(name, value);
        }
    }
    match world.cut.take() {
        Some(cut) => {
            let first = stream::iter([Ok(rest.slice(..cut))]);
            // What was said before is on its way by then.
            let broken = stream::once(async {
                tokio::task::yield_now().await;
                Err(std::io::Error::other("cut"))
            });
            response.body(Body::from_stream(first.chain(broken))).unwrap()
        }
        None => response.body(Body::from(rest)).unwrap(),
    }
}

async fn start(world: World) -> (Shared, Web) {
    let shared = Arc::new(Mutex::new(world));
    let router = Router::new().fallback(serve).with_state(shared.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/models/tiny.gguf?key=secret", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (shared, {
        let settings = remote::Settings::default();
        let token = Some("token".to_owned());
        Web::new(Address::parse(&address).unwrap(), token, &settings).unwrap()
    })
}

struct Quiet;

impl Progress for Quiet {
    fn expected(&self, _: &str, _: u64) {}
    fn received(&self, _: &str, _: u64) {}
}

fn content() -> Vec<u8> {
    (0..=255).cycle().take(200_000).collect()
}

#[test]
fn an_address_ends_in_the_name_of_a_file_and_keeps_its_secrets() {
    for (text, name, shown) in [
        ("https://u:p@h.x/a/m.gguf?sig=s", "m.gguf", "https://h.x/a/m.gguf"),
        ("http://h:81/a%20b.bin", "a b.bin", "http://h:81/a%20b.bin"),
    ] {
        let address = Address::parse(text).unwrap();
        assert_eq!((address.name(), address.to_string().as_str()), (name, shown));
    }
    for text in
        ["https://h.x/", "https://h.x", "ftp://h/a", "m.gguf", "https://h/a%2Fb", "http:///x"]
    {
        assert!(Address::parse(text).is_err(), "{text}");
    }
    let error = Address::parse("https://u:hidden@h.x/?key=hidden").unwrap_err().to_string();
    assert!(!error.contains("hidden"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_cut_goes_on_if_it_is_the_same() {
    let world =
        World { content: content(), etag: Some("\"1\""), cut: Some(70_000), ..World::default() };
    let (shared, web) = start(world).await;
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    let sum = Digest::of(&content());
    let got = web.download(&files, Some(sum.hex()), &Quiet).await.unwrap();
    assert_eq!(std::fs::read(&got.path).unwrap(), content());
    assert_eq!((got.size, got.sha256.as_str()), (200_000, sum.hex()));
    let asked = std::mem::take(&mut shared.lock().unwrap().asked);
    assert!(asked.iter().all(|headers| headers["authorization"] == "Bearer token"));
    let resumed = (&asked[1]["range"], &asked[1]["if-range"]);
    assert_eq!((asked.len(), resumed.0.as_bytes()), (2, &b"bytes=70000-"[..]));
    assert_eq!(resumed.1, "\"1\"");
}

#[tokio::test]
async fn what_has_become_another_file_begins_anew() {
    for etag in [Some("\"1\""), None, Some("W/\"1\"")] {
        let world = World { content: content(), etag, cut: Some(70_000), ..World::default() };
        let (shared, web) = start(world).await;
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("files");
        // The first run gets a part of what was there before.
        let first = Part::open(&files, "tiny.gguf", Hash::sha256(), u64::MAX).await.ok().unwrap();
        drop(first.append(Bytes::from_static(b"old bytes")).await.ok().unwrap());
        let old = Version { validator: Some("\"0\"".to_owned()), size: Some(9) };
        keep(&files.with_extension("version"), &old).unwrap();
        let got = web.download(&files, None, &Quiet).await.unwrap();
        assert_eq!(std::fs::read(&got.path).unwrap(), content(), "{etag:?}");
        let asked = shared.lock().unwrap().asked.clone();
        assert_eq!(asked[0]["if-range"], "\"0\"");
    }
}

#[tokio::test]
async fn what_came_whole_before_is_only_asked_about() {
    let (shared, web) =
        start(World { content: content(), etag: Some("\"1\""), ..World::default() }).await;
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    let part = Part::open(&files, "tiny.gguf", Hash::sha256(), u64::MAX).await.ok().unwrap();
    drop(part.append(content().into()).await.ok().unwrap());
    let version = Version { validator: Some("\"1\"".to_owned()), size: Some(200_000) };
    keep(&files.with_extension("version"), &version).unwrap();
    let got = web.download(&files, None, &Quiet).await.unwrap();
    assert_eq!(got.sha256, Digest::of(&content()).hex());
    assert_eq!(shared.lock().unwrap().asked.len(), 1);
}

#[tokio::test]
async fn what_is_not_the_file_is_not_kept() {
    let (shared, web) = start(World { content: content(), ..World::default() }).await;
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    let wrong = "0".repeat(64);
    let error = web.download(&files, Some(&wrong), &Quiet).await.unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    shared.lock().unwrap().kind = Some("text/html; charset=utf-8");
    let error = web.download(&files, None, &Quiet).await.unwrap_err();
    assert!(matches!(error, Error::Page(_)), "{error}");
    for (status, want) in [(404, "is not there"), (403, "is not for us"), (400, "is refused")] {
        shared.lock().unwrap().status = Some(status);
        let error = web.download(&files, None, &Quiet).await.unwrap_err().to_string();
        assert!(error.contains(want) && !error.contains("secret"), "{error}");
    }
    assert!(!files.exists());
}
