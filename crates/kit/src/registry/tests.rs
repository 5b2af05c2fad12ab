use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use super::*;
use crate::Digest;

struct Server {
    registry: Arc<Registry>,
    folder: TempDir,
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Server {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        let registry = Registry::open(Settings { root, ..Settings::default() }).unwrap();
        Self { registry, folder }
    }

    /// The same files, opened anew.
    fn again(self) -> Self {
        let root = self.folder.path().to_owned();
        let registry = Registry::open(Settings { root, ..Settings::default() }).unwrap();
        Self { registry, folder: self.folder }
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Body) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.registry.router().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], Body::empty()).await
    }

    async fn push_blob(&self, name: &str, content: &'static [u8]) -> Digest {
        let digest = Digest::of(content);
        let started =
            self.ask("POST", &format!("/v2/{name}/blobs/uploads/"), &[], Body::empty()).await;
        assert_eq!(started.status, 202);
        let place = format!("{}?digest={digest}", started.header("location"));
        let put = self.ask("PUT", &place, &[], Body::from(content)).await;
        assert_eq!(put.status, 201);
        digest
    }

    async fn push_manifest(&self, place: &str, manifest: &Value) -> Answer {
        let headers = [("content-type", crate::manifest::IMAGE_MANIFEST)];
        self.ask("PUT", place, &headers, Body::from(manifest.to_string())).await
    }
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn code(&self) -> String {
        self.json()["errors"][0]["code"].as_str().unwrap().to_owned()
    }
}

fn manifest(config: &Digest, layers: &[&Digest]) -> Value {
    let link = |digest: &Digest| json!({"mediaType": "a/b", "digest": digest, "size": 1});
    json!({
        "schemaVersion": 2, "config": link(config),
        "layers": layers.iter().map(|digest| link(digest)).collect::<Vec<_>>(),
    })
}

#[tokio::test]
async fn what_was_pushed_is_pulled() {
    let server = Server::new();
    let (config, layer) =
        (server.push_blob("m", b"{}").await, server.push_blob("m", b"weights").await);
    let manifest = manifest(&config, &[&layer]);
    let put = server.push_manifest("/v2/m/manifests/v1", &manifest).await;
    let digest = Digest::of(manifest.to_string().as_bytes());
    assert_eq!((put.status, put.header("docker-content-digest")), (201, digest.as_str()));
    for reference in ["v1", digest.as_str()] {
        let got = server.get(&format!("/v2/m/manifests/{reference}")).await;
        assert_eq!((got.status, got.body), (200, Bytes::from(manifest.to_string())));
        assert_eq!(got.headers["content-type"], crate::manifest::IMAGE_MANIFEST);
    }
    let server = server.again();
    let place = format!("/v2/m/blobs/{layer}");
    assert_eq!(server.get(&place).await.body, "weights");
    let part = server.ask("GET", &place, &[("range", "bytes=2-4")], Body::empty()).await;
    assert_eq!((part.status, part.body.as_ref()), (206, &b"igh"[..]));
    assert_eq!(part.headers["content-range"], "bytes 2-4/7");
    let beyond = server.ask("GET", &place, &[("range", "bytes=7-")], Body::empty()).await;
    assert_eq!(beyond.status, 416);
    let head = server.ask("HEAD", &place, &[], Body::empty()).await;
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, "7", 0));
    let tags = server.get("/v2/m/tags/list").await.json();
    assert_eq!(tags, json!({"name": "m", "tags": ["v1"]}));
    assert_eq!(server.get("/v2/_catalog").await.json(), json!({"repositories": ["m"]}));
}

