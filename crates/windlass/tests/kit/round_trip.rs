//! From a folder to a registry and back: nothing is lost, and equal input has equal digests.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use serde_json::Value;

use crate::{
    disk::through,
    server::Server,
    world::{FILES, KITFILE, MODEL_KIT, MODEL_PACK, World, said},
};

/// As kit 1.11 would have it.
const COMPATIBLE: &str = "sha256:9209c51eb2fe5d2e7e4f323763440c4f9745e83a3ab2066a1815f3b738d14400";
const MODEL_PACK_OF_1970: &str =
    "sha256:a1fe213fd9296e4ae08ce682426076fea4fed3d4121d3007897ceb5176ec88b3";

#[test]
fn k1_k28_both_forms_come_back_as_they_were() {
    let world = World::new();
    let server = Server::start(&world.path("registry"), &[], "");
    for (form, digest) in [(None, MODEL_KIT), (Some("--use-model-pack"), MODEL_PACK)] {
        let name =
            format!("{}/org/tiny:{}", server.address, if form.is_some() { "p" } else { "k" });
        let pack = ["pack", "model", "-t", &name];
        let packed = world.kit(&pack.into_iter().chain(form).collect::<Vec<_>>()).well();
        assert!(packed.ends_with(&format!("Model saved: {digest}\n")), "{packed}");
        let pushed = world.kit(&["push", "--plain-http", &name]);
        assert_eq!(pushed.last_digest(), digest);
        assert!(pushed.well().ends_with(&format!("Pushed {digest}\n")));
        // Straight from the registry, by somebody who has never seen it.
        let other = |arguments: &[&str]| {
            let mut command = world.command(arguments);
            command.env("KITOPS_HOME", world.path("elsewhere"));
            crate::world::said(command)
        };
        let folder = format!("direct-{}", form.is_some());
        other(&["unpack", &name, "--plain-http", "-o", "-d", &folder]).well();
        assert_eq!(world.files(&folder), world.files("model"));
        assert_eq!(world.files(&folder).len(), FILES.len());
        // By way of a storage.
        let pulled = other(&["pull", &name, "--plain-http"]).well();
        assert!(pulled.ends_with(&format!("Pulled {digest}\n")), "{pulled}");
        let folder = format!("pulled-{}", form.is_some());
        other(&["unpack", &name, "-d", &folder]).well();
        assert_eq!(world.files(&folder), world.files("model"));
        // What was unpacked is packed to the same bytes.
        let again = ["pack", &folder, "-t", "again"];
        let again = world.kit(&again.into_iter().chain(form).collect::<Vec<_>>()).well();
        assert!(again.ends_with(&format!("Model saved: {digest}\n")), "{again}");
        let checked = other(&["store", "fsck"]).well();
        assert!(checked.ends_with("blobs are whole\n"), "{checked}");
    }
}

/// Another folder with the same files, of another day.
fn elsewhere(world: &World) {
    for (name, text) in FILES.into_iter().chain([("Kitfile", KITFILE)]) {
        let path = format!("other/place/{name}");
        world.write(&path, text.as_bytes());
        let day = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        fs::File::options().write(true).open(world.path(&path)).unwrap().set_modified(day).unwrap();
    }
}

#[test]
fn k1_neither_user_nor_day_nor_place_changes_a_digest() {
    let world = World::new();
    elsewhere(&world);
    // Somebody else, with another umask, in another part of the world.
    let user = ["unshare", "--user", "--map-user=4711", "--map-group=4712", "--"];
    let shell = ["sh", "-c", "umask 0077; exec \"$0\" \"$@\""];
    let can_be_another = said(through(&world, &user, &["version"])).code == Some(0);
    if !can_be_another {
        eprintln!("skipped in part: this system does not let us be somebody else (unshare)");
    }
    let launcher: Vec<&str> = user.into_iter().filter(|_| can_be_another).chain(shell).collect();
    for (flags, epoch, digest) in [
        (&[][..], None, MODEL_KIT),
        (&["--compat=1.11"], None, COMPATIBLE),
        (&["--use-model-pack"], None, MODEL_PACK),
        (&["--use-model-pack"], Some("0"), MODEL_PACK_OF_1970),
    ] {
        for folder in ["model", "other/place"] {
            let pack = [&["pack", folder, "-t", "tiny"], flags].concat();
            let mut command = match folder {
                "model" => world.command(&pack),
                _ => through(&world, &launcher, &pack),
            };
            if folder != "model" {
                command.env("TZ", "Pacific/Kiritimati").env("KITOPS_HOME", world.path("theirs"));
                command.env("LANG", "tr_TR.UTF-8");
            }
            command.envs(epoch.map(|epoch| ("SOURCE_DATE_EPOCH", epoch)));
            let packed = said(command).well();
            assert!(packed.ends_with(&format!("Model saved: {digest}\n")), "{folder} {packed}");
        }
    }
    let config = "4f81c515d41fe51eabefc8763fca37c46e16f213405a9d192aff3596da6ad3df";
    let config = world.path("theirs/storage/blobs/sha256").join(config);
    let config = fs::read_to_string(config).unwrap();
    for text in [
        r#""parameters":{"big":1e+21,"hex":255,"list":["b","a"],"temp":0.5}"#,
        r#""A \u003ca@example.com\u003e""#,
    ] {
        assert!(config.contains(text), "{text} {config}");
    }
    // The layers of both forms are the same blobs: six, and two configs and three manifests, and a config
    // and a manifest of 1970.
    let blobs = fs::read_dir(world.path("theirs/storage/blobs/sha256")).unwrap().count();
    assert_eq!(blobs, 6 + 2 + 3 + 2);
    let mut wrong = world.command(&["pack", "model", "-t", "tiny"]);
    wrong.env("SOURCE_DATE_EPOCH", "today");
    said(wrong).refused(1, "SOURCE_DATE_EPOCH");
}

