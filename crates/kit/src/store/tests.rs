use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::*;
use crate::{
    Kitfile,
    context::{Context, Links},
    layer::{Format, split},
    manifest::{IMAGE_MANIFEST, Profile},
    pack::{self, Form},
};

fn store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("home")).unwrap();
    (folder, store)
}

/// An artifact with one file of this content.
fn add(store: &Store, content: &str, names: &[&str]) -> Descriptor {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.gguf"), content).unwrap();
    let kitfile = Kitfile::from_yaml("model: {path: m.gguf}").unwrap();
    let context = Context::read(folder.path(), Links::Skip).unwrap();
    let layers = split(&context, &kitfile.entries().unwrap(), Format::Raw).unwrap();
    let stored = pack::stored(&layers[0], store.put(content.as_bytes()).unwrap());
    let profile = Profile::Default { created: None };
    let artifact = pack::assemble(&kitfile, &[stored], Form::ModelPack, &profile).unwrap();
    store.put(&artifact.config).unwrap();
    let digest = store.put(&artifact.manifest).unwrap();
    let size = artifact.manifest.len() as u64;
    let media_type = IMAGE_MANIFEST.to_owned();
    let manifest =
        Descriptor { media_type, digest, size, urls: Vec::new(), annotations: BTreeMap::new() };
    for name in names {
        let (reference, mut tags) = Reference::parse_with_tags(name).unwrap();
        if let Version::Tag(tag) = reference.version() {
            tags.push(tag.clone());
        }
        store.add(&reference, &manifest, &tags).unwrap();
    }
    manifest
}

fn reference(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

#[test]
fn an_artifact_is_found_by_its_tags_and_its_digest() {
    let (_folder, store) = store();
    let manifest = add(&store, "one", &["r.io/m:a,b"]);
    for name in
        ["r.io/m:a".to_owned(), "r.io/m:b".to_owned(), format!("r.io/m@{}", manifest.digest)]
    {
        assert_eq!(store.resolve(&reference(&name)).unwrap(), manifest, "{name}");
    }
    for name in ["r.io/m:c", "m:a", "other.io/m:a"] {
        assert!(matches!(store.resolve(&reference(name)), Err(Error::Missing(_))), "{name}");
    }
    // The name under which kit looks for it.
    assert!(store.storage().join("ci5pby9t-tags.json").exists());
}

#[test]
fn a_tag_moves_and_the_last_one_takes_the_artifact_with_it() {
    let (_folder, store) = store();
    let first = add(&store, "one", &["r.io/m:a,b", "other:x"]);
    let second = add(&store, "two", &["r.io/m:a"]);
    assert_eq!(store.resolve(&reference("r.io/m:a")).unwrap(), second);
    assert_eq!(store.remove(&reference("r.io/m:b")).unwrap(), first);
    assert!(store.resolve(&reference(&format!("r.io/m@{}", first.digest))).is_err());
    // The other repository still has it.
    let later = SystemTime::now() + Duration::from_secs(7200);
    assert_eq!(store.sweep(later).unwrap(), Freed::default());
    store.remove(&reference("other:x")).unwrap();
    assert_eq!(store.sweep(SystemTime::now()).unwrap(), Freed::default(), "too young");
    assert_eq!(store.sweep(later).unwrap().blobs, 3);
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn a_damaged_blob_is_found() {
    let (_folder, store) = store();
    add(&store, "one", &["m:a"]);
    assert_eq!(store.check().unwrap(), Checked { blobs: 3, ..Checked::default() });
    let layer = Digest::of(b"one");
    fs::write(store.blob(&layer), "two").unwrap();
    assert_eq!(store.check().unwrap().damaged, std::slice::from_ref(&layer));
    fs::remove_file(store.blob(&layer)).unwrap();
    assert_eq!(store.check().unwrap().missing, [layer]);
}

#[test]
fn a_linked_blob_is_the_very_file() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("home")).unwrap();
    let (file, digest) = (folder.path().join("weights"), Digest::of(b"weights"));
    fs::write(&file, "weights").unwrap();
    assert!(store.link(&file, &digest).unwrap());
    assert!(!store.link(&file, &digest).unwrap(), "it is there already");
    let ino = |path: &Path| fs::metadata(path).unwrap().ino();
    assert_eq!(ino(&file), ino(&store.blob(&digest)));
    assert!(store.link(&folder.path().join("missing"), &Digest::of(b"other")).is_err());
}

#[test]
fn what_somebody_may_rely_on_stays() {
    let (_folder, store) = store();
    let blob = store.put(b"layer").unwrap();
    let later = SystemTime::now() + Duration::from_secs(7200);
    let using = store.using().unwrap();
    let also = store.using().unwrap();
    assert!(matches!(store.sweep(later), Err(Error::Busy)));
    drop((using, also));
    assert_eq!(store.sweep(later).unwrap().blobs, 1);
    assert!(!store.has(&blob));
}
