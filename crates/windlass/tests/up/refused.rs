use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{DirBuilderExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use redb::{Database, TableDefinition};

use crate::running::{Said, World};

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const KEPT: &str = "nothing in it was changed: use the program that wrote it, move it away, or choose \
                    another --dir";

fn refused(world: &World, dir: &Path) -> Said {
    let said = world.run(&["up".as_ref(), "--dir".as_ref(), dir.as_os_str()]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{}", said.err);
    assert!(!said.err.contains("panicked"), "{}", said.err);
    said
}

fn private(world: &World) -> PathBuf {
    let dir = world.path("state");
    fs::DirBuilder::new().mode(0o700).create(&dir).unwrap();
    dir
}

/// The directory of one that has ended.
fn used(world: &World) -> PathBuf {
    world.up::<&str>(&[]).terminate();
    world.usual_dir()
}

#[test]
fn a_directory_that_is_not_ours_alone() {
    let world = World::new();
    let dir = private(&world);
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o750)).unwrap();
    let want = format!(
        "error: cannot keep the state: {} can be read by others: make it yours alone with chmod 700\n",
        dir.display()
    );
    assert_eq!(refused(&world, &dir).err, want);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);

    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    let link = world.path("link");
    symlink(&dir, &link).unwrap();
    for end in ["", "/", "//", "/.", "/./"] {
        let said = refused(&world, &world.path(&format!("link{end}"))).err;
        assert!(said.contains("is a symbolic link"), "{end}: {said}");
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn a_directory_that_cannot_be_made() {
    let world = World::new();
    let file = world.path("file");
    fs::write(&file, "a").unwrap();
    let said = refused(&world, &file).err;
    assert!(said.ends_with("is not a directory\n"), "{said}");
    let beneath = file.join("state");
    let said = refused(&world, &beneath).err;
    assert!(said.contains(&format!("cannot write {}", beneath.display())), "{said}");
}

#[test]
fn a_port_that_another_has() {
    let world = World::new();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    let said = world.run(&["up", "--ephemeral", "--port", &port]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    let want = format!("error: cannot listen on 127.0.0.1:{port} (--port): ");
    assert!(said.err.starts_with(&want), "{}", said.err);
    assert_eq!(fs::read_dir(world.path("tmp")).unwrap().count(), 0);
}

#[test]
fn a_store_that_is_none_is_left_as_it_is() {
    let world = World::new();
    let dir = private(&world);
    let store = dir.join("store.redb");
    for bytes in [&b"not a store at all"[..], &[0; 4096], &[0xff; 70_000]] {
        fs::write(&store, bytes).unwrap();
        let said = refused(&world, &dir).err;
        let want = format!("error: cannot open the store {}: ", store.display());
        assert!(said.starts_with(&want), "{said}");
        assert!(said.ends_with(&format!("; {KEPT}\n")), "{said}");
        assert_eq!(fs::read(&store).unwrap(), bytes);
        assert!(!dir.join("kubeconfig").exists());
    }
}

#[test]
fn a_store_that_lost_a_part_is_left_as_it_is_too() {
    let world = World::new();
    let dir = used(&world);
    let store = dir.join("store.redb");
    let whole = fs::read(&store).unwrap();
    let cut = |at: usize| whole[..at].to_vec();
    let zeroed = |from: usize, to: usize| {
        let mut bytes = whole.clone();
        bytes[from..to].fill(0);
        bytes
    };
    let (half, end) = (whole.len() / 2, whole.len());
    let broken =
        [cut(100), cut(5000), cut(half), zeroed(0, 64), zeroed(64, 320), zeroed(4096, end)];
    for (at, bytes) in broken.into_iter().enumerate() {
        fs::write(&store, &bytes).unwrap();
        let said = refused(&world, &dir).err;
        assert!(said.starts_with("error: cannot "), "{at}: {said}");
        assert!(said.ends_with(&format!("; {KEPT}\n")), "{at}: {said}");
        assert!(fs::read(&store).unwrap() == bytes, "{at}: it was written to");
    }
    fs::write(&store, &whole).unwrap();
    world.up::<&str>(&[]).terminate();
}

fn set_format(store: &Path, format: u64) {
    let database = Database::open(store).unwrap();
    let write = database.begin_write().unwrap();
    write.open_table(META).unwrap().insert("format", format).unwrap();
    write.commit().unwrap();
}

#[tokio::test]
async fn a_store_of_a_newer_program_loses_nothing() {
    let world = World::new();
    let dir = used(&world);
    let store = dir.join("store.redb");
    set_format(&store, 2);
    let want = format!("error: the store has format 2, this program reads 1; {KEPT}\n");
    assert_eq!(refused(&world, &dir).err, want);

    set_format(&store, 1);
    let up = world.up::<&str>(&[]);
    let namespaces: Api<Namespace> = Api::all(up.client().await);
    namespaces.get("windlass-system").await.unwrap();
}

#[test]
fn a_store_that_another_program_has_open() {
    let world = World::new();
    let dir = private(&world);
    let store = dir.join("store.redb");
    let _held = Database::create(&store).unwrap();
    let want = format!("error: another process uses the store {}\n", store.display());
    assert_eq!(refused(&world, &dir).err, want);
}
