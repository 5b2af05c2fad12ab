//! What it does not do, and by which exit code that is known.

use std::{collections::BTreeSet, fs, io::Write, path::Path, process::Stdio, time::Instant};

use http::Method;
use serde_json::json;
use windlass_kit::Digest;

use crate::{front::Front, hub::Hub, server::Server, web::Web, world::World};

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

#[tokio::test(flavor = "multi_thread")]
async fn k21_who_is_busy_is_waited_for_and_who_stays_so_is_given_up() {
    let world = World::new();
    let front = Front::start(&world.path("registry")).await;
    let name = format!("{}/org/tiny:v1", front.address);
    let push = ["push", "--plain-http", &name];
    world.kit(&["pack", "model", "-t", &name]).well();
    let busy = |answers: Vec<_>| front.seen.lock().unwrap().busy = answers;
    let left = || front.seen.lock().unwrap().busy.len();
    // Endlessly, as far as anybody would try.
    busy(vec![(Method::HEAD, 503, Some("0")); 60]);
    world.kit(&push).refused(6, "tried 6 times");
    assert_eq!(left(), 54);
    // Twice a second, because the registry says so.
    busy(vec![(Method::HEAD, 429, Some("1")); 2]);
    let start = Instant::now();
    world.kit(&push).well();
    let took = start.elapsed();
    assert!(left() == 0 && (2..10).contains(&took.as_secs()), "{took:?}");
    // The body of a blob is sent again.
    let other = format!("{}/org/other:v1", front.address);
    world.write("model/model.safetensors", b"other weights");
    busy(vec![(Method::PUT, 500, None); 2]);
    world.kit(&["pack", "model", "--use-model-pack", "-t", &other]).well();
    world.kit(&["push", "--plain-http", &other]).well();
    assert_eq!(left(), 0);
    world.kit(&["unpack", "--plain-http", "--config=else", &other, "-d", "out"]).well();
    assert_eq!(world.files("out"), world.files("model"));
}

