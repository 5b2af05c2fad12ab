//! What the libraries of the Go tools read of ours, and what we read of what they make.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};
use windlass_kit::Digest;

use crate::{
    debian::{Debian, Door},
    go::Go,
    server::Server,
    world::{FILES, MODEL_KIT, World, said},
};

/// Ours and, where it is installed, Debian's.
struct Registries {
    ours: Server,
    theirs: Option<Debian>,
}

impl Registries {
    fn start(world: &World) -> Self {
        Self {
            ours: Server::start(&world.path("registry"), &[], ""),
            theirs: Debian::start(world.path("debian"), Door::default()),
        }
    }

    fn addresses(&self) -> [&str; 2] {
        let ours = self.ours.address.as_str();
        [ours, self.theirs.as_ref().map_or(ours, |site| &site.address)]
    }

    /// Each of the models in one of them.
    fn with_models(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.addresses().into_iter().zip(["model", "odd"])
    }
}

/// Names, modes and content, which are in more than one layer for nobody.
type Files = BTreeMap<String, (u32, String)>;

fn of_folder(world: &World, folder: &str) -> Files {
    let files = world.files(folder).into_iter();
    let about = |(name, content): (String, Vec<u8>)| {
        let place = world.path(folder).join(&name);
        let mode = fs::metadata(place).unwrap().permissions().mode() & 0o777;
        (name, (mode, Digest::of(&content).as_str().to_owned()))
    };
    files.map(about).collect()
}

fn of_layers(told: &Value) -> Files {
    let layers = told["layers"].as_array().unwrap().iter();
    let files: Vec<&Value> =
        layers.flat_map(|layer| layer["files"].as_array().unwrap().iter()).collect();
    let about = |file: &&Value| {
        let text = |name: &str| file[name].as_str().unwrap().to_owned();
        let mode = u32::try_from(file["mode"].as_u64().unwrap()).unwrap();
        (text("name"), (mode & 0o777, text("digest")))
    };
    let found: Files = files.iter().map(about).collect();
    assert_eq!(found.len(), files.len(), "each file is in one layer: {told}");
    found
}

/// Names that fit no plain header, and modes.
fn odd(world: &World) {
    for name in [
        &"n".repeat(120),
        "é.txt",
        &format!("{}/{}", "a".repeat(60), "b".repeat(60)),
        "x..y",
        "a/z",
        "a-b",
        "run.sh",
    ] {
        world.write(&format!("odd/{name}"), name.as_bytes());
    }
    world.write("odd/empty", b"");
    world
        .write("odd/Kitfile", b"manifestVersion: 1.0.0\npackage: {name: odd}\ncode: [{path: .}]\n");
    let script = world.path("odd/run.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn k28_what_we_make_is_read_by_the_libraries_of_others() {
    let world = World::new();
    let Some(go) = Go::find() else { return };
    odd(&world);
    let registries = Registries::start(&world);
    let kit = ("kitops.modelkit.manifest", "kitops.modelkit.config");
    let pack = ("cncf.model.manifest", "cncf.model.config");
    let mut number = 0;
    for (flags, (own, config), suffix) in [
        (&["--compression=none"][..], kit, "tar"),
        (&["--compression=gzip"], kit, "tar+gzip"),
        (&["--compression=gzip-fastest"], kit, "tar+gzip"),
        (&["--compression=zstd"], kit, "tar+zstd"),
        (&["--layer-format=raw"], kit, "raw"),
        (&["--use-model-pack", "--compression=none"], pack, "tar"),
        (&["--use-model-pack", "--compression=gzip"], pack, "tar+gzip"),
        (&["--use-model-pack", "--compression=zstd"], pack, "tar+zstd"),
        (&["--use-model-pack", "--layer-format=raw"], pack, "raw"),
    ] {
        for (address, folder) in registries.with_models() {
            number += 1;
            let name = format!("{address}/org/{folder}:{number}");
            let command = ["pack", folder, "--push", "--plain-http", "-t", &name];
            let mut command = world.command(&[&command[..], flags].concat());
            // Half of them tell when they were made.
            command.envs((number % 4 > 1).then_some(("SOURCE_DATE_EPOCH", "1700000000")));
            let pushed = said(command);
            let digest = pushed.last_digest();
            pushed.well();
            let told = go.read(&name);
            let what = format!("{folder} {flags:?} {told}");
            assert_eq!(told["digest"], digest, "{what}");
            assert_eq!(told["mediaType"], "application/vnd.oci.image.manifest.v1+json", "{what}");
            assert_eq!(told["artifactType"], format!("application/vnd.{own}.v1+json"), "{what}");
            assert_eq!(told["config"], format!("application/vnd.{config}.v1+json"), "{what}");
            assert_eq!(told["annotations"]["ml.kitops.modelkit.cli-version"], "windlass", "{what}");
            let is_dated = told["annotations"]["org.opencontainers.image.created"].is_string();
            assert_eq!(is_dated, number % 4 > 1, "{what}");
            assert_eq!(of_layers(&told), of_folder(&world, folder), "{what}");
            for layer in told["layers"].as_array().unwrap() {
                let is_folder =
                    layer["files"].as_array().unwrap().iter().all(|file| {
                        file["name"] != layer["annotations"]["org.cncf.model.filepath"]
                    });
                // What is no single file is an archive whatever was asked for.
                let suffix = if is_folder && suffix == "raw" { "tar" } else { suffix };
                let media_type = layer["mediaType"].as_str().unwrap();
                assert!(media_type.ends_with(&format!(".v1.{suffix}")), "{media_type} {what}");
            }
        }
    }
}

/// By somebody who has never seen it, straight from the registry and by way of a storage.
fn assert_ours(world: &World, name: &str, made: &Value, folder: &str, into: &str) -> String {
    let digest = made["digest"].as_str().unwrap();
    let home = format!("--config=home-{into}");
    let kit = |arguments: &[&str]| world.kit(&[arguments, &[&home]].concat());
    let direct = format!("{into}-direct");
    let unpacked = kit(&["unpack", name, "--plain-http", "-o", "-d", &direct]);
    let warned = unpacked.err.clone();
    unpacked.well();
    assert_eq!(of_folder(world, &direct), of_folder(world, folder), "{name}");
    let shown = kit(&["inspect", "-r", "--plain-http", name]).well();
    let pulled = kit(&["pull", name, "--plain-http"]).well();
    assert!(pulled.ends_with(&format!("Pulled {digest}\n")), "{pulled}");
    let listed = kit(&["list", "--format", "{{.Repo}} {{.Digest}} {{.Tags}}"]).well();
    let (repository, tag) = name.rsplit_once(':').unwrap();
    assert!(listed.contains(&format!("{repository} {digest} [{tag}]")), "{listed}");
    let remote = kit(&["list", "--plain-http", repository]).well();
    assert!(remote.contains(digest), "{remote}");
    assert_eq!(kit(&["inspect", name]).well(), shown);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["digest"], digest);
    assert_eq!(shown["manifest"]["layers"], made["layers"]);
    let kept = format!("{into}-kept");
    kit(&["unpack", name, "-d", &kept]).well();
    assert_eq!(of_folder(world, &kept), of_folder(world, folder), "{name}");
    kit(&["store", "fsck"]).well();
    warned
}

