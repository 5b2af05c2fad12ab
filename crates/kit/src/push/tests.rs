//! Artifacts to a registry and back.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Mutex};

use tempfile::TempDir;
use tokio::net::TcpListener;

use super::*;
use crate::{
    manifest::Manifest,
    pull::{self, Pull},
    registry,
    remote::Settings,
    store::Store,
};

#[derive(Default)]
struct Counted {
    known: Mutex<u64>,
    bytes: Mutex<BTreeMap<Digest, u64>>,
}

impl Progress for Counted {
    fn known(&self, _: &Descriptor) {
        *self.known.lock().unwrap() += 1;
    }

    fn sent(&self, blob: &Digest, bytes: u64) {
        *self.bytes.lock().unwrap().entry(blob.clone()).or_default() += bytes;
    }

    fn done(&self, _: &Digest) {}
}

impl pull::Progress for Counted {
    fn known(&self, _: &Descriptor) {
        *self.known.lock().unwrap() += 1;
    }

    fn received(&self, blob: &Digest, bytes: u64) {
        *self.bytes.lock().unwrap().entry(blob.clone()).or_default() += bytes;
    }

    fn done(&self, _: &Digest) {}
}

impl Counted {
    fn total(&self) -> u64 {
        self.bytes.lock().unwrap().values().sum()
    }
}

async fn registry(folder: &TempDir) -> (String, PathBuf) {
    let root = folder.path().join("registry");
    let settings = registry::Settings { root: root.clone(), ..Default::default() };
    let router = registry::Registry::open(settings).unwrap().router();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, root)
}

fn descriptor(bytes: &Bytes) -> Descriptor {
    Descriptor {
        media_type: "a/b".to_owned(),
        digest: Digest::of(bytes),
        size: bytes.len() as u64,
        urls: Vec::new(),
        annotations: BTreeMap::new(),
    }
}

fn artifact(layers: &[&Bytes]) -> Artifact {
    let config = Bytes::from_static(b"{}");
    let manifest = Manifest {
        schema_version: 2,
        media_type: None,
        artifact_type: None,
        config: descriptor(&config),
        layers: layers.iter().map(|layer| descriptor(layer)).collect(),
        subject: None,
        annotations: BTreeMap::new(),
    };
    let blobs = layers.iter().copied().chain([&config]);
    Artifact {
        media_type: crate::manifest::IMAGE_MANIFEST.to_owned(),
        manifest: serde_json::to_vec(&manifest).unwrap().into(),
        blobs: blobs
            .map(|blob| (descriptor(blob), Arc::new(blob.clone()) as Arc<dyn Source>))
            .collect(),
    }
}

#[tokio::test]
async fn k9_what_is_there_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let (address, _) = registry(&folder).await;
    let settings = Settings { plain_http: true, ..Settings::default() };
    let remote = Remote::new(&address, &settings).unwrap();
    let memory = Memory::new(folder.path());
    let layers = [Bytes::from(vec![1; 100_000]), Bytes::from(vec![2; 100_000])];
    let artifact = artifact(&layers.iter().collect::<Vec<_>>());
    let push = async |name: &str, from: Option<&'static str>| {
        let counted = Arc::new(Counted::default());
        let progress: Arc<dyn Progress> = counted.clone();
        let push = Push { remote: &remote, memory: &memory, concurrency: 5, from, progress };
        let reference = Reference::parse(&format!("{address}/{name}")).unwrap();
        let digest = push.run(&reference, &[], &artifact).await.unwrap();
        let known = *counted.known.lock().unwrap();
        (digest, counted.total(), known)
    };
    let digest = Digest::of(&artifact.manifest);
    assert_eq!(push("a/m:v1", None).await, (digest.clone(), 200_002, 0));
    assert_eq!(push("a/m:v1", None).await, (digest.clone(), 0, 3));
    // What was begun is over once the blob is there.
    let location = format!("http://{address}/u").parse().unwrap();
    let upload = Upload { location, offset: 7, least_chunk: 0 };
    memory.slot(&remote, "b/m", &Digest::of(&layers[0])).reached(&upload).unwrap();
    assert_eq!(push("b/m:v1", Some("a/m")).await, (digest, 0, 3));
    let left = fs::read_dir(folder.path().join("windlass/uploads")).unwrap().count();
    assert_eq!(left, 0);
}

