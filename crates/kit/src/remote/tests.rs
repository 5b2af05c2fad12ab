//! Against our own registry, with a listener before it that fails as told.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::{upload::Upload, *};
use crate::{Digest, Reference, registry};

mod large;
mod tokens;

/// What happens to a request instead of, or after, being served.
#[derive(Clone, Debug)]
enum Fault {
    Answer(u16, Option<(&'static str, String)>),
    /// Served, but nobody hears of it.
    Lost,
    /// Served, with a header more.
    Also(&'static str, &'static str),
    /// After so many bytes the connection breaks.
    Cut(usize),
}

type Rule = (Method, &'static str, Fault);

#[derive(Clone, Default)]
struct Script {
    rules: Arc<Mutex<VecDeque<Rule>>>,
    asked: Arc<Mutex<Vec<(Method, String)>>>,
    received: Arc<AtomicU64>,
}

struct World {
    address: SocketAddr,
    script: Script,
    folder: TempDir,
}

async fn meddle(State(script): State<Script>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().to_string());
    script.asked.lock().unwrap().push((method.clone(), path.clone()));
    let fault = {
        let mut rules = script.rules.lock().unwrap();
        let at = rules.iter().position(|(m, part, _)| *m == method && path.contains(part));
        at.and_then(|at| rules.remove(at)).map(|(.., fault)| fault)
    };
    match fault {
        Some(Fault::Answer(status, header)) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            if let Some((name, value)) = header {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        Some(Fault::Lost) => {
            drop(next.run(request).await);
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
        Some(Fault::Also(name, value)) => {
            let mut response = next.run(request).await;
            response.headers_mut().insert(name, value.parse().unwrap());
            response
        }
        Some(Fault::Cut(count)) => {
            let (parts, body) = next.run(request).await.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            let first = stream::iter([Ok(bytes.slice(..count))]);
            // What was said before is on its way by then.
            let broken = stream::once(async {
                tokio::task::yield_now().await;
                Err(std::io::Error::other("cut"))
            });
            Response::from_parts(parts, Body::from_stream(first.chain(broken)))
        }
        None => {
            let count =
                request.headers().get("content-length").and_then(|v| v.to_str().ok()?.parse().ok());
            script.received.fetch_add(count.unwrap_or(0), Ordering::Relaxed);
            next.run(request).await
        }
    }
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("registry");
        let registry =
            registry::Registry::open(registry::Settings { root, ..Default::default() }).unwrap();
        let script = Script::default();
        let layer = middleware::from_fn_with_state(script.clone(), meddle);
        let router: Router = registry.router().layer(layer);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, script, folder }
    }

    fn remote(&self) -> Remote {
        let settings = Settings {
            plain_http: true,
            chunk: 4096,
            credentials: vec![self.folder.path().join("credentials.json")],
            ..Settings::default()
        };
        Remote::new(&self.address.to_string(), &settings).unwrap()
    }

    fn fail(&self, rules: impl IntoIterator<Item = Rule>) {
        self.script.rules.lock().unwrap().extend(rules);
    }

    fn asked(&self) -> Vec<(Method, String)> {
        std::mem::take(&mut self.script.asked.lock().unwrap())
    }

    fn reference(&self, text: &str) -> Reference {
        Reference::parse(&format!("{}/{text}", self.address)).unwrap()
    }
}

#[derive(Default)]
struct Kept(Mutex<Option<Upload>>);

impl Progress for Kept {
    fn sent(&self, _: u64) {}

    fn reached(&self, upload: &Upload) {
        *self.0.lock().unwrap() = Some(upload.clone());
    }
}

fn quiet() -> Arc<dyn Progress> {
    Arc::new(Kept::default())
}

async fn push(remote: &Remote, content: Bytes) -> Result<Digest, Error> {
    let digest = Digest::of(&content);
    remote.upload("a/m", &digest, Arc::new(content), None, quiet()).await?;
    Ok(digest)
}

async fn pull(remote: &Remote, digest: &Digest) -> Bytes {
    remote.blob("a/m", digest, 0, None).await.unwrap().response.bytes().await.unwrap()
}

#[tokio::test]
async fn what_is_pushed_can_be_pulled() {
    let world = World::new().await;
    let remote = world.remote();
    remote.ping().await.unwrap();
    let content = Bytes::from("weights".repeat(1000));
    let digest = push(&remote, content.clone()).await.unwrap();
    assert!(remote.has_blob("a/m", &digest).await.unwrap());
    let size = async || remote.find_blob("a/m", &digest).await.unwrap().unwrap().size;
    assert_eq!(size().await, Some(7000));
    // Who does not understand the question is asked for a byte.
    world.fail([(Method::HEAD, "/blobs/", Fault::Answer(405, None))]);
    assert_eq!(size().await, Some(7000));
    assert_eq!(pull(&remote, &digest).await, content);
    let part = remote.blob("a/m", &digest, 7, Some(7)).await.unwrap();
    assert_eq!((part.from, part.response.bytes().await.unwrap().as_ref()), (7, &b"weights"[..]));
    let link = format!(r#"{{"mediaType":"a/b","digest":"{digest}","size":7000}}"#);
    let manifest = Bytes::from(format!(r#"{{"schemaVersion":2,"config":{link},"layers":[]}}"#));
    let name = world.reference("a/m:v1");
    assert_eq!(remote.resolve(&name).await.unwrap(), None);
    let put = remote.put_manifest(&name, crate::manifest::IMAGE_MANIFEST, manifest.clone()).await;
    let pushed = put.unwrap();
    assert_eq!(remote.resolve(&name).await.unwrap(), Some(pushed.clone()));
    assert_eq!(remote.manifest(&name).await.unwrap().1, manifest);
    assert_eq!(remote.tags("a/m").await.unwrap(), ["v1"]);
    assert!(matches!(remote.tags("a/other").await, Err(Error::NotFound { .. })));
    assert!(remote.mount("b/m", &digest, "a/m").await.unwrap());
    assert!(!remote.mount("b/m", &Digest::of(b"missing"), "a/m").await.unwrap());
}

#[tokio::test]
async fn k21_what_passes_is_tried_again() {
    let world = World::new().await;
    let remote = world.remote();
    let wait = || Fault::Answer(429, Some(("retry-after", "0".to_owned())));
    world.fail([
        (Method::POST, "uploads", wait()),
        (Method::POST, "uploads", wait()),
        (Method::PUT, "uploads", Fault::Answer(500, None)),
        (Method::PUT, "uploads", Fault::Answer(500, None)),
    ]);
    let content = Bytes::from_static(b"weights");
    let digest = push(&remote, content.clone()).await.unwrap();
    assert_eq!(pull(&remote, &digest).await, content);
    for status in [400, 403, 404, 413] {
        world.fail([(Method::POST, "uploads", Fault::Answer(status, None))]);
        world.asked();
        assert!(push(&remote, Bytes::from_static(b"x")).await.is_err(), "{status}");
        assert_eq!(world.asked().len(), 1, "{status} is not tried again");
    }
    let endless = (0..6).map(|_| {
        (Method::POST, "uploads", Fault::Answer(503, Some(("retry-after", "0".to_owned()))))
    });
    world.fail(endless);
    world.asked();
    let error = push(&remote, Bytes::from_static(b"x")).await.unwrap_err();
    assert!(matches!(error, Error::Failed { attempts: 6, .. }), "{error}");
    assert_eq!(world.asked().len(), 6);
}

#[tokio::test]
async fn k23_k24_a_large_blob_goes_on_where_it_was() {
    let world = World::new().await;
    let remote = world.remote();
    let content = Bytes::from((0..=255u8).cycle().take(80 << 10).collect::<Vec<_>>());
    let digest = Digest::of(&content);
    // Ended in the middle by something that does not pass.
    let kept = Arc::new(Kept::default());
    world.fail([(Method::PATCH, "uploads", Fault::Lost)]);
    let send = async |begun| {
        let progress: Arc<dyn Progress> = kept.clone();
        remote.upload("a/m", &digest, Arc::new(content.clone()), begun, progress).await
    };
    send(None).await.unwrap();
    assert_eq!(pull(&remote, &digest).await, content);
    // An answer was lost, so one chunk may have been sent twice.
    let received = world.script.received.load(Ordering::Relaxed);
    assert!(received <= (80 << 10) + 4096, "{received}");

    let other = Bytes::from(vec![7; 80 << 10]);
    let digest = Digest::of(&other);
    let kept = Arc::new(Kept::default());
    let rules = (0..9).map(|_| (Method::PATCH, "never", Fault::Lost));
    world.fail(rules);
    let begun = remote.begin_for_test("a/m").await;
    let first = begun.clone();
    assert_eq!(first.offset, 0);
    world.script.received.store(0, Ordering::Relaxed);
    let progress: Arc<dyn Progress> = kept.clone();
    remote.upload("a/m", &digest, Arc::new(other.clone()), Some(begun), progress).await.unwrap();
    assert_eq!(world.script.received.load(Ordering::Relaxed), 80 << 10);
    // An upload that the registry has forgotten begins anew.
    let gone = kept.0.lock().unwrap().clone().unwrap();
    let third = Bytes::from(vec![9; 80 << 10]);
    let digest = Digest::of(&third);
    remote.upload("a/m", &digest, Arc::new(third.clone()), Some(gone), quiet()).await.unwrap();
    assert_eq!(pull(&remote, &digest).await, third);
}

/// Counts how often it is read.
struct Once(Bytes, AtomicU64);

impl Source for Once {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn open(&self, from: u64) -> io::Result<Box<dyn io::Read + Send>> {
        if from == 0 {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
        self.0.open(from)
    }
}

#[tokio::test]
async fn what_nobody_has_hashed_yet_is_read_once() {
    let world = World::new().await;
    let remote = world.remote();
    // In one request, and in parts.
    for size in [4000, 80 << 10, 0] {
        let content = Bytes::from((0..=255u8).cycle().take(size).collect::<Vec<_>>());
        let source = Arc::new(Once(content.clone(), AtomicU64::new(0)));
        let kept = Arc::new(Kept::default());
        world.asked();
        let sent = remote.upload_unknown("a/m", source.clone(), kept.clone()).await.unwrap();
        assert_eq!(sent, Some(Digest::of(&content)), "{size}");
        assert_eq!(pull(&remote, &Digest::of(&content)).await, content);
        assert!(source.1.load(Ordering::Relaxed) <= 1);
        let parts = world.asked().iter().filter(|(method, _)| method == Method::PATCH).count();
        assert_eq!(parts, size.div_ceil(4096));
        assert_eq!(kept.0.lock().unwrap().is_some(), parts > 1, "only parts can be resumed");
    }
}

#[tokio::test]
async fn what_is_cut_while_nobody_knows_its_digest_goes_on_by_its_digest() {
    let world = World::new().await;
    let remote = world.remote();
    let content = Bytes::from((0..=255u8).cycle().take(80 << 10).collect::<Vec<_>>());
    let kept = Arc::new(Kept::default());
    // The first part has come, and nobody hears of it.
    world.fail([(Method::PATCH, "uploads", Fault::Lost)]);
    let sent = remote.upload_unknown("a/m", Arc::new(content.clone()), kept.clone()).await;
    assert_eq!(sent.unwrap(), None);
    let digest = Digest::of(&content);
    assert!(!remote.has_blob("a/m", &digest).await.unwrap());
    let begun = kept.0.lock().unwrap().clone();
    remote.upload("a/m", &digest, Arc::new(content.clone()), begun, quiet()).await.unwrap();
    assert_eq!(pull(&remote, &digest).await, content);
    // A whole one that is refused, and one that is not allowed.
    let small = Bytes::from_static(b"small");
    world.fail([(Method::PATCH, "uploads", Fault::Answer(416, None))]);
    let sent = remote.upload_unknown("a/m", Arc::new(small.clone()), quiet()).await;
    assert_eq!(sent.unwrap(), None);
    world.fail([(Method::PATCH, "uploads", Fault::Answer(403, None))]);
    let sent = remote.upload_unknown("a/m", Arc::new(small), quiet()).await;
    assert!(matches!(sent, Err(Error::Denied { .. })));
}

#[tokio::test]
async fn a_blob_is_read_on_where_its_connection_broke() {
    let world = World::new().await;
    let remote = world.remote();
    let content: Bytes = (0..=255).cycle().take(200_000).collect::<Vec<u8>>().into();
    let digest = push(&remote, content.clone()).await.unwrap();
    world.fail([70_000, 1].map(|count| (Method::GET, "/blobs/sha256", Fault::Cut(count))));
    let mut reader = remote.reader("a/m", &digest, content.len() as u64);
    let read = tokio::task::spawn_blocking(move || {
        let mut all = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut all).map(|_| all)
    });
    assert_eq!(read.await.unwrap().unwrap(), content);
    let asked = world.script.asked.lock().unwrap();
    let count = asked
        .iter()
        .filter(|(method, path)| method == Method::GET && path.contains("/blobs/sha256"));
    assert_eq!(count.count(), 3);
}

#[tokio::test]
async fn k20_who_is_refused_learns_why() {
    let world = World::new().await;
    let remote = world.remote();
    for status in [401, 403] {
        world.fail([(Method::GET, "manifests", Fault::Answer(status, None))]);
        world.asked();
        let error = remote.manifest(&world.reference("a/m:v1")).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Denied { .. }), "{text}");
        assert!(text.contains(&world.address.to_string()) && text.contains("a/m:v1"), "{text}");
        assert!(text.contains("there are no credentials"), "{text}");
        assert_eq!(world.asked().len(), 1, "{status} is not tried again");
    }
    let error = remote.manifest(&world.reference("a/m:v1")).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn a_password_is_sent_when_it_is_asked_for_and_to_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let account = Some(registry::Account::new("u", "secret"));
    let root = folder.path().join("registry");
    let registry = registry::Registry::open(registry::Settings {
        root,
        account,
        read_only: false,
        only_here: false,
    })
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let router = registry.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let file = folder.path().join("credentials.json");
    let settings =
        || Settings { plain_http: true, credentials: vec![file.clone()], ..Settings::default() };
    let error = Remote::new(&address, &settings()).unwrap().ping().await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    credentials::keep(&file, &address, "u", "secret").unwrap();
    let remote = Remote::new(&address, &settings()).unwrap();
    remote.ping().await.unwrap();
    push(&remote, Bytes::from_static(b"x")).await.unwrap();
    credentials::keep(&file, &address, "u", "wrong").unwrap();
    let error = Remote::new(&address, &settings()).unwrap().ping().await.unwrap_err();
    assert!(error.to_string().contains("credentials.json"), "{error}");
    assert!(!format!("{error:?}").contains("wrong"), "{error:?}");
}

/// Sends whoever asks to this server for a token.
fn challenge(request: &Request) -> Response {
    let host = request.headers()["host"].to_str().unwrap();
    let challenge = format!(r#"Bearer realm="http://{host}/token",service="s""#);
    let refused = Response::builder().status(StatusCode::UNAUTHORIZED);
    refused.header("www-authenticate", challenge).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn k22_tokens_are_asked_for_and_renewed() {
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let token = axum::routing::get(move || {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        async move { format!(r#"{{"token":"t{number}","expires_in":300}}"#) }
    });
    let wanted = asked.clone();
    let guarded = move |request: Request| {
        let now = format!("Bearer t{}", wanted.load(Ordering::Relaxed).max(1));
        let is_known = request.headers().get("authorization").is_some_and(|v| *v == now.as_str());
        std::future::ready(if is_known {
            Response::new(Body::empty())
        } else {
            challenge(&request)
        })
    };
    let router = Router::new().route("/token", token).fallback(guarded);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = Settings { plain_http: true, ..Settings::default() };
    let remote = Remote::new(&address, &settings).unwrap();
    let digest = Digest::of(b"x");
    assert!(remote.has_blob("m", &digest).await.unwrap());
    assert!(remote.has_blob("m", &digest).await.unwrap());
    assert_eq!(asked.load(Ordering::Relaxed), 1, "it is kept");
    // The registry wants a newer one.
    asked.fetch_add(1, Ordering::Relaxed);
    assert!(remote.has_blob("m", &digest).await.unwrap());
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn k22_a_token_that_ends_between_parts_is_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("registry");
    let registry =
        registry::Registry::open(registry::Settings { root, ..Default::default() }).unwrap();
    // Every token is good for three requests.
    let given = Arc::new(AtomicU64::new(0));
    let used = Arc::new(AtomicU64::new(0));
    let (count, fresh) = (given.clone(), used.clone());
    let token = axum::routing::get(move || {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        fresh.store(0, Ordering::Relaxed);
        async move { format!(r#"{{"token":"t{number}","expires_in":300}}"#) }
    });
    let now = given.clone();
    let guard = middleware::from_fn(move |request: Request, next: Next| {
        let wanted = format!("Bearer t{}", now.load(Ordering::Relaxed));
        let is_known =
            request.headers().get("authorization").is_some_and(|v| *v == wanted.as_str());
        let is_good = is_known && used.fetch_add(1, Ordering::Relaxed) < 3;
        async move { if is_good { next.run(request).await } else { challenge(&request) } }
    });
    let router = registry.router().layer(guard).merge(Router::new().route("/token", token));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = Settings { plain_http: true, chunk: 4096, ..Settings::default() };
    let remote = Remote::new(&address, &settings).unwrap();
    let content = Bytes::from(vec![7; 80 << 10]);
    let digest = push(&remote, content.clone()).await.unwrap();
    assert_eq!(pull(&remote, &digest).await, content);
    assert!(given.load(Ordering::Relaxed) >= 6, "{given:?}");
}
