//! What it does not do, and by which exit code that is known.

use std::{fs, io::Write, path::Path, process::Stdio};

use windlass_kit::Digest;

use crate::{server::Server, world::World};

/// Of somebody who has signed nothing.
const KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE1dTQ2zuyY6lcSfyj7EKJW/uQ+UgO
fssj1oSDWF2aHUNCKtqGbVzaaPEiU0v376izQncUUe67SRfJUujnP5VY7w==
-----END PUBLIC KEY-----
";

fn blob(root: &Path, digest: &str) -> std::path::PathBuf {
    let hex = digest.trim_start_matches("sha256:");
    root.join("blobs/sha256").join(&hex[..2]).join(hex)
}

#[test]
fn k10_a_flipped_byte_is_found_and_nothing_of_the_layer_is_kept() {
    let world = World::new();
    let root = world.path("registry");
    let server = Server::start(&root, &[], "");
    let name = format!("{}/org/tiny:v1", server.address);
    world.kit(&["pack", "model", "--push", "--plain-http", "-t", &name]).well();
    let model = "sha256:fad64cc0c57283d16fb7efcda3cff63ea824e90137d2c8d8dbc90b97228950cf";
    let path = blob(&root, model);
    let mut bytes = fs::read(&path).unwrap();
    bytes[520] ^= 1;
    let is = Digest::of(&bytes);
    fs::remove_file(&path).unwrap();
    fs::write(&path, &bytes).unwrap();
    let said = world.kit(&["unpack", "--plain-http", "-d", "out", &name]);
    said.refused(5, model);
    said.refused(5, is.as_str());
    assert!(!world.path("out/model.safetensors").exists());
    let left = fs::read_dir(world.path("out")).unwrap().map(|child| child.unwrap().file_name());
    let left: Vec<_> =
        left.filter(|name| name.to_string_lossy().starts_with(".windlass")).collect();
    assert!(left.is_empty(), "{left:?}");
    world.kit(&["pull", "--plain-http", &name]).refused(5, model);
}

#[test]
fn k31_what_nobody_has_signed_is_not_unpacked() {
    let world = World::new();
    let server = Server::start(&world.path("registry"), &[], "");
    let name = format!("{}/org/tiny:v1", server.address);
    world.kit(&["pack", "model", "--push", "--plain-http", "-t", &name]).well();
    world.write("none.pub", b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n");
    world.write("a.pub", KEY.as_bytes());
    let unpack = ["unpack", "--plain-http", "-d", "out", &name, "--verify-key"];
    for (key, code, text) in [("a.pub", 5, "is not signed"), ("none.pub", 1, "no public key")] {
        world.kit(&[&unpack[..], &[key]].concat()).refused(code, text);
        world.kit(&["verify", "--plain-http", &name, "--verify-key", key]).refused(code, text);
    }
    let left = fs::read_dir(world.path("out")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "not even the Kitfile");
}

#[test]
fn k20_who_may_not_is_told_why() {
    let world = World::new();
    let server = Server::start(&world.path("registry"), &["--user", "u"], "secret\n");
    let name = format!("{}/org/tiny:v1", server.address);
    world.kit(&["pack", "model", "-t", &name]).well();
    let push = ["push", "--plain-http", &name];
    let said = world.kit(&push);
    said.refused(4, &server.address);
    said.refused(4, "org/tiny");
    let login = |password: &str| {
        let arguments =
            ["login", &server.address, "--plain-http", "--username", "u", "--password-stdin"];
        let mut command = world.command(&arguments);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        child.stdin.take().unwrap().write_all(password.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let (code, said) = login("wrong-password");
    assert!(code == Some(4) && !said.contains("wrong-password"), "{code:?} {said}");
    assert!(!world.path("kitops/credentials.json").exists(), "what does not work is not kept");
    assert_eq!(login("secret"), (Some(0), "Log in successful\n".to_owned()));
    world.kit(&push).well();
    let missing = format!("{}/org/tiny:other", server.address);
    world.kit(&["pull", "--plain-http", &missing]).refused(3, &missing);
    let logged_out = world.kit(&["logout", &server.address]).well();
    assert_eq!(logged_out, format!("Logged out of {}\n", server.address));
    world.kit(&["logout", &server.address]).refused(3, "Not logged in");
    world.kit(&["pull", "--plain-http", &name]).refused(4, "401");
}

#[test]
fn who_does_not_answer_is_asked_again_and_then_given_up() {
    let world = World::new();
    // Nobody listens on it any more.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let pull = ["pull", "--plain-http", "--retries", "1", &format!("{address}/org/tiny:v1")];
    world.kit(&pull).refused(6, "tried 2 times");
}

#[test]
fn k14_no_link_in_the_target_is_followed() {
    let world = World::new();
    world.kit(&["pack", "model", "-t", "tiny"]).well();
    fs::create_dir_all(world.path("out")).unwrap();
    fs::create_dir_all(world.path("outside")).unwrap();
    std::os::unix::fs::symlink("../outside", world.path("out/docs")).unwrap();
    world.kit(&["unpack", "tiny", "-d", "out"]).refused(7, "illegal file path");
    assert!(world.files("outside").is_empty());
}

#[test]
fn a_removed_artifact_takes_its_blobs_with_it_and_leaves_those_of_others() {
    let world = World::new();
    world.kit(&["pack", "model", "-t", "tiny:a,b"]).well();
    world.kit(&["pack", "model", "--use-model-pack", "-t", "other"]).well();
    let blobs = || fs::read_dir(world.path("kitops/storage/blobs/sha256")).unwrap().count();
    assert_eq!(blobs(), 6 + 2 + 2);
    let untagged = world.kit(&["remove", "tiny:a"]).well();
    assert!(untagged.starts_with("Removed tiny:a (digest sha256:"), "{untagged}");
    assert_eq!(blobs(), 10, "it has another tag");
    world.kit(&["remove", "tiny:b"]).well();
    assert_eq!(blobs(), 8, "the layers belong to the other one too");
    world.kit(&["remove", "-a", "-f"]).well();
    assert_eq!(blobs(), 0);
    world.kit(&["remove", "tiny:b"]).refused(3, "not in the local storage");
}