#[tokio::test(flavor = "multi_thread")]
async fn k21_one_blob_alone_is_sent_until_it_is_taken_or_given_up() {
    let world = World::new();
    let front = Front::start(&world.path("registry")).await;
    let name = format!("{}/org/tiny:v1", front.address);
    world.kit(&["pack", "model", "-t", &name]).well();
    let push = ["push", "--plain-http", "--concurrency=1", &name];
    let refused = |answers: Vec<_>, code: Option<i32>| {
        let count = answers.len();
        front.seen.lock().unwrap().busy = answers;
        let said = world.kit(&push);
        assert_eq!(said.code, code, "{said:?}");
        let mut seen = front.seen.lock().unwrap();
        let asked = std::mem::take(&mut seen.refused);
        assert_eq!(asked.len(), count - std::mem::take(&mut seen.busy).len());
        let digests: BTreeSet<_> =
            asked.iter().map(|asked| asked.split("digest=").nth(1).unwrap()).collect();
        assert_eq!(digests.len(), 1, "all were of one blob: {asked:?}");
        (said, asked.len())
    };
    let (said, count) = refused(vec![(Method::PUT, 500, Some("0")); 60], Some(6));
    said.refused(6, "tried 6 times");
    assert_eq!(count, 6);
    let (said, count) = refused(vec![(Method::PUT, 500, None); 2], Some(0));
    assert!(said.well().ends_with(&format!("Pushed {}\n", crate::world::MODEL_KIT)));
    assert_eq!(count, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn k20_who_is_forbidden_is_told_by_whom_and_as_whom() {
    let world = World::new();
    let front = Front::start(&world.path("registry")).await;
    let name = format!("{}/org/tiny:v1", front.address);
    world.kit(&["pack", "model", "-t", &name]).well();
    let jobs: [&[&str]; 4] = [
        &["push", "--plain-http", &name],
        &["pull", "--plain-http", &name],
        &["unpack", "--plain-http", "--config=else", "-d", "out", &name],
        &["pack", "model", "--push", "--plain-http", "-t", &name],
    ];
    let assert_forbidden = |whose: &str| {
        for job in jobs {
            let forbidden = |method: Method| vec![(method, 403, None); 5];
            let answers = [forbidden(Method::HEAD), forbidden(Method::GET)].concat();
            front.seen.lock().unwrap().busy = answers;
            let said = world.kit(job);
            for text in [&*front.address, "org/tiny", "403", whose] {
                said.refused(4, text);
            }
            assert_eq!(front.seen.lock().unwrap().busy.len(), 9, "once is enough: {job:?}");
        }
    };
    assert_forbidden(&format!("there are no credentials for {}", front.address));
    let auths = json!({&*front.address: {"username": "u", "password": "hidden-password"}});
    let kept = json!({"auths": auths}).to_string();
    for home in ["kitops", "else"] {
        world.write(&format!("{home}/credentials.json"), kept.as_bytes());
    }
    assert_forbidden("credentials.json");
}

#[test]
fn k18_what_is_there_is_kept_or_replaced_as_told() {
    let world = World::new();
    world.kit(&["pack", "model", "-t", "tiny"]).well();
    let unpack = |flags: &[&str]| world.kit(&[&["unpack", "tiny", "-d", "out"], flags].concat());
    let model = || fs::read_to_string(world.path("out/model.safetensors")).unwrap();
    world.write("out/model.safetensors", b"mine");
    let said = unpack(&[]);
    said.refused(
        1,
        "Cannot unpack model model.safetensors: path 'model.safetensors' already exists\n",
    );
    assert_eq!(model(), "mine");
    unpack(&["-i"]).well();
    assert_eq!((model().as_str(), world.files("out").len()), ("mine", 6));
    // The Kitfile is there by now, and says the same.
    unpack(&["--filter=kitfile"]).well();
    unpack(&["-o"]).well();
    assert_eq!(world.files("out"), world.files("model"));
    world.write("out/Kitfile", b"another");
    unpack(&["--filter=kitfile"]).refused(1, "[ERROR] Path 'Kitfile' already exists\n");
    unpack(&["--filter=kitfile", "-i"]).well();
    assert_eq!(fs::read(world.path("out/Kitfile")).unwrap(), b"another");
    unpack(&["--filter=kitfile", "-o"]).well();
    assert!(fs::read_to_string(world.path("out/Kitfile")).unwrap().contains("name: tiny"));
    // What is no file is nobody's to replace.
    fs::remove_file(world.path("out/model.safetensors")).unwrap();
    fs::create_dir(world.path("out/model.safetensors")).unwrap();
    unpack(&["-o"]).refused(1, "path 'model.safetensors' already exists and is no file\n");
}

#[test]
fn k16_more_layers_than_a_manifest_holds_are_refused_before_one_is_looked_at() {
    let world = World::new();
    let entries: String = (0..50_000).map(|number| format!("  - path: file-{number}\n")).collect();
    world.write("many/Kitfile", format!("code:\n{entries}").as_bytes());
    for flags in [&[][..], &["--use-model-pack", "--push"]] {
        let said = world.kit(&[&["pack", "many", "-t", "localhost:1/org/many:v1"], flags].concat());
        said.refused(1, "registries take 4194304: let the Kitfile name directories");
    }
    assert!(!world.path("kitops/storage/blobs").exists());
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

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_printed_however_much_is_told() {
    let world = World::new();
    let server = Server::start(&world.path("registry"), &["--user", "u"], "secret\n");
    let name = format!("{}/org/tiny:v1", server.address);
    world.kit(&["pack", "model", "-t", &name]).well();
    // `u:wrong-password`
    let auth = "dTp3cm9uZy1wYXNzd29yZA==";
    let kept = format!(r#"{{"auths": {{"{}": {{"auth": "{auth}"}}}}}}"#, server.address);
    world.write("kitops/credentials.json", kept.as_bytes());
    let hub = Hub::start(Vec::new()).await;
    hub.known.lock().unwrap().refuse = Some((403, ""));
    let web = Web::start(Vec::new()).await;
    web.known.lock().unwrap().refuse = Some(403);
    let address = |file: &str| web.address.replace("//", "//u:wrong-password@") + file;
    let (file, repository) = (address("/m.gguf?key=wrong-password"), address("/m.git"));
    let token = "--token=wrong-password";
    let jobs: [&[&str]; 7] = [
        &["push", "--plain-http", &name],
        &["pull", "--plain-http", &name],
        &["pack", "model", "--push", "--plain-http", "-t", &name],
        &["login", &server.address, "--plain-http", "-u", "u", "-p", "wrong-password"],
        &["import", "org/tiny", "--endpoint", &hub.address, token],
        &["import", &file, token],
        &["import", &repository, token],
    ];
    for level in ["-v", "-vv", "-vvv"] {
        for job in jobs {
            let said = world.kit(&[job, &[level]].concat());
            let text = format!("{said:?}");
            assert_eq!(said.code, Some(4), "{text}");
            assert!(!text.contains("wrong-password") && !text.contains("dTp3cm9"), "{text}");
        }
    }
    assert!(!web.known.lock().unwrap().asked.is_empty());
}

#[test]
fn k11_what_a_digest_names_is_compared_with_it_before_anything_is_written() {
    let world = World::new();
    let root = world.path("registry");
    let server = Server::start(&root, &[], "");
    let name = format!("{}/org/tiny:v1", server.address);
    world.kit(&["pack", "model", "--push", "--plain-http", "-t", &name]).well();
    let change = |digest: &str, change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let path = blob(&root, digest);
        let before = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, change(before.clone())).unwrap();
        move || fs::write(&path, &before).unwrap()
    };
    let by_digest = format!("{}/org/tiny@{}", server.address, crate::world::MODEL_KIT);
    let unpack = ["unpack", "--plain-http", "-d", "out", &by_digest];
    // The manifest itself.
    let undo = change(crate::world::MODEL_KIT, &|bytes| {
        String::from_utf8(bytes).unwrap().replace("windlass", "Windlass").into_bytes()
    });
    world.kit(&unpack).refused(5, crate::world::MODEL_KIT);
    undo();
    // A layer that is shorter than the manifest says.
    let model = "sha256:fad64cc0c57283d16fb7efcda3cff63ea824e90137d2c8d8dbc90b97228950cf";
    let undo = change(model, &|bytes| bytes[..1024].to_vec());
    let said = world.kit(&[&unpack[..], &["--retries", "1"]].concat());
    assert!(matches!(said.code, Some(5 | 6)), "{said:?}");
    undo();
    assert!(!world.path("out/model.safetensors").exists());
    world.kit(&[&unpack[..], &["-o"]].concat()).well();
}