#[tokio::test]
async fn chunks_must_follow_each_other() {
    let server = Server::new();
    let started = server.ask("POST", "/v2/m/blobs/uploads/", &[], Body::empty()).await;
    let place = started.header("location").to_owned();
    let chunk = async |server: &Server, range: &str, bytes: &'static str| {
        server.ask("PATCH", &place, &[("content-range", range)], Body::from(bytes)).await
    };
    let first = chunk(&server, "0-3", "abcd").await;
    assert_eq!((first.status, first.header("range")), (202, "0-3"));
    for range in ["0-3", "5-6"] {
        let wrong = chunk(&server, range, "xx").await;
        assert_eq!((wrong.status, wrong.header("range")), (416, "0-3"), "{range}");
    }
    // Whoever was stopped in between goes on where it was.
    let server = server.again();
    let state = server.get(&place).await;
    assert_eq!((state.status, state.header("range")), (204, "0-3"));
    assert_eq!(chunk(&server, "4-5", "ef").await.status, 202);
    let wrong = Digest::of(b"something else");
    let put = server.ask("PUT", &format!("{place}?digest={wrong}"), &[], Body::empty()).await;
    assert_eq!((put.status, put.code()), (400, "DIGEST_INVALID".to_owned()));
    let right = Digest::of(b"abcdef");
    let put = server.ask("PUT", &format!("{place}?digest={right}"), &[], Body::empty()).await;
    assert_eq!((put.status, put.header("docker-content-digest")), (201, right.as_str()));
    assert_eq!(server.get(&place).await.code(), "BLOB_UPLOAD_UNKNOWN");
}

#[tokio::test]
async fn what_came_before_a_connection_broke_is_kept() {
    let server = Server::new();
    let started = server.ask("POST", "/v2/m/blobs/uploads/", &[], Body::empty()).await;
    let place = started.header("location").to_owned();
    let pieces = [Ok(Bytes::from("abc")), Err(std::io::Error::other("gone"))];
    let cut =
        Body::from_stream(tokio_util::io::ReaderStream::new(Pieces(pieces.into_iter().collect())));
    let answer = server.ask("PATCH", &place, &[], cut).await;
    assert_eq!(answer.status, 400);
    assert_eq!(server.get(&place).await.header("range"), "0-2");
}

#[tokio::test]
async fn how_much_has_come_is_told_when_the_last_of_it_has() {
    let server = Server::new();
    let started = server.ask("POST", "/v2/m/blobs/uploads/", &[], Body::empty()).await;
    let place = started.header("location").to_owned();
    let (sender, pieces) = futures::channel::mpsc::unbounded();
    let send = |text: &'static str| {
        sender.unbounded_send(Ok::<_, std::io::Error>(Bytes::from(text))).unwrap();
    };
    send("abc");
    let ends = async {
        tokio::task::yield_now().await;
        send("def");
        sender.close_channel();
    };
    let patch = server.ask("PATCH", &place, &[], Body::from_stream(pieces));
    let (sent, told, ()) = tokio::join!(patch, server.get(&place), ends);
    assert_eq!((sent.status, told.header("range")), (202, "0-5"));
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_while_others_send_on_learns_how_far_they_are() {
    let server = Server::new();
    let started = server.ask("POST", "/v2/m/blobs/uploads/", &[], Body::empty()).await;
    let place = started.header("location").to_owned();
    let patch = server.ask(
        "PATCH",
        &place,
        &[],
        Body::from_stream(futures::stream::pending::<std::io::Result<Bytes>>()),
    );
    tokio::select! {
        _ = patch => panic!("it has no end"),
        told = server.get(&place) => assert_eq!((told.status, told.header("range")), (204, "0-0")),
    }
}

/// Reads pieces, and fails where one is an error.
struct Pieces(std::collections::VecDeque<std::io::Result<Bytes>>);

impl tokio::io::AsyncRead for Pieces {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(match self.0.pop_front() {
            Some(Ok(piece)) => {
                buffer.put_slice(&piece);
                Ok(())
            }
            Some(Err(error)) => Err(error),
            None => Ok(()),
        })
    }
}

