//! A later run that wants something else than the one before it.

use std::fs;

use crate::{
    hub::{COMMIT, Hub},
    world::World,
};

#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_import_has_got_is_not_packed_if_nobody_wants_it_any_more() {
    let world = World::new();
    let files = [("model.gguf", "weights"), ("sub/secret.py", "other"), ("run.sh", "go")];
    let files = files.map(|(name, text)| (name, text.as_bytes().to_vec()));
    let hub = Hub::start(files.to_vec()).await;
    // As a run leaves it that was killed before it could pack.
    let left = format!("kitops/windlass/import/org/tiny@{COMMIT}");
    world.write(&format!("{left}/files/model.gguf"), b"weights");
    world.write(&format!("{left}/files/sub/secret.py"), b"other");
    let import = ["import", "org/tiny", "--endpoint", &hub.address, "--exclude", "secret.py"];
    world.kit(&import).well();
    assert!(!fs::exists(world.path(&left)).unwrap());
    world.kit(&["unpack", "org/tiny", "-d", "out"]).well();
    assert_eq!(world.files("out").into_keys().collect::<Vec<_>>(), ["model.gguf", "run.sh"]);
    assert!(!world.path("out/sub").exists(), "not even the folder");
}