#[test]
fn what_goes_straight_to_a_registry_is_the_same_and_not_kept() {
    let world = World::new();
    let server = Server::start(&world.path("registry"), &[], "");
    let name = format!("{}/org/tiny:v1", server.address);
    let pushed = world.kit(&["pack", "model", "--push", "--plain-http", "-t", &name, "--json"]);
    assert_eq!(pushed.last_digest(), MODEL_KIT);
    let told: Value = serde_json::from_str(&pushed.well()).unwrap();
    assert_eq!((&told["digest"], &told["reference"]), (&MODEL_KIT.into(), &name.as_str().into()));
    assert_eq!((&told["layers"], &told["bytes"]), (&6.into(), &13312.into()));
    assert_eq!(world.kit(&["list"]).well().lines().count(), 1, "nothing but the headings");
    assert!(world.kit(&["inspect", "-r", "--plain-http", &name]).well().contains(MODEL_KIT));
    let field = ["info", "-r", "--plain-http", "-f", "model.parts[0].path", &name];
    assert_eq!(world.kit(&field).well(), "config.json\n");
    let listed = world.kit(&["list", "--plain-http", &format!("{}/org/tiny", server.address)]);
    let listed = listed.well();
    assert!(listed.contains("v1    A <a@example.com>   tiny   13.0 KiB"), "{listed}");
}

#[test]
fn compressed_layers_come_back_too() {
    let world = World::new();
    let server = Server::start(&world.path("registry"), &[], "");
    for kind in ["gzip", "gzip-fastest", "zstd", "auto"] {
        let name = format!("{}/org/tiny:{kind}", server.address);
        let compression = format!("--compression={kind}");
        world.kit(&["pack", "model", "--push", "--plain-http", &compression, "-t", &name]).well();
        world.kit(&["unpack", "--plain-http", "-d", kind, &name]).well();
        assert_eq!(world.files(kind), world.files("model"), "{kind}");
    }
    let raw = ["pack", "model", "--layer-format", "raw", "--use-model-pack", "-t", "raw"];
    world.kit(&raw).well();
    world.kit(&["unpack", "raw", "-d", "raw"]).well();
    assert_eq!(world.files("raw"), world.files("model"));
}

#[test]
fn k9_what_is_there_is_not_sent_again() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = World::new();
    let front = runtime.block_on(crate::front::Front::start(&world.path("registry")));
    let name = format!("{}/org/tiny:v1", front.address);
    world.kit(&["pack", "model", "-t", &name]).well();
    world.kit(&["push", "--plain-http", &name]).well();
    let taken = front.seen.lock().unwrap().taken;
    assert!(taken > 13312, "{taken}");
    let again = world.kit(&["push", "--plain-http", &name]).well();
    assert!(again.ends_with(&format!("Pushed {MODEL_KIT}\n")), "{again}");
    let other = format!("{}/org/other:v1,v2", front.address);
    world.kit(&["tag", &name, &other]).well();
    let mounted = world.kit(&["push", "--plain-http", &other]).well();
    assert!(mounted.ends_with(&format!("Pushed {MODEL_KIT}\n")), "{mounted}");
    assert_eq!(front.seen.lock().unwrap().taken, taken, "no byte of a blob");
}

#[test]
fn only_layers_that_are_wanted_are_asked_for() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = World::new();
    let front = runtime.block_on(crate::front::Front::start(&world.path("registry")));
    let name = format!("{}/org/tiny:v1", front.address);
    world.kit(&["pack", "model", "--push", "--plain-http", "-t", &name]).well();
    for (filter, files) in [
        ("--filter=model", &["config.json", "model.safetensors"][..]),
        ("--filter=datasets:conf", &["conf/a.yaml"]),
        ("--filter=docs:README.md", &["README.md"]),
        ("--docs", &["README.md", "docs/guide.md"]),
    ] {
        front.seen.lock().unwrap().ranges.clear();
        let folder = filter.trim_start_matches('-').replace([':', '='], "-");
        world.kit(&["unpack", "--plain-http", filter, "-d", &folder, &name]).well();
        let found = world.files(&folder);
        assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), files, "{filter}");
        // The config comes beside the layers.
        assert_eq!(front.seen.lock().unwrap().ranges.len(), files.len() + 1, "{filter}");
    }
    front.seen.lock().unwrap().ranges.clear();
    for filter in ["--filter=foo", "--filter=a:b:c", "--filter=model:a:b", "--filter=model,foo"] {
        world
            .kit(&["unpack", "--plain-http", filter, "-d", "none", &name])
            .refused(1, "nvalid filter");
    }
    assert!(front.seen.lock().unwrap().ranges.is_empty() && !world.path("none").exists());
}
