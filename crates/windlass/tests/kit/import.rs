//! Models of a hub, of an address, of git and of a folder.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use windlass_kit::Digest;

use crate::{
    hub::{COMMIT, Hub},
    server::Server,
    wait,
    web::Web,
    world::{World, said},
};

fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("m-1.safetensors", b"first".to_vec()),
        ("m-2.safetensors", b"other".to_vec()),
        ("config.json", b"{}".to_vec()),
        ("README.md", b"# Readme".to_vec()),
        ("LICENSE", b"free".to_vec()),
    ]
}

fn kit(world: &World, hub: &Hub, arguments: &[&str]) -> crate::world::Said {
    let mut command = world.command(arguments);
    command.env("HF_ENDPOINT", &hub.address).env("HF_TOKEN", "hf_secret");
    said(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn k27_a_repository_becomes_an_artifact_with_a_kitfile() {
    let world = World::new();
    let hub = Hub::start(files()).await;
    let dry = kit(&world, &hub, &["import", "Org/Tiny", "--dry-run"]).well();
    assert!(dry.contains("path: m-1.safetensors") && dry.ends_with("# 5 files, 24 B\n"), "{dry}");
    assert!(!world.path("kitops/storage/index.json").exists());
    let imported = kit(&world, &hub, &["import", "Org/Tiny"]);
    assert!(!format!("{imported:?}").contains("hf_secret"));
    let imported = imported.well();
    assert!(imported.contains("Saved model layer: sha256:"), "{imported}");
    let told = world.kit(&["info", "org/tiny:latest"]).well();
    for line in ["authors: [Org]", "path: m-1.safetensors", "description: License file"] {
        assert!(told.contains(line), "{line} {told}");
    }
    world.kit(&["unpack", "org/tiny", "-d", "out"]).well();
    assert_eq!(world.files("out")["m-2.safetensors"], b"other");
    let asked = std::mem::take(&mut hub.known.lock().unwrap().asked);
    assert!(asked.iter().all(|(_, _, who)| who.as_deref() == Some("Bearer hf_secret")));
    assert!(
        asked.iter().all(|(path, ..)| path.contains("/revision/main") || path.contains(COMMIT))
    );
    // Some files only, straight to a registry.
    let server = Server::start(&world.path("registry"), &[], "");
    let name = format!("{}/org/tiny:one", server.address);
    let one = ["import", "Org/Tiny", "--include=*.safetensors", "--exclude=m-2*", "--push"];
    let one = [&one[..], &["--plain-http", "--use-model-pack", "-t", &name]].concat();
    let pushed = kit(&world, &hub, &one).well();
    assert!(pushed.lines().last().unwrap().starts_with("Pushed sha256:"), "{pushed}");
    let asked = std::mem::take(&mut hub.known.lock().unwrap().asked);
    let got: Vec<_> = asked.iter().filter(|(path, ..)| path.contains("/resolve/")).collect();
    assert_eq!(got.len(), 1, "{got:?}");
    world.kit(&["unpack", "--plain-http", &name, "-d", "one"]).well();
    assert_eq!(world.files("one").into_keys().collect::<Vec<_>>(), ["m-1.safetensors"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn k26_refusals_of_the_hub_have_codes() {
    let world = World::new();
    let hub = Hub::start(files()).await;
    for (refusal, code, text) in [
        ((403, "GatedRepo"), 4, "access to org/tiny must be requested"),
        ((404, "RevisionNotFound"), 3, "reference 'x' not found"),
        ((401, "RepoNotFound"), 3, "repository 'org/tiny' not found"),
    ] {
        hub.known.lock().unwrap().refuse = Some(refusal);
        let said = kit(&world, &hub, &["import", "org/tiny", "--ref", "x"]);
        assert!(said.err.to_lowercase().contains(&text.to_lowercase()), "{said:?}");
        said.refused(code, "");
    }
    // What comes is not what was told.
    let mut known = hub.known.lock().unwrap();
    (known.refuse, known.lies) = (None, true);
    drop(known);
    kit(&world, &hub, &["import", "org/tiny"]).refused(5, Digest::of(b"another file").hex());
    assert_eq!(world.kit(&["list"]).well().lines().count(), 1, "nothing but the headings");
    // Nobody is asked longer than told.
    hub.known.lock().unwrap().refuse = Some((503, ""));
    kit(&world, &hub, &["import", "org/tiny", "--retries=0"]).refused(6, "tried 1 times");
}

/// Names of the files that were downloaded since.
fn downloaded(hub: &Hub) -> Vec<String> {
    let asked = std::mem::take(&mut hub.known.lock().unwrap().asked);
    let names =
        asked.iter().filter_map(|(path, ..)| path.split_once(&format!("/resolve/{COMMIT}/")));
    names.map(|(_, name)| name.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_already_is_not_downloaded() {
    let world = World::new();
    let hub = Hub::start(files()).await;
    let server = Server::start(&world.path("registry"), &[], "");
    let name = |tag: &str| format!("{}/org/tiny:{tag}", server.address);
    let push = |tag: &str| {
        let import = ["import", "Org/Tiny", "--layer-format=raw", "--push", "--plain-http", "-t"];
        kit(&world, &hub, &[&import[..], &[&name(tag)]].concat())
    };
    let first = push("one").last_digest();
    assert_eq!(downloaded(&hub).len(), files().len());
    // By somebody who has nothing himself, under another name.
    fs::remove_dir_all(world.path("kitops")).unwrap();
    let second = push("two");
    assert_eq!(second.last_digest(), first);
    second.well();
    assert_eq!(downloaded(&hub), Vec::<String>::new());
    // Only what is new.
    hub.known.lock().unwrap().files[1].1 = b"newer".to_vec();
    push("three").well();
    assert_eq!(downloaded(&hub), ["m-2.safetensors"]);
    world.kit(&["unpack", "--plain-http", &name("three"), "-d", "out"]).well();
    for (path, content) in &hub.known.lock().unwrap().files {
        assert_eq!(world.files("out")[*path], *content, "{path}");
    }
    // What the local storage has likewise; a layer that is an archive has another digest.
    let keep = |format: &str| {
        kit(&world, &hub, &["import", "Org/Tiny", "--layer-format", format]).well();
        downloaded(&hub).len()
    };
    assert_eq!((keep("raw"), keep("raw"), keep("tar")), (5, 0, 5));
    world.kit(&["store", "fsck"]).well();
    world.kit(&["unpack", "org/tiny", "-d", "kept"]).well();
    assert_eq!(world.files("kept"), world.files("out"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_already_changes_no_digest() {
    let world = World::new();
    // All but `run.sh` are layers by themselves, and what is nothing known makes a layer of all the rest.
    let more = vec![("onnx/model.onnx", b"graph".to_vec()), ("run.sh", b"true".to_vec())];
    let hub = Hub::start([files(), more].concat()).await;
    world.write("own", b"model: {path: onnx/model.onnx}\ncode: [{path: onnx}, {path: run.sh}]\n");
    let import = ["import", "Org/Tiny", "--layer-format=raw"];
    for (kitfile, count, again) in [(None, 7, &["run.sh"][..]), (Some("--file=own"), 2, &[])] {
        let server = Server::start(&world.path(&format!("registry-{count}")), &[], "");
        let keep = [&import[..], kitfile.as_slice(), &["-t", "kept"]].concat();
        let name = format!("{}/org/tiny:v1", server.address);
        let push = ["--push", "--plain-http", "-t", &name];
        let push = [&import[..], kitfile.as_slice(), &push].concat();
        for into in [keep, push] {
            fs::remove_dir_all(world.path("kitops")).unwrap_or_default();
            let digest = || {
                let said = kit(&world, &hub, &into);
                assert_eq!(said.code, Some(0), "{into:?} {said:?}");
                said.last_digest()
            };
            let first = digest();
            assert_eq!(downloaded(&hub).len(), count, "{into:?}");
            assert_eq!(digest(), first, "{into:?}");
            assert_eq!(downloaded(&hub), again, "{into:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_in_another_size_or_is_to_be_compressed_is_downloaded() {
    let world = World::new();
    let hub = Hub::start(files()).await;
    let server = Server::start(&world.path("registry"), &[], "");
    let name = format!("{}/org/tiny:v1", server.address);
    let import = ["import", "Org/Tiny", "--layer-format=raw", "--retries=0", "-t"];
    let mut digests = BTreeSet::new();
    for into in [&["kept"][..], &[name.as_str(), "--push", "--plain-http"]] {
        let into = [&import[..], into].concat();
        kit(&world, &hub, &into).well();
        downloaded(&hub);
        let smaller = kit(&world, &hub, &[&into[..], &["--compression=zstd"]].concat());
        digests.insert(smaller.last_digest());
        smaller.well();
        assert_eq!(downloaded(&hub).len(), files().len(), "{into:?}");
        hub.known.lock().unwrap().adds = 1;
        let lie = kit(&world, &hub, &into);
        lie.refused(6, "tried 1 times");
        hub.known.lock().unwrap().adds = 0;
    }
    assert_eq!(digests.len(), 1, "what is kept is compressed as what is sent");
}

#[test]
fn a_folder_is_imported_with_its_kitfile_or_without() {
    let world = World::new();
    for (name, text) in crate::world::FILES {
        world.write(&format!("plain/{name}"), text.as_bytes());
    }
    world.kit(&["import", "./plain"]).well();
    assert_eq!(world.kit(&["info", "-f", "package.name", "plain"]).well(), "plain\n");
    world.kit(&["unpack", "plain", "-d", "out"]).well();
    assert_eq!(world.files("out"), world.files("plain"));
    let with = world.kit(&["import", "./model", "-t", "tiny"]);
    assert_eq!(with.last_digest(), crate::world::MODEL_KIT);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_file_of_the_hub_is_imported_by_its_address() {
    let world = World::new();
    let hub = Hub::start(files()).await;
    let address = format!("{}/Org/Tiny/resolve/main/m-2.safetensors?download=true", hub.address);
    kit(&world, &hub, &["import", &address, "-t", "one"]).well();
    world.kit(&["unpack", "one", "-d", "out"]).well();
    assert_eq!(world.files("out").into_keys().collect::<Vec<_>>(), ["m-2.safetensors"]);
    let asked = hub.known.lock().unwrap().asked.clone();
    assert!(asked.iter().any(|(path, ..)| path.ends_with("/revision/main")), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_an_address_is_resumed_pinned_and_packed() {
    let world = World::new();
    let content = vec![7; 3 << 20];
    let web = Web::start(content.clone()).await;
    let half = content.len() / 2;
    web.known.lock().unwrap().send_only = Some(half);
    let address = format!("{}/models/Tiny-Q4.gguf?key=hidden", web.address);
    let sum = Digest::of(&content).hex().to_owned();
    let import = ["import", &address, "--sha256", &sum, "--token", "token-of-mine"];
    let running = world.begin(&import);
    let part = || {
        let places = fs::read_dir(world.path("kitops/windlass/import")).ok()?.flatten();
        let mut parts = places.map(|place| place.path().join("files.parts/Tiny-Q4.gguf"));
        Some(fs::metadata(parts.next()?).ok()?.len())
    };
    wait::until("half of the file", async || match part() {
        Some(size) if size == half as u64 => Ok(()),
        size => Err(format!("{size:?}")),
    })
    .await;
    running.kill();
    let mut known = web.known.lock().unwrap();
    (known.send_only, known.asked) = (None, Vec::new());
    drop(known);
    let imported = world.kit(&import);
    let text = format!("{imported:?}");
    assert!(!text.contains("hidden") && !text.contains("token-of-mine"), "{text}");
    assert!(imported.well().contains(&format!("Its SHA-256 is {sum}")), "{text}");
    let token = Some("Bearer token-of-mine".to_owned());
    let asked = std::mem::take(&mut web.known.lock().unwrap().asked);
    assert_eq!(asked, [(Some(format!("bytes={half}-")), token)]);
    assert_eq!(world.kit(&["info", "-f", "model.path", "tiny-q4"]).well(), "Tiny-Q4.gguf\n");
    world.kit(&["unpack", "tiny-q4", "-d", "out"]).well();
    assert_eq!(world.files("out")["Tiny-Q4.gguf"], content);
    let left = fs::read_dir(world.path("kitops/windlass/import")).unwrap().count();
    assert_eq!(left, 0, "what was downloaded is in the storage");
    // What the hub's tools keep is not for others.
    let mut other = world.command(&["import", &address, "--dry-run"]);
    let told = said({
        other.env("HF_TOKEN", "hf_secret");
        other
    });
    assert!(told.well().ends_with("# 1 files, 3.0 MiB\n"));
    assert_eq!(web.known.lock().unwrap().asked, [(None, None)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_an_address_have_codes() {
    let world = World::new();
    let web = Web::start(b"weights".to_vec()).await;
    let address = format!("{}/tiny.gguf", web.address);
    let wrong = "0".repeat(64);
    world.kit(&["import", &address, "--sha256", &wrong]).refused(5, "does not match");
    world.kit(&["import", "org/tiny", "--sha256", &wrong]).refused(1, "--sha256 is for");
    for (status, code) in [(404, 3), (401, 4), (403, 4), (400, 6)] {
        web.known.lock().unwrap().refuse = Some(status);
        world.kit(&["import", &address]).refused(code, "/tiny.gguf");
    }
}

/// With more layers than a manifest holds.
fn many() -> Vec<u8> {
    let entries: String = (0..50_000).map(|number| format!("  - path: file-{number}\n")).collect();
    format!("code:\n{entries}").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_packed_is_not_downloaded_either() {
    let world = World::new();
    world.write("many/Kitfile", &many());
    let web = Web::start(b"weights".to_vec()).await;
    let address = format!("{}/tiny.gguf", web.address);
    let repository = repository(&world);
    for from in [&address, &repository] {
        let said = world.kit(&["import", from, "-t", "tiny", "-f", "many/Kitfile"]);
        said.refused(1, "registries take 4194304");
    }
    assert!(web.known.lock().unwrap().asked.is_empty());
    assert!(!world.path("kitops/windlass/import").exists());
    // One of its own is known when git has come, and large files have not.
    world.write("repository/Kitfile", &many());
    world.write("repository/.gitattributes", b"*.safetensors filter=lfs\n");
    git(&world.path("repository"), &["add", "."]);
    git(&world.path("repository"), &["commit", "--quiet", "-m", "third"]);
    world.kit(&["import", &repository, "-t", "tiny"]).refused(1, "registries take 4194304");
}

/// As a user of git would, whoever that is.
fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    let who = ["-c", "user.name=u", "-c", "user.email=u@example.com"];
    command.args(who).args(arguments).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?} {output:?}");
}

fn repository(world: &World) -> String {
    for (name, text) in
        [("m.safetensors", "weights"), ("README.md", "# Readme"), (".gitignore", "x")]
    {
        world.write(&format!("repository/{name}"), text.as_bytes());
    }
    let folder = world.path("repository");
    git(&folder, &["init", "--quiet", "--initial-branch=trunk"]);
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "--quiet", "-m", "first"]);
    git(&folder, &["tag", "v1"]);
    world.write("repository/m.safetensors", b"other weights");
    git(&folder, &["commit", "--quiet", "-a", "-m", "second"]);
    format!("file://{}", folder.display())
}

#[test]
fn a_repository_of_git_becomes_an_artifact() {
    let world = World::new();
    let address = repository(&world);
    for (revision, want) in [(None, "other weights"), (Some("--ref=v1"), "weights")] {
        let import = ["import", &address, "-t", "tiny"];
        world.kit(&import.into_iter().chain(revision).collect::<Vec<_>>()).well();
        world.kit(&["unpack", "tiny", "-o", "-d", "out"]).well();
        let found = world.files("out");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["README.md", "m.safetensors"]);
        assert_eq!(found["m.safetensors"], want.as_bytes());
    }
    assert_eq!(world.kit(&["info", "-f", "package.name", "tiny"]).well(), "repository\n");
    assert_eq!(fs::read_dir(world.path("kitops/windlass/import")).unwrap().count(), 0);
}

/// As if an import had been killed while git wrote the files of another commit.
#[test]
fn what_a_killed_git_has_left_is_in_nobodys_way() {
    let world = World::new();
    let address = repository(&world);
    let key = Digest::of(format!("{address}\nHEAD").as_bytes());
    let place = format!("kitops/windlass/import/repository@{}", key.hex());
    for left in ["git/index.lock", "git/refs/heads/trunk.lock", "files/old.safetensors"] {
        world.write(&format!("{place}/{left}"), b"");
    }
    world.kit(&["import", &address, "-t", "tiny"]).well();
    world.kit(&["unpack", "tiny", "-d", "out"]).well();
    let found = world.files("out");
    assert_eq!(found.keys().collect::<Vec<_>>(), ["README.md", "m.safetensors"]);
}

#[test]
fn what_a_user_has_set_for_git_changes_nothing() {
    let world = World::new();
    world.write("repository/notes.txt", b"one\ntwo\n");
    let address = repository(&world);
    let hooks = world.path("hooks");
    let hook = format!("#!/bin/sh\ntouch {}\n", world.path("evil").display());
    world.write("hooks/post-checkout", hook.as_bytes());
    let runs = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(hooks.join("post-checkout"), runs).unwrap();
    let config = format!("[core]\n autocrlf = true\n hooksPath = {}\n", hooks.display());
    world.write("gitconfig", config.as_bytes());
    let mut import = world.command(&["import", &address, "-t", "tiny"]);
    import
        .env("GIT_CONFIG_GLOBAL", world.path("gitconfig"))
        .env("HOME", world.path(""))
        .env("GIT_INDEX_FILE", world.path("repository/.git/index"));
    world.write(".gitconfig", config.as_bytes());
    let index = fs::read(world.path("repository/.git/index")).unwrap();
    said(import).well();
    assert!(!world.path("evil").exists());
    assert_eq!(fs::read(world.path("repository/.git/index")).unwrap(), index);
    world.kit(&["unpack", "tiny", "-d", "out"]).well();
    assert_eq!(world.files("out")["notes.txt"], b"one\ntwo\n");
}

#[test]
fn what_git_cannot_do_is_told() {
    let world = World::new();
    let address = repository(&world);
    world.kit(&["import", &address, "--ref", "none"]).refused(3, "find remote ref");
    let nowhere = format!("file://{}", world.path("nowhere").display());
    world.kit(&["import", &nowhere]).refused(3, "nowhere");
    let evil = ["import", "--tool", "git", "ext::sh -c 'touch evil'", "-t", "tiny"];
    world.kit(&evil).refused(1, "ext");
    assert!(!world.path("evil").exists());
    let mut without = world.command(&["import", &address]);
    without.env("PATH", world.path("nothing"));
    said(without).refused(1, "Git is not installed here");
    // Of large files git has only pointers, which nobody wants.
    world.write("repository/.gitattributes", b"*.bin filter=lfs\n");
    world.write("repository/large.bin", b"version https://git-lfs.github.com/spec/v1\n");
    git(&world.path("repository"), &["-c", "filter.lfs.clean=cat", "add", "."]);
    git(&world.path("repository"), &["commit", "--quiet", "-m", "third"]);
    let mut without = world.command(&["import", &address]);
    world.write("bin/git-lfs", b"#!/bin/sh\nexit 1\n");
    let place = world.path("bin/git-lfs");
    fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    without.env("PATH", format!("{}:{path}", world.path("bin").display()));
    said(without).refused(1, "large.bin is kept by Git LFS");
}
