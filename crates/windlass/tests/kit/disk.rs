//! What is not written to the disk.

use std::{fs, os::unix::fs::MetadataExt, process::Command};

use crate::{
    front::Front,
    hub::{COMMIT, Hub},
    server::Server,
    world::{World, said},
};

pub(crate) const SIZE: usize = 4 << 20;

/// Started by somebody else, who has it with its arguments after his own.
pub(crate) fn through(world: &World, launcher: &[&str], arguments: &[&str]) -> Command {
    let plain = world.command(arguments);
    let mut command = Command::new(launcher[0]);
    command.args(&launcher[1..]).arg(plain.get_program()).args(plain.get_args());
    command.current_dir(plain.get_current_dir().unwrap());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// It cannot write a file of more than so many blocks of 512 bytes, or of 1024 where the shell thinks so.
fn limited(world: &World, blocks: u32, arguments: &[&str]) -> Command {
    let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
    through(world, &["sh", "-c", &script], arguments)
}

pub(crate) fn large() -> World {
    let world = World::new();
    world.write("large/model.bin", &vec![7; SIZE]);
    world.write("large/Kitfile", b"model: {path: model.bin}\n");
    world
}

#[test]
fn what_is_packed_for_a_registry_is_not_written_here() {
    let world = large();
    let server = Server::start(&world.path("registry"), &[], "");
    let name = format!("{}/org/large:v1", server.address);
    let pack = ["pack", "large", "--push", "--plain-http", "-t", &name];
    said(limited(&world, 128, &pack)).well();
    let blobs = world.path("kitops/storage/blobs/sha256");
    assert_eq!(fs::read_dir(blobs).unwrap().count(), 0);
    world.kit(&["unpack", "--plain-http", &name, "-d", "out"]).well();
    assert_eq!(world.files("out"), world.files("large"));
    // The limit is one.
    let kept = said(limited(&world, 128, &["pack", "large", "-t", "large"]));
    assert_ne!(kept.code, Some(0), "{kept:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_is_read_once_for_a_new_name_and_not_sent_again_for_an_old_one() {
    let world = large();
    let front = Front::start(&world.path("registry")).await;
    let name = format!("{}/org/large:v1", front.address);
    let pack = ["pack", "large", "--push", "--plain-http", "-t", &name];
    let first = world.kit(&pack).last_digest();
    let taken = front.seen.lock().unwrap().taken;
    assert!(taken > SIZE as u64, "{taken}");
    // Somebody who knows nothing of it has another file of the same bytes.
    fs::remove_dir_all(world.path("kitops")).unwrap();
    fs::copy(world.path("large/model.bin"), world.path("large/new")).unwrap();
    fs::rename(world.path("large/new"), world.path("large/model.bin")).unwrap();
    assert_eq!(world.kit(&pack).last_digest(), first);
    assert_eq!(front.seen.lock().unwrap().taken, taken, "no byte of a blob");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_the_hub_is_on_the_disk_once_where_it_is_a_layer() {
    let world = World::new();
    let hub = Hub::start(vec![("model.gguf", vec![7; SIZE])]).await;
    let import = ["import", "org/large", "--endpoint", &hub.address, "--layer-format", "raw"];
    let imported = world.kit(&import).well();
    let digest = windlass_kit::Digest::of(&vec![7; SIZE]);
    assert!(imported.contains(&format!("Saved model layer: {digest}")), "{imported}");
    let blob = world.path("kitops/storage/blobs/sha256").join(digest.hex());
    assert_eq!(fs::metadata(&blob).unwrap().nlink(), 1, "the other name is gone");
    assert!(!world.path(&format!("kitops/windlass/import/org/large@{COMMIT}")).exists());
    world.kit(&["store", "fsck"]).well();
    world.kit(&["unpack", "org/large", "-d", "out"]).well();
    assert_eq!(fs::metadata(&blob).unwrap().nlink(), 1, "whoever unpacks it may change it");
}