fn digests(made: &Value) -> Vec<String> {
    let layers = made["layers"].as_array().unwrap().iter();
    layers.map(|layer| layer["digest"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn k28_what_others_make_by_a_kitfile_is_ours_and_packed_to_the_same_layers() {
    let world = World::new();
    let Some(go) = Go::find() else { return };
    odd(&world);
    let registries = Registries::start(&world);
    let mut number = 0;
    for (form, compression) in [
        ("kit-1.7", "none"),
        ("kit-1.7", "gzip"),
        ("kit-1.11", "none"),
        ("kit-1.11", "gzip"),
        ("kit-1.11", "gzip-fastest"),
        ("kit-1.15", "none"),
        ("kit-1.15", "zstd"),
        ("kit-1.11-pack", "none"),
        ("kit-1.11-pack", "gzip"),
    ] {
        for (address, folder) in registries.with_models() {
            number += 1;
            let name = format!("{address}/org/{folder}:{number}");
            let made = go.write(form, compression, &name, &world.path(folder));
            let into = format!("out-{number}");
            let warned = assert_ours(&world, &name, &made, folder, &into);
            let is_wrong = form == "kit-1.11-pack";
            assert_eq!(warned.contains("diffIds"), is_wrong, "{form} {warned}");
            // The Kitfile has come with the files, and without compression the bytes are the same.
            let again = format!("again:{number}");
            let pack = ["pack", &format!("{into}-kept"), "-t", &again, "--compat=1.11"];
            let packed = match is_wrong {
                true => world.kit(&[&pack[..], &["--use-model-pack"]].concat()),
                false => world.kit(&pack),
            };
            let digest = packed.last_digest();
            packed.well();
            let shown: Value =
                serde_json::from_str(&world.kit(&["inspect", &again]).well()).unwrap();
            if compression == "none" {
                assert_eq!(digests(&shown["manifest"]), digests(&made), "{form} {folder}");
            }
            // What kit 1.11 has made is what we make in its place, to the last byte.
            let is_same = form == "kit-1.11" && compression == "none";
            assert_eq!(made["digest"] == digest, is_same, "{form} {compression} {folder}");
            if (form, compression, folder) == ("kit-1.7", "none", "model") {
                // As the real one was seen to make it.
                let seen = "676d76f5e6290fbe69210a8a4758fe4f59564db64fbe4d8a3d2673b458391768";
                assert_eq!(made["digest"], format!("sha256:{seen}"));
            }
        }
    }
}

#[test]
fn k29_what_others_make_without_a_kitfile_is_ours_too() {
    let world = World::new();
    let Some(go) = Go::find() else { return };
    let registries = Registries::start(&world);
    for (number, form) in ["modctl", "modctl-cnai"].into_iter().enumerate() {
        for (at, address) in registries.addresses().into_iter().enumerate() {
            let name = format!("{address}/org/tiny-{at}:{form}");
            let made = go.write(form, "none", &name, &world.path("model"));
            let into = format!("out-{number}-{at}");
            let warned = assert_ours(&world, &name, &made, "model", &into);
            assert_eq!(warned, "", "{form}");
            let direct = format!("{into}-direct");
            assert!(!world.path(&format!("{direct}/Kitfile")).exists(), "{form}");
            let home = format!("--config=home-{into}");
            world.kit(&["info", &name, &home]).refused(3, "has no Kitfile");
            world.kit(&["pack", &direct, "-t", "again"]).refused(1, "here is no Kitfile");
            // By a Kitfile, or by one that is guessed, it becomes an artifact of ours.
            let own = ["pack", &direct, "-f", "model/Kitfile", "-t", "again"];
            assert_eq!(world.kit(&own).last_digest(), MODEL_KIT);
            world.kit(&["import", &format!("./{direct}"), "-t", "guessed"]).well();
            // It goes on as it came.
            let other = format!("{address}/org/copy-{at}:{form}");
            world.kit(&["tag", &name, &other, &home]).well();
            let pushed = world.kit(&["push", "--plain-http", &other, &home]);
            assert_eq!(json!(pushed.last_digest()), made["digest"]);
            pushed.well();
            if form == "modctl" {
                assert_eq!(of_layers(&go.read(&other)).len(), FILES.len());
            }
        }
    }
}
