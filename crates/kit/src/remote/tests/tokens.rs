//! Who hands out tokens, and who may be asked for one.

use super::*;
use crate::remote::{
    auth::{Auth, Unanswered},
    challenge::Challenge,
};

/// A registry that wants a token, and the answers of whoever has them, one after the other.
async fn guarded(answers: &[(u16, &'static str)]) -> (Remote, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let answers: Arc<Vec<_>> = Arc::new(answers.to_vec());
    let count = asked.clone();
    let token = axum::routing::get(move || {
        let number = usize::try_from(count.fetch_add(1, Ordering::Relaxed)).unwrap();
        let (status, text) = answers[number.min(answers.len() - 1)];
        async move {
            let response = Response::builder().status(status).header("retry-after", "0");
            response.body(Body::from(text)).unwrap()
        }
    });
    let registry = |request: Request| async move {
        let is_known = request.headers().get("authorization").is_some_and(|v| v == "Bearer t");
        if is_known { Response::new(Body::empty()) } else { challenge(&request) }
    };
    let router = Router::new().route("/token", token).fallback(registry);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = Settings { plain_http: true, ..Settings::default() };
    (Remote::new(&address, &settings).unwrap(), asked)
}

#[tokio::test]
async fn who_hands_out_tokens_is_asked_again_where_that_may_help() {
    let digest = Digest::of(b"x");
    let (remote, asked) = guarded(&[(503, ""), (429, ""), (200, r#"{"token":"t"}"#)]).await;
    assert!(remote.has_blob("m", &digest).await.unwrap());
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    let (remote, asked) = guarded(&[(429, "")]).await;
    let error = remote.has_blob("m", &digest).await.unwrap_err();
    assert!(matches!(error, Error::Failed { attempts: 6, .. }), "{error}");
    assert!(error.to_string().contains("429"), "{error}");
    assert_eq!(asked.load(Ordering::Relaxed), 6);
    let (remote, asked) = guarded(&[(401, "")]).await;
    let error = remote.has_blob("m", &digest).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert_eq!(asked.load(Ordering::Relaxed), 1, "a refusal is final");
}

#[tokio::test]
async fn nobody_is_asked_for_a_token_without_tls() {
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let token = move || async move {
        count.fetch_add(1, Ordering::Relaxed);
        r#"{"token":"t"}"#
    };
    let router = Router::new().fallback(axum::routing::get(token));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let realm = format!("http://{address}/token?secret=1");
    let challenge = Challenge::Bearer { realm, service: None, scope: None };
    let ask = async |plain_http| {
        let settings = Settings { plain_http, ..Settings::default() };
        let http = client(&settings, Redirects::Tell, Some(SILENCE)).unwrap();
        Auth::new("r.io", &settings).answer(&http, &challenge, "").await
    };
    let Err(Unanswered { source: Some(trouble), .. }) = ask(false).await else {
        panic!("it was asked")
    };
    assert!(trouble.to_string().starts_with(&format!("{address} is to be asked")), "{trouble}");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert!(ask(true).await.unwrap());
}

#[test]
fn only_what_is_known_by_its_digest_may_come_without_tls() {
    let url = |text: &str| Url::parse(text).unwrap();
    let manifest = url("https://r.io/v2/a/m/manifests/v1");
    let blob = url("https://r.io/v2/a/m/blobs/sha256:1");
    let (plain, tls) = (url("http://cdn.io/x"), url("https://cdn.io/x"));
    for (plain_http, from, to, want) in [
        (false, &manifest, &tls, true),
        (false, &manifest, &plain, false),
        (true, &manifest, &plain, true),
        (false, &blob, &plain, true),
        (false, &plain, &plain, true),
    ] {
        let settings = Settings { plain_http, ..Settings::default() };
        let remote = Remote::new("r.io", &settings).unwrap();
        assert_eq!(remote.may_follow(from, to), want, "{plain_http} {from} {to}");
    }
}

#[tokio::test]
async fn a_registry_that_asks_for_patience_with_a_blob_gets_it() {
    let world = World::new().await;
    let remote = world.remote();
    // More than anybody waits, so it is given up at once.
    let wait = |seconds: &str| Fault::Answer(503, Some(("retry-after", seconds.to_owned())));
    world.fail([(Method::PUT, "uploads", wait("86400"))]);
    let error = push(&remote, Bytes::from_static(b"weights")).await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    let puts = world.asked().into_iter().filter(|(method, _)| method == Method::PUT).count();
    assert_eq!(puts, 1);
    let large = Bytes::from(vec![7; 80 << 10]);
    world.fail([(Method::PATCH, "uploads", wait("86400"))]);
    let error = push(&remote, large.clone()).await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    // None at all is waited for none.
    world.fail((0..5).map(|_| (Method::PUT, "uploads", wait("0"))));
    let started = std::time::Instant::now();
    push(&remote, Bytes::from_static(b"weights")).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_mount_asks_for_both_repositories() {
    let (remote, asked) = {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let answer = move |request: Request| {
            let seen = seen.clone();
            async move {
                let is_known = request.headers().get("authorization").is_some();
                let mut response = Response::new(Body::from(r#"{"token":"t"}"#));
                if request.uri().path() == "/token" {
                    seen.lock().unwrap().push(request.uri().query().unwrap().to_owned());
                } else if is_known {
                    *response.status_mut() = StatusCode::CREATED;
                } else {
                    *response.status_mut() = StatusCode::UNAUTHORIZED;
                    let host = request.headers()["host"].to_str().unwrap();
                    let challenge = format!(r#"Bearer realm="http://{host}/token""#);
                    response.headers_mut().insert("www-authenticate", challenge.parse().unwrap());
                }
                response
            }
        };
        let router = Router::new().fallback(answer);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let settings = Settings { plain_http: true, ..Settings::default() };
        (Remote::new(&address, &settings).unwrap(), asked)
    };
    assert!(remote.mount("b/m", &Digest::of(b"x"), "a/m").await.unwrap());
    let asked = asked.lock().unwrap().clone();
    let want = "scope=repository%3Ab%2Fm%3Apull%2Cpush&scope=repository%3Aa%2Fm%3Apull";
    assert!(asked.len() == 1 && asked[0].starts_with(want), "{asked:?}");
}

#[tokio::test]
async fn a_registry_says_how_small_a_part_may_be() {
    let world = World::new().await;
    let remote = world.remote();
    world.fail([(Method::POST, "uploads", Fault::Also("oci-chunk-min-length", "40960"))]);
    let content = Bytes::from((0..=255u8).cycle().take(80 << 10).collect::<Vec<_>>());
    let digest = push(&remote, content.clone()).await.unwrap();
    let parts = world.asked().into_iter().filter(|(method, _)| method == Method::PATCH).count();
    assert_eq!(parts, 2);
    assert_eq!(pull(&remote, &digest).await, content);
}

#[tokio::test]
async fn a_manifest_is_found_where_nobody_answers_to_head() {
    let world = World::new().await;
    let remote = world.remote();
    let name = world.reference("a/m:v1");
    let refusal = || (Method::HEAD, "manifests", Fault::Answer(405, None));
    world.fail([refusal()]);
    assert_eq!(remote.resolve(&name).await.unwrap(), None);
    let blob = push(&remote, Bytes::from_static(b"{}")).await.unwrap();
    let config = format!(r#"{{"mediaType":"a/b","digest":"{blob}","size":2}}"#);
    let manifest = format!(r#"{{"schemaVersion":2,"config":{config},"layers":[]}}"#);
    let kind = crate::manifest::IMAGE_MANIFEST;
    let digest = remote.put_manifest(&name, kind, manifest.into()).await.unwrap();
    world.fail([refusal()]);
    assert_eq!(remote.resolve(&name).await.unwrap(), Some(digest));
}

#[tokio::test]
async fn a_part_from_another_place_is_no_part_of_it() {
    let answer = || async {
        let response = Response::builder().status(206).header("content-range", "bytes 5-9/10");
        response.body(Body::from("56789")).unwrap()
    };
    let router = Router::new().fallback(answer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = Settings { plain_http: true, ..Settings::default() };
    let remote = Remote::new(&address, &settings).unwrap();
    let digest = Digest::of(b"0123456789");
    assert_eq!(remote.blob("a/m", &digest, 5, None).await.unwrap().from, 5);
    let error = remote.blob("a/m", &digest, 4, None).await.err().unwrap();
    assert!(error.to_string().contains("from byte 5 on instead of 4"), "{error}");
}
