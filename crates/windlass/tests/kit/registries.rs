//! Against a registry that others have written, and where it matters against ours too.

use std::{fs, path::PathBuf};

use windlass_kit::Digest;

use crate::{
    cut::Between,
    debian::{Debian, Door},
    server::Server,
    wait,
    world::{FILES, MODEL_KIT, MODEL_PACK, World},
};

const MODEL: &str = "sha256:fad64cc0c57283d16fb7efcda3cff63ea824e90137d2c8d8dbc90b97228950cf";
const CHUNK: u64 = 64 << 10;

fn debian(world: &World, door: Door) -> Option<Debian> {
    Debian::start(world.path("debian"), door)
}

/// What was asked since, of blobs and uploads.
fn of_blobs(asked: &[String]) -> Vec<&str> {
    asked.iter().map(String::as_str).filter(|asked| asked.contains("/blobs/")).collect()
}

#[test]
fn both_forms_come_back_from_it_as_they_were() {
    let world = World::new();
    let Some(site) = debian(&world, Door::default()) else { return };
    for (form, digest) in [(None, MODEL_KIT), (Some("--use-model-pack"), MODEL_PACK)] {
        let name = format!("{}/org/tiny:{}", site.address, if form.is_some() { "p" } else { "k" });
        let pack = ["pack", "model", "-t", &name, "--push", "--plain-http"];
        let pushed = world.kit(&pack.into_iter().chain(form).collect::<Vec<_>>());
        assert_eq!(pushed.last_digest(), digest);
        assert!(pushed.well().ends_with(&format!("Pushed {digest}\n")));
        let folder = format!("out-{}", form.is_some());
        world.kit(&["unpack", &name, "--plain-http", "-o", "-d", &folder]).well();
        assert_eq!(world.files(&folder), world.files("model"));
        assert_eq!(world.files(&folder).len(), FILES.len());
        let pulled = world.kit(&["pull", &name, "--plain-http"]).well();
        assert!(pulled.ends_with(&format!("Pulled {digest}\n")), "{pulled}");
    }
    let repository = format!("{}/org/tiny", site.address);
    let listed = world.kit(&["list", "--plain-http", &repository]).well();
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let tag = format!("{repository}:k");
    world.kit(&["remove", "-r", "--plain-http", &tag]).refused(6, "removes no single tags");
    world.kit(&["remove", "-r", "-f", "--plain-http", &tag]).well();
    world.kit(&["pull", "--plain-http", &tag]).refused(3, "org/tiny:k");
}

#[test]
fn k9_what_it_has_is_not_sent_again_and_mounted_elsewhere() {
    let world = World::new();
    let Some(site) = debian(&world, Door::default()) else { return };
    let name = format!("{}/org/tiny:v1", site.address);
    world.kit(&["pack", "model", "-t", &name]).well();
    let push = |name: &str| {
        let before = site.asked().len();
        let pushed = world.kit(&["push", "--plain-http", name]).well();
        assert!(pushed.ends_with(&format!("Pushed {MODEL_KIT}\n")), "{pushed}");
        site.asked().split_off(before)
    };
    let first = push(&name);
    let sent = of_blobs(&first).into_iter().filter(|asked| asked.starts_with("PUT ")).count();
    assert_eq!(sent, FILES.len() + 1, "the layers and the config: {first:?}");
    let second = push(&name);
    assert!(
        second.iter().all(|asked| asked.starts_with("HEAD ") || asked == "GET /v2/"),
        "{second:?}"
    );
    let other = format!("{}/org/other:v1", site.address);
    world.kit(&["tag", &name, &other]).well();
    let third = push(&other);
    let blobs = of_blobs(&third);
    assert!(!blobs.iter().any(|asked| asked.starts_with("PUT ") || asked.starts_with("PATCH ")));
    let mounts = blobs.iter().filter(|asked| asked.contains("from=org/tiny")).count();
    assert_eq!(mounts, FILES.len() + 1, "{third:?}");
    // They are there under the other name too.
    world.kit(&["unpack", &other, "--plain-http", "-d", "out"]).well();
    assert_eq!(world.files("out"), world.files("model"));
}

