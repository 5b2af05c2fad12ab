//! Blobs that come by several requests at once, and where those may lead.

use super::*;

/// Asked for by ranges of a kilobyte.
fn by_ranges(world: &World) -> Remote {
    let settings = Settings {
        plain_http: true,
        ranges: Ranges { large: 2000, size: 1000, at_once: 3 },
        ..Settings::default()
    };
    Remote::new(&world.address.to_string(), &settings).unwrap()
}

async fn read(mut reader: Reader) -> io::Result<Vec<u8>> {
    let read = tokio::task::spawn_blocking(move || {
        let mut all = Vec::new();
        io::Read::read_to_end(&mut reader, &mut all).map(|_| all)
    });
    read.await.unwrap()
}

#[tokio::test]
async fn a_large_blob_comes_by_ranges_and_in_its_order() {
    let world = World::new().await;
    let remote = by_ranges(&world);
    let content: Bytes = (0..30_500_u32).map(|n| (n / 7 % 251) as u8).collect::<Vec<_>>().into();
    let digest = push(&remote, content.clone()).await.unwrap();
    let reader = || remote.reader("a/m", &digest, content.len() as u64);
    let gets = || {
        let asked = world.asked().into_iter();
        asked.filter(|(method, path)| method == Method::GET && path.contains("/blobs/")).count()
    };
    gets();
    assert_eq!(read(reader()).await.unwrap(), content);
    assert_eq!(gets(), 31);
    // Those that are cut go on from where they were.
    world.fail([
        (Method::GET, "/blobs/", Fault::Cut(10)),
        (Method::GET, "/blobs/", Fault::Cut(500)),
    ]);
    assert_eq!(read(reader()).await.unwrap(), content);
    assert_eq!(gets(), 33);
    // Whoever stops to read stops the others too.
    drop(reader());
    // A small one comes by one request.
    let small = push(&remote, content.slice(..1999)).await.unwrap();
    gets();
    assert_eq!(read(remote.reader("a/m", &small, 1999)).await.unwrap(), content.slice(..1999));
    assert_eq!(gets(), 1);
    let missing = read(remote.reader("a/m", &Digest::of(b"none"), 5000)).await.unwrap_err();
    assert!(missing.to_string().contains("is not in"), "{missing}");
}

#[tokio::test]
async fn what_comes_by_ranges_takes_the_same_memory_again_and_again() {
    let world = World::new().await;
    let remote = by_ranges(&world);
    let content: Bytes = vec![9; 300_500].into();
    let digest = push(&remote, content.clone()).await.unwrap();
    let readers = (0..5).map(|_| read(remote.reader("a/m", &digest, content.len() as u64)));
    for read in futures::future::join_all(readers).await {
        assert_eq!(read.unwrap(), content);
    }
    let sizes = remote.inner.room.sizes();
    assert!(sizes.len() <= ranges::AHEAD, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size <= 1000), "{sizes:?}");
}

/// How many parts a blob is sent in, by its digest and while it is hashed.
async fn parts(world: &World, remote: &Remote, content: Vec<u8>) -> (usize, usize) {
    let count = || world.asked().iter().filter(|(method, _)| method == Method::PATCH).count();
    count();
    let other: Bytes = content.iter().map(|byte| byte ^ 1).collect::<Vec<_>>().into();
    push(remote, content.into()).await.unwrap();
    let known = count();
    let sent = remote.upload_unknown("a/m", Arc::new(other.clone()), quiet()).await.unwrap();
    assert_eq!(sent, Some(Digest::of(&other)));
    (known, count())
}

#[tokio::test]
async fn whoever_says_how_large_parts_must_be_gets_what_is_larger_in_parts() {
    let world = World::new().await;
    let remote = world.remote();
    assert_eq!(
        parts(&world, &remote, vec![1; 4096]).await,
        (0, 1),
        "a single part can be sent whole"
    );
    assert_eq!(parts(&world, &remote, vec![1; 10_000]).await, (3, 3));
    let least = || (Method::POST, "uploads", Fault::Also("oci-chunk-min-length", "8192"));
    world.fail([least(), least()]);
    assert_eq!(
        parts(&world, &remote, vec![2; 10_000]).await,
        (2, 2),
        "none but the last is shorter"
    );
    // Who says nothing may not take parts at all, so only what is really large is sent in such.
    let remote = world.remote();
    let nothing = || (Method::POST, "uploads", Fault::Also("oci-chunk-min-length", ""));
    world.fail([nothing(), nothing(), nothing(), nothing()]);
    assert_eq!(parts(&world, &remote, vec![3; 10_000]).await, (0, 1));
    assert_eq!(parts(&world, &remote, vec![3; 65_536]).await, (16, 16));
}

