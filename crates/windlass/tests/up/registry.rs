use std::{
    fs::{self, File},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use crate::{
    note,
    running::{Up, World},
    wait,
};

impl Up {
    fn registry(&self) -> SocketAddr {
        let said =
            self.said.iter().find_map(|line| line.strip_prefix("the registry is at http://"));
        let address = said.and_then(|said| said.split(',').next()?.parse().ok());
        address.unwrap_or_else(|| panic!("no registry: {:?}", self.said))
    }
}

/// The folder of a model, the same each time.
fn model(world: &World) -> PathBuf {
    let folder = world.path("model");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("Kitfile"), "model: {path: model.bin}\n").unwrap();
    fs::write(folder.join("model.bin"), "weights").unwrap();
    folder
}

#[track_caller]
fn kit(world: &World, arguments: &[&str]) -> String {
    let said = world.run(&[&["kit"], arguments].concat());
    assert_eq!(said.code, Some(0), "{} {}", said.out, said.err);
    said.out
}

fn push(world: &World, address: SocketAddr, name: &str) {
    let folder = model(world);
    let name = format!("{address}/{name}");
    kit(world, &["pack", folder.to_str().unwrap(), "--push", "--plain-http", "-t", &name]);
}

/// What somebody gets who has never seen it.
fn fetch(world: &World, address: SocketAddr, name: &str) -> String {
    let folder = world.path("out");
    let name = format!("{address}/{name}");
    kit(world, &["unpack", &name, "--plain-http", "-o", "-d", folder.to_str().unwrap()]);
    fs::read_to_string(folder.join("model.bin")).unwrap()
}

/// All blobs that are kept in a folder.
fn blobs(root: &Path) -> Vec<PathBuf> {
    let children = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|child| child.unwrap().path()).collect()
    };
    let mut found: Vec<_> =
        children(&root.join("blobs/sha256")).iter().flat_map(|folder| children(folder)).collect();
    found.sort();
    found
}

#[test]
fn what_was_pushed_is_there_after_a_restart_under_the_same_name() {
    let world = World::new();
    let up = world.up(&["--registry-port", "0"]);
    let address = up.registry();
    push(&world, address, "org/tiny:v1");
    up.terminate();

    let up = world.up::<&str>(&[]);
    assert_eq!(up.registry(), address);
    assert_eq!(fetch(&world, address, "org/tiny:v1"), "weights");
    let root = world.usual_dir().join("registry");
    let sweep = ["registry".as_ref(), "gc".as_ref(), "--root".as_ref(), root.as_os_str()];
    let said = world.run(&sweep);
    let busy = format!("error: another process serves or sweeps {}\n", root.display());
    assert_eq!((said.code, said.err), (Some(2), busy));
    up.terminate();

    // Whoever wants none has none, and nothing is lost by it.
    let up = world.up(&["--no-registry"]);
    assert!(!up.said.iter().any(|line| line.contains("registry")), "{:?}", up.said);
    TcpListener::bind(address).unwrap();
    up.terminate();
    let mut up = world.up::<&str>(&[]);
    assert_eq!(fetch(&world, up.registry(), "org/tiny:v1"), "weights");
    assert_eq!(world.run(&["down"]).code, Some(0));
    assert!(up.wait().success());
    TcpListener::bind(address).unwrap();
}

#[test]
fn what_was_pushed_survives_a_kill() {
    let world = World::new();
    let up = world.up(&["--registry-port", "0"]);
    let address = up.registry();
    push(&world, address, "org/tiny:v1");
    up.kill();
    let up = world.up::<&str>(&[]);
    assert_eq!(up.registry(), address);
    assert_eq!(fetch(&world, address, "org/tiny:v1"), "weights");
}

#[test]
fn an_ephemeral_one_keeps_no_artifacts() {
    let world = World::new();
    let up = world.up(&["--ephemeral", "--registry-port", "0"]);
    push(&world, up.registry(), "org/tiny:v1");
    assert_eq!(fetch(&world, up.registry(), "org/tiny:v1"), "weights");
    up.terminate();
    let left: Vec<_> = fs::read_dir(world.path("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!world.usual_dir().exists());
}

#[test]
fn a_port_that_another_has() {
    let world = World::new();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let said = world.run(&["up", "--ephemeral", "--registry-port", &port.to_string()]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    let want = format!("error: cannot listen on 127.0.0.1:{port} (--registry-port): ");
    assert!(said.err.starts_with(&want), "{}", said.err);
    assert_eq!(fs::read_dir(world.path("tmp")).unwrap().count(), 0);

    // One that was there before goes elsewhere for once, and is back the next time.
    drop(other);
    world.up(&["--registry-port", &port.to_string()]).terminate();
    let other = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let up = world.up::<&str>(&[]);
    assert!(up.said[2].ends_with(&format!(", as port {port} is in use")), "{:?}", up.said);
    up.terminate();
    drop(other);
    assert_eq!(world.up::<&str>(&[]).registry().port(), port);
}

#[test]
fn what_nothing_leads_to_is_removed_when_it_is_old() {
    let world = World::new();
    let up = world.up(&["--registry-port", "0"]);
    push(&world, up.registry(), "org/tiny:v1");
    up.terminate();
    let root = world.usual_dir().join("registry");
    let named = blobs(&root);
    let stray = |first: &str| {
        let path = root.join("blobs/sha256").join(first).join(first.repeat(32));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "stray").unwrap();
        path
    };
    let (old, young) = (stray("aa"), stray("bb"));
    let before = SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    for path in named.iter().chain([&old]) {
        File::options().write(true).open(path).unwrap().set_modified(before).unwrap();
    }
    let up = world.up::<&str>(&[]);
    wait::blocking("end of the old one", || if old.exists() { Err("there") } else { Ok(()) });
    assert!(young.exists(), "a push may be under way");
    assert!(named.iter().all(|path| path.exists()), "{named:?}");
    assert_eq!(fetch(&world, up.registry(), "org/tiny:v1"), "weights");
}

#[test]
fn another_client_pushes_and_pulls() {
    let Some(skopeo) = note::program("skopeo") else { return };
    let world = World::new();
    let (one, other) =
        (world.up(&["--ephemeral", "--registry-port=0"]), world.up(&["--registry-port=0"]));
    push(&world, one.registry(), "org/tiny:v1");
    let copy = |from: &str, to: &str| {
        let mut command = Command::new(&skopeo);
        command.args(["--insecure-policy", "copy", "--preserve-digests"]);
        command.args(["--src-tls-verify=false", "--dest-tls-verify=false", from, to]);
        let output = command.env("HOME", world.path("home")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    // By way of the disk, so that nothing is known to be there already.
    let layout = format!("oci:{}:v1", world.path("layout").display());
    copy(&format!("docker://{}/org/tiny:v1", one.registry()), &layout);
    copy(&layout, &format!("docker://{}/another/name:v2", other.registry()));
    assert_eq!(fetch(&world, other.registry(), "another/name:v2"), "weights");
}