/// Of which nobody wants to see how far it is.
fn quiet<'a>(remote: &'a Remote, memory: &'a Memory) -> Push<'a> {
    Push { remote, memory, concurrency: 5, from: None, progress: Arc::new(Counted::default()) }
}

#[tokio::test]
async fn k10_k11_what_comes_is_verified_and_what_was_cut_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (address, root) = registry(&folder).await;
    let settings = Settings { plain_http: true, ..Settings::default() };
    let remote = Remote::new(&address, &settings).unwrap();
    let layer = Bytes::from((0..=255u8).cycle().take(100_000).collect::<Vec<_>>());
    let artifact = artifact(&[&layer]);
    let reference = Reference::parse(&format!("{address}/m:v1")).unwrap();
    let memory = Memory::new(folder.path());
    let push = quiet(&remote, &memory);
    let digest = push.run(&reference, &[Tag::parse("v2").unwrap()], &artifact).await.unwrap();
    let store = Store::open(folder.path().join("home")).unwrap();
    let counted = Arc::new(Counted::default());
    let progress: Arc<dyn pull::Progress> = counted.clone();
    let pull = Pull { remote: &remote, store: &store, concurrency: 5, progress };
    let blob = Digest::of(&layer);

    // One flipped byte on the server.
    let stored = root.join("blobs/sha256").join(&blob.hex()[..2]).join(blob.hex());
    let mut bytes = layer.to_vec();
    bytes[5] ^= 1;
    fs::write(&stored, &bytes).unwrap();
    let error = pull.run(&reference).await.unwrap_err();
    assert!(matches!(error, pull::Error::Digest { .. }), "{error}");
    assert!(!store.has(&blob) && store.resolve(&reference).is_err());

    // A part of it is there from before.
    fs::write(&stored, &layer).unwrap();
    fs::write(store.partial(&blob).unwrap(), &layer[..60_000]).unwrap();
    let (descriptor, _) = pull.run(&reference).await.unwrap();
    assert_eq!(descriptor.digest, digest);
    assert_eq!(store.resolve(&reference).unwrap().digest, digest);
    assert_eq!(fs::read(store.blob(&blob)).unwrap(), layer);
    // Two at once, of which one waits for the other.
    let other = Store::open(folder.path().join("other")).unwrap();
    let both = Pull { store: &other, progress: Arc::new(Counted::default()), ..pull };
    let (one, two) = tokio::join!(both.run(&reference), both.run(&reference));
    assert_eq!(one.unwrap().0, two.unwrap().0);
    assert!(fs::read_dir(folder.path().join("other/storage/ingest")).unwrap().next().is_none());
    let pull = Pull { store: &store, progress: counted.clone(), ..both };
    let before = counted.total();
    pull.run(&reference).await.unwrap();
    assert_eq!(counted.total(), before, "nothing comes twice");
    assert_eq!(store.check().unwrap().damaged, []);
}

#[tokio::test]
async fn a_part_of_an_earlier_run_that_is_damaged_costs_no_more_than_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (address, _) = registry(&folder).await;
    let settings = Settings { plain_http: true, ..Settings::default() };
    let remote = Remote::new(&address, &settings).unwrap();
    let layer = Bytes::from(vec![7; 100_000]);
    let reference = Reference::parse(&format!("{address}/m:v1")).unwrap();
    let memory = Memory::new(folder.path());
    quiet(&remote, &memory).run(&reference, &[], &artifact(&[&layer])).await.unwrap();
    let store = Store::open(folder.path().join("home")).unwrap();
    let blob = Digest::of(&layer);
    fs::write(store.partial(&blob).unwrap(), [8; 60_000]).unwrap();
    let progress: Arc<dyn pull::Progress> = Arc::new(Counted::default());
    Pull { remote: &remote, store: &store, concurrency: 5, progress }
        .run(&reference)
        .await
        .unwrap();
    assert_eq!(fs::read(store.blob(&blob)).unwrap(), layer);
}