/// Nothing of the layer, and no half file under any name.
fn assert_nothing(world: &World, folder: &str) {
    assert!(!world.path(folder).join("model.safetensors").exists());
    let left = fs::read_dir(world.path(folder)).into_iter().flatten();
    let left = left.map(|child| child.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = left.filter(|name| name.starts_with(".windlass")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn k10_k11_what_it_has_lost_or_changed_is_not_unpacked() {
    let world = World::new();
    let Some(site) = debian(&world, Door::default()) else { return };
    let name = format!("{}/org/tiny:v1", site.address);
    world.kit(&["pack", "model", "--push", "--plain-http", "-t", &name]).well();

    // First, while nobody is on the way from another attempt.
    let manifest = site.blob(MODEL_KIT);
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"windlass\"", "\"windlasS\"")).unwrap();
    let by_digest = format!("{}/org/tiny@{MODEL_KIT}", site.address);
    let before = site.asked().len();
    world.kit(&["unpack", "--plain-http", "-d", "altered", &by_digest]).refused(5, MODEL_KIT);
    let asked = site.asked().split_off(before);
    assert!(of_blobs(&asked).is_empty(), "{asked:?}");
    assert_nothing(&world, "altered");
    fs::write(&manifest, &text).unwrap();

    let path = site.blob(MODEL);
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[520] ^= 1;
    fs::write(&path, &flipped).unwrap();
    let said = world.kit(&["unpack", "--plain-http", "-d", "flipped", &name]);
    said.refused(5, MODEL);
    said.refused(5, Digest::of(&flipped).as_str());
    assert_nothing(&world, "flipped");
    world.kit(&["pull", "--plain-http", &name]).refused(5, MODEL);

    fs::write(&path, &whole[..1000]).unwrap();
    let said = world.kit(&["unpack", "--plain-http", "--retries=0", "-d", "short", &name]);
    assert!(matches!(said.code, Some(5 | 6)), "{said:?}");
    assert_nothing(&world, "short");
}

#[test]
fn k20_it_lets_in_who_has_the_password() {
    let world = World::new();
    let Some(site) = debian(&world, Door { closed: true, ..Door::default() }) else { return };
    let name = format!("{}/org/tiny:v1", site.address);
    world.kit(&["pack", "model", "-t", &name]).well();
    let push = ["push", "--plain-http", &name];
    let before = site.asked().len();
    let said = world.kit(&push);
    said.refused(4, &site.address);
    said.refused(4, "org/tiny");
    assert!(site.asked().len() - before <= 3, "nothing is tried again: {:?}", site.asked());
    let login = |password: &str| {
        let flags = ["--plain-http", "-u", "u", "-p", password];
        world.kit(&[&["login", &site.address], &flags[..]].concat())
    };
    login("wrong").refused(4, &site.address);
    assert_eq!(login("secret").well(), "Log in successful\n");
    world.kit(&push).well();
    let missing = format!("{}/org/tiny:other", site.address);
    world.kit(&["pull", "--plain-http", &missing]).refused(3, &missing);
    // What docker keeps counts too.
    world.kit(&["logout", &site.address]).well();
    world.kit(&["pull", "--plain-http", &name]).refused(4, "401");
    // "u:secret"
    let config = format!(r#"{{"auths":{{"{}":{{"auth":"dTpzZWNyZXQ="}}}}}}"#, site.address);
    world.write("docker/config.json", config.as_bytes());
    world.write("nobody/config.json", br#"{"auths":{}}"#);
    let mut command = world.command(&["pull", "--plain-http", &name]);
    command.env("DOCKER_CONFIG", world.path("docker"));
    crate::world::said(command).well();
    // A pod may have several sets, and whichever works is used.
    let mut command = world.command(&["unpack", "--plain-http", "-d", "out", &name]);
    command.env("KITOPS_HOME", world.path("elsewhere"));
    let folders = ["nobody", "docker"].map(|name| world.path(name).display().to_string());
    command.env("DOCKER_CONFIGS", folders.join(" ")).env("DOCKER_CONFIG", &folders[0]);
    crate::world::said(command).well();
    assert_eq!(world.files("out"), world.files("model"));
}

#[test]
fn k20_one_that_speaks_tls_only_is_found_without_it() {
    let world = World::new();
    let Some(site) = debian(&world, Door { tls: true, ..Door::default() }) else { return };
    let name = format!("{}/org/tiny:v1", site.address);
    let authority = site.folder().join("tls.crt").display().to_string();
    let trust = ["--ca-file", &authority];
    let pack = ["pack", "model", "--push", "--plain-http", "-t", &name];
    let said = world.kit(&[&pack[..], &trust].concat());
    assert!(said.err.contains("[WARN ] "), "{said:?}");
    said.well();
    world.kit(&[&["unpack", &name, "-d", "out"], &trust[..]].concat()).well();
    assert_eq!(world.files("out"), world.files("model"));
    let stranger = world.kit(&["pull", "--retries=0", &name]);
    stranger.refused(6, &site.address);
    world.kit(&["pull", "--tls-verify=false", &name]).well();
}

/// One layer in parts, and one that is small.
fn large() -> World {
    let world = World::new();
    world.write("large/model.bin", &crate::resume::weights());
    world.write("large/config.json", b"{}");
    world.write("large/Kitfile", b"model: {path: model.bin, parts: [{path: config.json}]}\n");
    world
}

const IN_PARTS: [&str; 4] = ["push", "--plain-http", "--chunk-size=64KiB", "--concurrency=1"];

/// From behind `between`, by somebody else.
fn assert_whole(world: &World, between: &Between) {
    let name = format!("{}/org/large:v1", between.address);
    let mut command = world.command(&["unpack", "--plain-http", "-d", "out", &name]);
    command.env("KITOPS_HOME", world.path("elsewhere"));
    crate::world::said(command).well();
    assert_eq!(world.files("out"), world.files("large"));
}

#[test]
fn k24_a_part_that_is_cut_costs_one_blob_at_most() {
    let world = large();
    let Some(site) = debian(&world, Door::default()) else { return };
    let between = Between::start(&site.address);
    let name = format!("{}/org/large:v1", between.address);
    world.kit(&["pack", "large", "-t", &name]).well();
    between.seen.lock().unwrap().cut_after = Some(30);
    world.kit(&[&IN_PARTS[..], &[&name]].concat()).well();
    assert!(between.seen.lock().unwrap().cut_after.is_none(), "nothing was cut");
    let asked = site.asked();
    let finished =
        asked.iter().filter(|asked| asked.starts_with("PUT ") && asked.contains("/blobs/"));
    let finished: Vec<_> = finished.collect();
    assert_eq!(finished.len(), 3, "each blob once: {finished:?}");
    assert_whole(&world, &between);
}

#[test]
fn k24_with_ours_a_part_that_is_cut_goes_on_from_what_came() {
    let world = large();
    let server = Server::start(&world.path("registry"), &[], "");
    let between = Between::start(&server.address);
    let name = format!("{}/org/large:v1", between.address);
    world.kit(&["pack", "large", "-t", &name]).well();
    between.seen.lock().unwrap().cut_after = Some(30);
    world.kit(&[&IN_PARTS[..], &[&name]].concat()).well();
    assert!(between.seen.lock().unwrap().cut_after.is_none(), "nothing was cut");
    let sent = between.seen.lock().unwrap().sent;
    let whole = crate::resume::SIZE as u64;
    // A part again at most, and the heads of the requests.
    assert!((whole..whole + 2 * CHUNK).contains(&sent), "{sent} of {whole}");
    assert_whole(&world, &between);
}

#[tokio::test(flavor = "multi_thread")]
async fn k23_after_a_kill_it_is_told_only_what_it_has_not() {
    let world = large();
    let Some(site) = debian(&world, Door::default()) else { return };
    let between = Between::start(&site.address);
    let name = format!("{}/org/large:v1", between.address);
    world.kit(&["pack", "large", "-t", &name]).well();
    between.seen.lock().unwrap().hold_after = Some(30);
    let push = [&IN_PARTS[..], &[&name]].concat();
    let running = world.begin(&push);
    let uploads: PathBuf = world.path("kitops/windlass/uploads");
    wait::until("the parts before the one that is held", async || {
        let begun = fs::read_dir(&uploads).into_iter().flatten().flatten();
        let mut begun = begun.filter_map(|file| fs::read_to_string(file.path()).ok());
        let reached = format!("\"offset\":{}", 30 * CHUNK);
        match begun.any(|text| text.contains(&reached)) {
            true => Ok(()),
            false => Err(between.seen.lock().unwrap().parts.to_string()),
        }
    })
    .await;
    running.kill();
    between.seen.lock().unwrap().hold_after = None;
    world.kit(&push).well();
    let sent = between.seen.lock().unwrap().sent;
    let whole = crate::resume::SIZE as u64;
    assert!((whole..whole + 2 * CHUNK).contains(&sent), "{sent} of {whole}");
    assert_whole(&world, &between);
}
