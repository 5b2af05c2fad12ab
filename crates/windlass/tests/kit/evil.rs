//! Artifacts that somebody has made to do harm, as a registry serves them.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use windlass_kit::{
    Digest,
    tar::{END, Header, Type},
};

use crate::{
    server::Server,
    world::{MODEL_KIT, World},
};

/// Of the model's layer.
const MODEL: &str = "sha256:fad64cc0c57283d16fb7efcda3cff63ea824e90137d2c8d8dbc90b97228950cf";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

fn place(root: &Path, hex: &str) -> PathBuf {
    root.join("blobs/sha256").join(&hex[..2]).join(hex)
}

/// Into the folder of a registry.
fn blob(root: &Path, bytes: &[u8]) -> Digest {
    let digest = Digest::of(bytes);
    let place = place(root, digest.hex());
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, bytes).unwrap();
    digest
}

fn tag(root: &Path, tag: &str, manifest: &str) {
    let digest = blob(root, manifest.as_bytes());
    let repository = root.join("repos/org/evil");
    for name in ["_manifests", "_tags"] {
        fs::create_dir_all(repository.join(name)).unwrap();
    }
    let kept = json!({"mediaType": MANIFEST, "size": manifest.len()}).to_string();
    fs::write(repository.join("_manifests").join(digest.hex()), kept).unwrap();
    fs::write(repository.join("_tags").join(tag), digest.as_str()).unwrap();
}

/// An artifact with a single layer, without a Kitfile.
fn plant(root: &Path, name: &str, layer: &[u8], compression: &str) {
    let layer_digest = blob(root, layer);
    let config = json!({
        "descriptor": {"name": "evil"},
        "modelfs": {"type": "layers", "diffIds": [layer_digest.as_str()]},
        "config": {},
    });
    let config = config.to_string();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": "application/vnd.cncf.model.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.cncf.model.config.v1+json",
            "digest": blob(root, config.as_bytes()).as_str(),
            "size": config.len(),
        },
        "layers": [{
            "mediaType": format!("application/vnd.cncf.model.weight.v1.tar{compression}"),
            "digest": layer_digest.as_str(),
            "size": layer.len(),
            "annotations": {"org.cncf.model.filepath": "model"},
        }],
    });
    tag(root, name, &manifest.to_string());
}