#[tokio::test]
async fn a_blob_is_mounted_and_sent_in_one_request() {
    let server = Server::new();
    let known = server.push_blob("a", b"shared").await;
    let mount = format!("/v2/b/c/blobs/uploads/?mount={known}&from=a");
    let mounted = server.ask("POST", &mount, &[], Body::empty()).await;
    assert_eq!((mounted.status, mounted.header("docker-content-digest")), (201, known.as_str()));
    let missing = Digest::of(b"missing");
    let mount = format!("/v2/b/blobs/uploads/?mount={missing}&from=a");
    assert_eq!(server.ask("POST", &mount, &[], Body::empty()).await.status, 202);
    let single = format!("/v2/b/blobs/uploads/?digest={missing}");
    assert_eq!(server.ask("POST", &single, &[], Body::from("missing")).await.status, 201);
    assert_eq!(server.get(&format!("/v2/b/blobs/{missing}")).await.body, "missing");
}

#[tokio::test]
async fn a_manifest_that_makes_no_sense_is_refused() {
    let server = Server::new();
    let config = server.push_blob("m", b"{}").await;
    let missing = Digest::of(b"missing");
    for (manifest, code) in [
        (manifest(&config, &[&missing]), "MANIFEST_BLOB_UNKNOWN"),
        (json!({"schemaVersion": 1}), "MANIFEST_INVALID"),
        (json!({"schemaVersion": 2}), "MANIFEST_INVALID"),
        (json!({"schemaVersion": 2, "config": {"digest": "../../etc"}}), "MANIFEST_INVALID"),
        (json!([1]), "MANIFEST_INVALID"),
    ] {
        let answer = server.push_manifest("/v2/m/manifests/v1", &manifest).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, code), "{manifest}");
    }
    let other = format!("/v2/m/manifests/{missing}");
    let answer = server.push_manifest(&other, &manifest(&config, &[])).await;
    assert_eq!(answer.code(), "DIGEST_INVALID");
    let large = json!({"schemaVersion": 2, "x": "x".repeat(5 << 20)});
    assert_eq!(server.push_manifest("/v2/m/manifests/v1", &large).await.status, 413);
}

#[tokio::test]
async fn lists_come_in_pages() {
    let server = Server::new();
    let config = server.push_blob("m", b"{}").await;
    for tag in ["c", "a", "b"] {
        server.push_manifest(&format!("/v2/m/manifests/{tag}"), &manifest(&config, &[])).await;
    }
    let first = server.get("/v2/m/tags/list?n=2").await;
    assert_eq!(first.json()["tags"], json!(["a", "b"]));
    assert_eq!(first.header("link"), "</v2/m/tags/list?n=2&last=b>; rel=\"next\"");
    let second = server.get("/v2/m/tags/list?n=2&last=b").await;
    assert_eq!((second.json()["tags"].clone(), second.header("link")), (json!(["c"]), ""));
    assert_eq!(server.get("/v2/other/tags/list").await.status, 404);
}

#[tokio::test]
async fn who_refers_to_something_is_found() {
    let server = Server::new();
    let config = server.push_blob("m", b"{}").await;
    let model = manifest(&config, &[]);
    server.push_manifest("/v2/m/manifests/v1", &model).await;
    let subject = Digest::of(model.to_string().as_bytes());
    let mut signature = manifest(&config, &[]);
    signature["subject"] = json!({"mediaType": "a/b", "digest": subject, "size": 1});
    signature["artifactType"] = json!("a/signature");
    let by_digest = format!("/v2/m/manifests/{}", Digest::of(signature.to_string().as_bytes()));
    let put = server.push_manifest(&by_digest, &signature).await;
    assert_eq!(put.header("oci-subject"), subject.as_str());
    let count = async |query: &str| {
        let found = server.get(&format!("/v2/m/referrers/{subject}{query}")).await.json();
        found["manifests"].as_array().unwrap().len()
    };
    assert_eq!((count("").await, count("?artifactType=a/signature").await), (1, 1));
    assert_eq!(count("?artifactType=other").await, 0);
    assert_eq!(server.ask("DELETE", &by_digest, &[], Body::empty()).await.status, 202);
    assert_eq!(count("").await, 0);
}

