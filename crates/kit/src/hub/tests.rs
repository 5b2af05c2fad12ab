//! Against a small server that speaks as the hub does.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
};
use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

use super::*;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

#[derive(Default)]
struct World {
    /// Path, content, whether it is a large one.
    files: Vec<(String, Vec<u8>, bool)>,
    page: usize,
    /// After so many bytes the connection is cut, once.
    cut: Option<usize>,
    /// Answers before all others: part of the path, status, headers.
    answers: Vec<(&'static str, u16, Headers)>,
    asked: Vec<(String, HeaderMap)>,
    wrong: bool,
}

type Headers = Vec<(&'static str, String)>;
type Shared = Arc<Mutex<World>>;

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn git(bytes: &[u8]) -> String {
    let mut hash = sha1::Sha1::new_with_prefix(format!("blob {}\0", bytes.len()));
    hash.update(bytes);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn item(world: &World, (path, content, is_large): &(String, Vec<u8>, bool)) -> Value {
    let sum = if world.wrong { "0".repeat(64) } else { sha256(content) };
    match is_large {
        true => json!({"type": "file", "path": path, "size": 130, "oid": "pointer",
            "lfs": {"oid": sum, "size": content.len(), "pointerSize": 130}}),
        false => json!({"type": "file", "path": path, "size": content.len(), "oid": git(content)}),
    }
}

async fn serve(State(world): State<Shared>, request: Request) -> http::Response<Body> {
    let mut world = world.lock().unwrap();
    let target = request.uri().to_string();
    world.asked.push((target.clone(), request.headers().clone()));
    if let Some(at) = world.answers.iter().position(|(part, ..)| target.contains(part)) {
        let (_, status, headers) = world.answers.remove(at);
        let mut response = http::Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(name, value);
        }
        return response.body(Body::empty()).unwrap();
    }
    if target.contains("/revision/") {
        return http::Response::new(Body::from(json!({"sha": COMMIT}).to_string()));
    }
    if let Some((_, query)) = target.split_once(&format!("/tree/{COMMIT}?")) {
        let first: usize = query.split_once("cursor=").map_or(0, |(_, c)| c.parse().unwrap());
        let page = world.files.iter().skip(first).take(world.page);
        let items: Vec<Value> = page.map(|file| item(&world, file)).collect();
        let next = first + items.len();
        let mut response = http::Response::builder();
        if next < world.files.len() {
            let host = request.headers()["host"].to_str().unwrap();
            let path = target.split('?').next().unwrap();
            response = response.header(
                "link",
                format!("<http://{host}{path}?recursive=true&cursor={next}>; rel=\"next\""),
            );
        }
        return response.body(Body::from(Value::from(items).to_string())).unwrap();
    }
    let path = target.rsplit_once(&format!("{COMMIT}/")).map(|(_, path)| path).unwrap_or_default();
    let path = percent_encoding::percent_decode_str(path).decode_utf8().unwrap().into_owned();
    let Some((_, content, _)) = world.files.iter().find(|(known, ..)| *known == path).cloned()
    else {
        return http::Response::builder().status(404).body(Body::empty()).unwrap();
    };
    let from: usize = request.headers().get("range").map_or(0, |range| {
        range.to_str().unwrap().trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap()
    });
    let rest = content[from..].to_vec();
    let status = if from > 0 { 206 } else { 200 };
    let response = http::Response::builder().status(status).header("content-length", rest.len());
    match world.cut.take() {
        Some(cut) => {
            let first = futures::stream::iter([Ok(Bytes::from(rest[..cut].to_vec()))]);
            // What was said before is on its way by then.
            let broken = futures::stream::once(async {
                tokio::task::yield_now().await;
                Err(std::io::Error::other("cut"))
            });
            response.body(Body::from_stream(first.chain(broken))).unwrap()
        }
        None => response.body(Body::from(rest)).unwrap(),
    }
}

async fn start(world: World) -> (Shared, SocketAddr) {
    let shared = Arc::new(Mutex::new(world));
    let router = Router::new().fallback(serve).with_state(shared.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (shared, address)
}

struct Quiet;

impl Progress for Quiet {
    fn received(&self, _: &str, _: u64) {}
}

fn repository() -> Repository {
    Repository::parse("org/tiny", ENDPOINT).unwrap()
}

fn hub(address: SocketAddr) -> Hub {
    Hub::new(&format!("http://{address}"), Some("secret".to_owned())).unwrap()
}

#[test]
fn repositories_are_named_in_three_ways() {
    for (text, is_dataset) in [
        ("org/tiny", false),
        ("https://huggingface.co/org/tiny/", false),
        ("https://huggingface.co/datasets/org/tiny", true),
        ("http://hub.local/org/tiny", false),
    ] {
        let parsed = Repository::parse(text, "http://hub.local").unwrap();
        assert_eq!((parsed.name(), parsed.is_dataset), ("org/tiny", is_dataset), "{text}");
    }
    for text in ["tiny", "org/", "../tiny", "org/a b", "https://elsewhere/org/tiny", "a/b/c", ""] {
        assert!(Repository::parse(text, ENDPOINT).is_err(), "{text:?}");
    }
}

#[test]
fn the_page_of_a_file_names_its_repository_and_revision() {
    for between in ["resolve", "blob"] {
        let text =
            format!("{ENDPOINT}/org/tiny/{between}/refs%2Fpr%2F1/a%20b/m.gguf?download=true");
        let (repository, revision, path) = Repository::parse_file(&text, ENDPOINT).unwrap();
        assert_eq!((repository.name(), revision.as_str()), ("org/tiny", "refs/pr/1"));
        assert_eq!(path, "a b/m.gguf");
    }
    assert!(Repository::parse_file("https://h/o/t/resolve/main/m.gguf", ENDPOINT).is_none());
    assert!(Repository::parse_file("org/tiny", ENDPOINT).is_none());
}

#[tokio::test]
async fn k25_all_pages_odd_names_and_what_was_cut() {
    let mut files: Vec<_> =
        (0..2498).map(|number| (format!("f{number}.txt"), vec![b'x'; 3], false)).collect();
    files.push(("a b#%.json".to_owned(), b"{}".to_vec(), false));
    files.push(("large.bin".to_owned(), (0..=255).cycle().take(20_000_000).collect(), true));
    let all = files.clone();
    let world = World { files, page: 1000, cut: Some(7_000_000), ..World::default() };
    let (shared, address) = start(world).await;
    let hub = hub(address);
    let snapshot = hub.snapshot(&repository(), "main").await.unwrap();
    assert_eq!((snapshot.commit.as_str(), snapshot.files.len()), (COMMIT, 2500));
    // From now on the branch leads elsewhere, so whoever asked for it by name would get nothing.
    for _ in 0..9 {
        shared.lock().unwrap().answers.push(("/main", 404, Vec::new()));
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("files");
    let large = snapshot.files.iter().find(|file| file.path == "large.bin").unwrap();
    let place = hub.download(&repository(), COMMIT, large, &whole, &Quiet).await.unwrap();
    assert_eq!(std::fs::metadata(place).unwrap().len(), 20_000_000);
    let others = snapshot.files.iter().filter(|file| file.path != "large.bin");
    for file in others {
        hub.download(&repository(), COMMIT, file, &whole, &Quiet).await.unwrap();
    }
    for (name, content, _) in &all {
        assert!(std::fs::read(whole.join(name)).unwrap() == *content, "{name}");
    }
    let asked = std::mem::take(&mut shared.lock().unwrap().asked);
    let ranges: Vec<_> = asked.iter().filter_map(|(_, headers)| headers.get("range")).collect();
    assert_eq!(ranges, ["bytes=7000000-"]);
    assert!(asked.iter().any(|(target, _)| target.ends_with("/a%20b%23%25.json")));
    assert!(asked.iter().skip(1).all(|(target, _)| target.contains(COMMIT)), "one commit only");
    // What is there is not asked for again.
    hub.download(&repository(), COMMIT, large, &whole, &Quiet).await.unwrap();
    assert!(shared.lock().unwrap().asked.is_empty());
}

#[tokio::test]
async fn k26_what_does_not_match_is_not_kept() {
    let files = vec![("model.bin".to_owned(), b"weights".to_vec(), true)];
    let (_, address) = start(World { files, page: 10, wrong: true, ..World::default() }).await;
    let hub = hub(address);
    let snapshot = hub.snapshot(&repository(), "main").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("files");
    let file = &snapshot.files[0];
    let outcome = hub.download(&repository(), COMMIT, file, &whole, &Quiet).await;
    assert!(matches!(outcome, Err(Error::Mismatch { kind: "SHA-256", .. })));
    assert!(!whole.exists());
}

#[tokio::test]
async fn what_was_put_together_wrongly_is_read_anew() {
    let content: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let files = vec![("model.bin".to_owned(), content.clone(), true)];
    let (shared, address) = start(World { files, page: 10, ..World::default() }).await;
    let hub = hub(address);
    let snapshot = hub.snapshot(&repository(), "main").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("files");
    // As if the end of an earlier run had been lost together with the machine.
    let part = folder.path().join("files.parts/model.bin");
    std::fs::create_dir(part.parent().unwrap()).unwrap();
    std::fs::write(&part, vec![0; 150_000]).unwrap();
    shared.lock().unwrap().asked.clear();
    let file = &snapshot.files[0];
    let place = hub.download(&repository(), COMMIT, file, &whole, &Quiet).await.unwrap();
    assert_eq!(std::fs::read(place).unwrap(), content);
    let asked = std::mem::take(&mut shared.lock().unwrap().asked);
    let ranges: Vec<_> = asked.iter().map(|(_, headers)| headers.get("range").cloned()).collect();
    assert_eq!(ranges, [Some("bytes=150000-".parse().unwrap()), None]);
}

#[tokio::test]
async fn the_hub_is_asked_as_often_as_told() {
    let (shared, address) = start(World::default()).await;
    for attempts in [1, 3] {
        let settings = remote::Settings { attempts, ..remote::Settings::default() };
        let hub = Hub::with(&format!("http://{address}"), None, &settings).unwrap();
        let busy = ("/revision/", 503, vec![("retry-after", "0".to_owned())]);
        shared.lock().unwrap().answers = vec![busy; 9];
        let outcome = hub.snapshot(&repository(), "main").await;
        assert!(matches!(outcome, Err(Error::Failed { attempts: n, .. }) if n == attempts));
        assert_eq!(std::mem::take(&mut shared.lock().unwrap().asked).len(), attempts as usize);
    }
}

#[tokio::test]
async fn k26_refusals_are_told_apart() {
    let (shared, address) = start(World::default()).await;
    let hub = hub(address);
    let code = |code: &str| vec![("x-error-code", code.to_owned())];
    let try_with = async |status: u16, headers: Headers| {
        shared.lock().unwrap().answers.push(("/revision/", status, headers));
        hub.snapshot(&repository(), "x").await.unwrap_err()
    };
    assert!(matches!(try_with(403, code("GatedRepo")).await, Error::Gated(_)));
    assert!(matches!(try_with(401, code("RepoNotFound")).await, Error::NoRepository(_)));
    let error = try_with(404, code("RevisionNotFound")).await;
    assert!(error.to_string().starts_with("reference 'x' not found"), "{error}");
    assert!(matches!(try_with(403, Vec::new()).await, Error::Denied { .. }));
    assert!(matches!(try_with(400, Vec::new()).await, Error::Refused { .. }));
    // What passes is waited for.
    let wait = || vec![("retry-after", "0".to_owned())];
    shared.lock().unwrap().answers.push(("/revision/", 429, wait()));
    shared.lock().unwrap().answers.push(("/revision/", 503, wait()));
    hub.snapshot(&repository(), "x").await.unwrap();
}

#[tokio::test]
async fn k26_the_token_stays_with_the_hub() {
    let files = vec![("model.bin".to_owned(), b"weights".to_vec(), true)];
    let (elsewhere, other) = start(World { files: files.clone(), ..World::default() }).await;
    let (shared, address) = start(World { files, page: 10, ..World::default() }).await;
    let hub = hub(address);
    let snapshot = hub.snapshot(&repository(), "main").await.unwrap();
    // Another host, not only another port.
    let location = format!("http://localhost:{}/{COMMIT}/model.bin", other.port());
    shared.lock().unwrap().answers.push(("/resolve/", 302, vec![("location", location)]));
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("files");
    hub.download(&repository(), COMMIT, &snapshot.files[0], &whole, &Quiet).await.unwrap();
    let ours = shared.lock().unwrap();
    assert!(ours.asked.iter().all(|(_, headers)| headers["authorization"] == "Bearer secret"));
    let theirs = elsewhere.lock().unwrap();
    assert_eq!(theirs.asked.len(), 1);
    assert!(!theirs.asked[0].1.contains_key("authorization"));
}

#[tokio::test]
async fn lists_that_make_no_sense_are_refused() {
    for (path, type_) in [("../evil", "file"), ("/abs", "file"), ("a", "submodule")] {
        let listed = json!([{"type": type_, "path": path, "size": 1, "oid": "x"}]).to_string();
        let file = file(serde_json::from_str::<Vec<Item>>(&listed).unwrap().remove(0), "list");
        assert!(matches!(file, Err(Error::Nonsense { .. })), "{path}");
    }
}