fn file(name: &str) -> Vec<u8> {
    let mut bytes = Header { name, type_: Type::File, mode: 0o644, size: 1 }.blocks();
    bytes.push(b'x');
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// What our own writer never makes.
fn special(name: &str, type_: u8, link: &str) -> Vec<u8> {
    let mut block = Header { name, type_: Type::File, mode: 0o644, size: 0 }.blocks();
    block[156] = type_;
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block.iter().copied().map(u32::from).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// Straight from the registry and by way of the storage: the same refusal, and nothing is left.
fn assert_refused(world: &World, server: &Server, tag: &str, text: &str) {
    let name = format!("{}/org/evil:{tag}", server.address);
    let before = world.files("around");
    let assert_nothing = |how: &str| {
        let left: Vec<_> = world.files("around/target").into_keys().collect();
        assert!(left.is_empty(), "{tag} {how}: {left:?}");
        assert_eq!(world.files("around"), before, "{tag} {how}");
        assert!(!Path::new("/abs/evil").exists());
    };
    let unpack = ["unpack", "--plain-http", "--max-size=4MiB", "-d", "around/target", &name];
    world.kit(&unpack).refused(7, text);
    assert_nothing("from the registry");
    world.kit(&["pull", "--plain-http", &name]).well();
    world.kit(&unpack).refused(7, text);
    assert_nothing("from the storage");
}

fn world() -> World {
    let world = World::new();
    world.write("around/mine", b"untouched");
    fs::create_dir(world.path("around/target")).unwrap();
    world
}

#[test]
fn k12_k13_what_leads_out_or_is_no_file_ends_it_before_anything_is_seen() {
    let world = world();
    let root = world.path("registry");
    let cases = [
        ("above", file("../evil"), "illegal file path"),
        ("absolute", file("/abs/evil"), "illegal file path"),
        ("around", file("a/../../evil"), "illegal file path"),
        ("symlink", special("lnk", b'2', "/etc"), "unrecognized type in archive"),
        ("hardlink", special("lnk", b'1', "good"), "unrecognized type in archive"),
        ("character", special("dev", b'3', ""), "unrecognized type in archive"),
        ("block", special("dev", b'4', ""), "unrecognized type in archive"),
        ("fifo", special("fifo", b'6', ""), "unrecognized type in archive"),
    ];
    for (tag, entry, _) in &cases {
        // What is good comes first, and one more after it.
        let layer = [&file("good")[..], entry, &file("later"), &END].concat();
        plant(&root, tag, &layer, "");
    }
    let server = Server::start(&root, &[], "");
    for (tag, _, text) in &cases {
        assert_refused(&world, &server, tag, text);
    }
}

#[test]
fn k11_a_config_of_other_layers_ends_it_before_any_of_them_comes() {
    let world = world();
    let root = world.path("registry");
    let server = Server::start(&root, &[], "");
    let name = format!("{}/org/evil:good", server.address);
    world.kit(&["pack", "model", "--push", "--plain-http", "-t", &name]).well();
    let read = |digest: &str| {
        fs::read_to_string(place(&root, digest.trim_start_matches("sha256:"))).unwrap()
    };
    let manifest = read(MODEL_KIT);
    let config_digest: Value = serde_json::from_str(&manifest).unwrap();
    let config_digest = config_digest["config"]["digest"].as_str().unwrap();
    let other = Digest::of(b"another layer");
    let config = read(config_digest).replace(MODEL, other.as_str());
    let changed = blob(&root, config.as_bytes());
    tag(&root, "bad", &manifest.replace(config_digest, changed.as_str()));
    // What is asked for in vain would be told.
    fs::remove_file(place(&root, MODEL.trim_start_matches("sha256:"))).unwrap();
    let bad = format!("{}/org/evil:bad", server.address);
    let unpack = ["unpack", "--plain-http", "-d", "around/target", &bad];
    world.kit(&unpack).refused(5, "igest in config and manifest do not match");
    assert!(world.files("around/target").is_empty());
}

/// 100 GiB of zeros in 3 MiB: one block for what stands before them, and then blocks that say "the same
/// byte, 128 KiB of it" (RFC 8878).
fn zstd_bomb() -> Vec<u8> {
    const SIZE: u64 = 100 << 30;
    const BLOCK: u64 = 128 << 10;
    let head = Header { name: "zeros", type_: Type::File, mode: 0o644, size: SIZE }.blocks();
    let block = |type_: usize, size: usize| ((size << 3) | (type_ << 1)).to_le_bytes();
    // The magic number, no size and no sum, and a window of 8 MiB.
    let mut bytes = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 13 << 3];
    bytes.extend(&block(0, head.len())[..3]);
    bytes.extend(&head);
    for _ in 0..SIZE / BLOCK {
        bytes.extend(&block(1, BLOCK as usize)[..3]);
        bytes.push(0);
    }
    bytes.extend([1, 0, 0]);
    bytes
}

/// As much as is needed to get over the limit, by the program that everybody has.
fn gzip_bomb(world: &World) -> Vec<u8> {
    const SIZE: u64 = 100 << 30;
    let head = Header { name: "zeros", type_: Type::File, mode: 0o644, size: SIZE }.blocks();
    world.write("bomb.head", &head);
    let script = "cat bomb.head /dev/zero | head -c 33554432 | gzip -1";
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(world.path("")).stdin(Stdio::null());
    let into = File::create(world.path("bomb.gz")).unwrap();
    assert!(command.stdout(into).stderr(Stdio::null()).status().unwrap().success());
    fs::read(world.path("bomb.gz")).unwrap()
}

#[test]
fn k17_a_bomb_is_stopped_at_the_limit() {
    let world = world();
    let root = world.path("registry");
    let (zstd, gzip) = (zstd_bomb(), gzip_bomb(&world));
    assert!(zstd.len() < 4 << 20 && gzip.len() < 1 << 20, "{} {}", zstd.len(), gzip.len());
    plant(&root, "zstd", &zstd, "+zstd");
    plant(&root, "gzip", &gzip, "+gzip");
    let server = Server::start(&root, &[], "");
    for tag in ["zstd", "gzip"] {
        assert_refused(&world, &server, tag, "4194304");
        // Where nobody has set a limit there is one too.
        let name = format!("{}/org/evil:{tag}", server.address);
        let unpack = ["unpack", "--plain-http", "--config=else", "-d", "around/target", &name];
        world.kit(&unpack).refused(7, "he layer becomes larger than 1073741824 bytes");
        assert!(world.files("around/target").is_empty());
    }
}