#[tokio::test]
async fn what_nothing_leads_to_is_swept() {
    let server = Server::new();
    let (config, layer) =
        (server.push_blob("m", b"{}").await, server.push_blob("m", b"kept").await);
    let stray = server.push_blob("m", b"stray").await;
    server.push_manifest("/v2/m/manifests/v1", &manifest(&config, &[&layer])).await;
    server.ask("POST", "/v2/m/blobs/uploads/", &[], Body::empty()).await;
    // Files of somebody else.
    for name in ["uploads/mine.txt", "blobs/sha256/st/mine.txt"] {
        let path = server.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "mine").unwrap();
    }
    let (now, hour) = (SystemTime::now(), Duration::from_secs(60 * 60));
    let sweep = async |now, dry_run| server.registry.sweep(now, hour, dry_run).await.unwrap();
    assert_eq!(sweep(now, false).await, Swept::default());
    let later = now + 25 * hour;
    let told = sweep(later, true).await;
    assert_eq!(told, Swept { blobs: 1, uploads: 1, bytes: 5 });
    assert_eq!(sweep(later, false).await, told);
    assert!(server.folder.path().join("uploads/mine.txt").exists());
    assert!(server.folder.path().join("blobs/sha256/st/mine.txt").exists());
    assert_eq!(server.get(&format!("/v2/m/blobs/{stray}")).await.status, 404);
    assert_eq!(server.get(&format!("/v2/m/blobs/{layer}")).await.status, 200);
    assert_eq!(server.get("/v2/m/manifests/v1").await.status, 200);
}

#[tokio::test]
async fn who_has_no_password_gets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        root: folder.path().to_owned(),
        account: Some(Account::new("u", "p")),
        read_only: true,
        only_here: false,
    };
    let server = Server { registry: Registry::open(settings).unwrap(), folder };
    let refused = server.get("/v2/").await;
    assert_eq!(
        (refused.status, refused.header("www-authenticate")),
        (401, "Basic realm=\"windlass\"")
    );
    let known = [("authorization", "Basic dTpw")];
    assert_eq!(server.ask("GET", "/v2/", &known, Body::empty()).await.status, 200);
    let wrong = [("authorization", "Basic dTpx")];
    assert_eq!(server.ask("GET", "/v2/", &wrong, Body::empty()).await.status, 401);
    let write = server.ask("POST", "/v2/m/blobs/uploads/", &known, Body::empty()).await;
    assert_eq!(write.status, 405);
}

#[tokio::test]
async fn what_has_become_a_blob_is_not_written_to_any_more() {
    let server = Server::new();
    let started = server.ask("POST", "/v2/m/blobs/uploads/", &[], Body::empty()).await;
    let place = started.header("location").to_owned();
    let digest = Digest::of(b"once");
    let end = format!("{place}?digest={digest}");
    // Somebody has found the upload before the other one ends it.
    let id = route::Id::parse(place.rsplit('/').next().unwrap()).unwrap();
    let late = server.registry.uploads.known_for_test(&id);
    assert_eq!(server.ask("PUT", &end, &[], Body::from("once")).await.status, 201);
    assert!(late.is_refused_for_test().await);
    for (method, place) in [("PUT", &end), ("PATCH", &place), ("GET", &place)] {
        assert_eq!(
            server.ask(method, place, &[], Body::from("once")).await.status,
            404,
            "{method}"
        );
    }
    assert_eq!(server.get(&format!("/v2/m/blobs/{digest}")).await.body, "once");
}

#[tokio::test]
async fn a_manifest_that_cannot_be_read_saves_everything() {
    let server = Server::new();
    let (config, layer) =
        (server.push_blob("m", b"{}").await, server.push_blob("m", b"kept").await);
    let manifest = manifest(&config, &[&layer]);
    server.push_manifest("/v2/m/manifests/v1", &manifest).await;
    let digest = Digest::of(manifest.to_string().as_bytes());
    let path =
        server.folder.path().join("blobs/sha256").join(&digest.hex()[..2]).join(digest.hex());
    std::fs::write(path, "damaged").unwrap();
    let later = SystemTime::now() + Duration::from_secs(48 * 60 * 60);
    assert!(server.registry.sweep(later, Duration::ZERO, false).await.is_err());
    assert_eq!(server.get(&format!("/v2/m/blobs/{layer}")).await.status, 200);
}