#[tokio::test]
async fn who_goes_on_knows_how_large_parts_must_be() {
    let world = World::new().await;
    let content = Bytes::from(vec![5; 40_000]);
    let kept = Arc::new(Kept::default());
    world.fail([
        (Method::POST, "uploads", Fault::Also("oci-chunk-min-length", "8192")),
        (Method::PATCH, "uploads", Fault::Answer(403, None)),
    ]);
    let source = Arc::new(content.clone());
    world.remote().upload_unknown("a/m", source.clone(), kept.clone()).await.unwrap_err();
    let begun = kept.0.lock().unwrap().take().unwrap();
    // What an older version has kept says nothing of it.
    let older = serde_json::json!({"location": begun.location, "offset": 0});
    assert_eq!(serde_json::from_value::<Upload>(older).unwrap().least_chunk, 0);
    let begun = serde_json::to_value(begun).and_then(serde_json::from_value).unwrap();
    world.asked();
    let digest = Digest::of(&content);
    world.remote().upload("a/m", &digest, source, Some(begun), quiet()).await.unwrap();
    let parts = world.asked().iter().filter(|(method, _)| method == Method::PATCH).count();
    assert_eq!(parts, 5, "of 8192 bytes and not of 4096");
}

#[tokio::test]
async fn as_many_as_like_may_read_by_ranges_at_once() {
    let world = World::new().await;
    let remote = by_ranges(&world);
    let content: Bytes = vec![3; 30_500].into();
    let digest = push(&remote, content.clone()).await.unwrap();
    let size = content.len() as u64;
    let readers = (0..2 * ranges::AHEAD).map(|_| read(remote.reader("a/m", &digest, size)));
    let all = futures::future::join_all(readers);
    let all = tokio::time::timeout(Duration::from_secs(60), all).await;
    for read in all.expect("they wait for each other") {
        assert_eq!(read.unwrap(), content);
    }
}

#[test]
fn nobody_is_followed_out_of_tls() {
    let told = |from: &str, to: &str, plain_http: bool| {
        let (from, to) = (Url::parse(from).unwrap(), Url::parse(to).unwrap());
        is_allowed(&from, &to, plain_http)
    };
    assert!(told("https://a/x", "https://b/y", false) && told("http://a/x", "http://b/y", false));
    assert!(told("http://a/x", "https://b/y", false));
    assert!(!told("https://a/x", "http://a/x", false));
    assert!(told("https://a/x", "http://b/y", true));
}

#[tokio::test]
async fn who_knows_no_ranges_sends_a_large_blob_once() {
    let content: Bytes = vec![7; 30_500].into();
    let (sent, asked) = (content.clone(), Arc::new(AtomicU64::new(0)));
    let count = asked.clone();
    let router = Router::new().fallback(move || {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready(sent.clone())
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, folder) = (listener.local_addr().unwrap(), tempfile::tempdir().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let remote = by_ranges(&World { address, script: Script::default(), folder });
    let reader = remote.reader("a/m", &Digest::of(&content), content.len() as u64);
    assert_eq!(read(reader).await.unwrap(), content);
    assert_eq!(asked.load(Ordering::Relaxed), 2, "once to see whether it does");
}

#[tokio::test]
async fn what_comes_by_ranges_is_verified_before_it_has_a_name() {
    use crate::{layer::Format, manifest::Compression, unpack};
    let world = World::new().await;
    let remote = by_ranges(&world);
    let header = crate::tar::Header {
        name: "model.bin",
        type_: crate::tar::Type::File,
        mode: 0o644,
        size: 20_480,
    };
    let bytes = [header.blocks(), vec![7; 20_480], crate::tar::END.to_vec()].concat();
    let digest = push(&remote, bytes.clone().into()).await.unwrap();
    let expected = |digest: Digest| unpack::Expected {
        digest,
        size: bytes.len() as u64,
        diff_id: None,
        format: Format::Tar,
        compression: Compression::None,
        path: "model.bin".to_owned(),
        mode: 0o644,
        under: String::new(),
    };
    let into = world.folder.path().join("out");
    let unpack = async |wanted: Digest| {
        let from = remote.reader("a/m", &digest, bytes.len() as u64);
        let (into, expected) = (into.clone(), expected(wanted));
        let work = move || {
            let target = unpack::Target::open(&into).unwrap();
            let limits = unpack::Limits { entries: 10, bytes: 1 << 20 };
            unpack::layer(from, &expected, &target, unpack::Existing::Refuse, limits)
        };
        tokio::task::spawn_blocking(work).await.unwrap()
    };
    let error = unpack(Digest::of(b"other")).await.unwrap_err();
    assert!(matches!(error, unpack::Error::Digest { .. }), "{error}");
    assert_eq!(fs::read_dir(&into).unwrap().count(), 0);
    unpack(digest.clone()).await.unwrap();
    assert_eq!(fs::read(into.join("model.bin")).unwrap(), vec![7; 20_480]);
}
