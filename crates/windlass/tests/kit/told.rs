//! One object for programs, whatever the command.

use serde_json::{Value, json};

use crate::{
    hub::{COMMIT, Hub},
    world::{Said, World},
};

#[track_caller]
fn object(said: Said) -> Value {
    let text = said.well();
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_command_has_an_object_for_programs() {
    let world = World::new();
    world.kit(&["pack", "model", "-t", "tiny"]).well();
    let version = object(world.kit(&["version", "--json"]));
    assert_eq!(version, json!({"version": env!("CARGO_PKG_VERSION")}));
    world.write("kitops/cache/pack/old", b"12345");
    let info = object(world.kit(&["cache", "info", "--json"]));
    assert_eq!(info, json!({"layers": 5, "imports": 0, "pushes": 0, "pulls": 0}));
    assert_eq!(object(world.kit(&["cache", "clear", "--json"])), json!({"bytes": 5}));
    let checked = object(world.kit(&["store", "fsck", "--json"]));
    assert_eq!(checked, json!({"blobs": 8, "damaged": [], "missing": []}));
    let model = "fad64cc0c57283d16fb7efcda3cff63ea824e90137d2c8d8dbc90b97228950cf";
    std::fs::remove_file(world.path(&format!("kitops/storage/blobs/sha256/{model}"))).unwrap();
    let said = world.kit(&["store", "fsck", "--json"]);
    said.refused(5, "damaged or missing");
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(told["missing"], json!([format!("sha256:{model}")]));
}

/// The proxy of this test knows no other host than the hub itself.
#[tokio::test(flavor = "multi_thread")]
async fn an_import_goes_through_the_proxy_and_tells_what_it_would_do() {
    let world = World::new();
    let hub = Hub::start(vec![("model.gguf", b"weights".to_vec())]).await;
    let import = ["import", "org/tiny", "--endpoint", "http://hub.invalid", "--proxy"];
    let import = [&import[..], &[&hub.address]].concat();
    let told = object(world.kit(&[&import[..], &["--dry-run", "--json"]].concat()));
    assert_eq!(told["files"], json!([{"path": "model.gguf", "size": 7}]));
    assert_eq!(
        (&told["bytes"], &told["kitfile"]["model"]["path"]),
        (&json!(7), &json!("model.gguf"))
    );
    world.kit(&import).well();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_an_address_comes_through_the_proxy_too() {
    let world = World::new();
    let hub = Hub::start(vec![("model.gguf", b"weights".to_vec())]).await;
    let address = format!("http://files.invalid/org/tiny/resolve/{COMMIT}/model.gguf");
    let import = ["import", "--tool", "http", &address, "-t", "tiny"];
    let without = world.kit(&[&import[..], &["--retries", "0"]].concat());
    assert_ne!(without.code, Some(0), "{without:?}");
    world.kit(&[&import[..], &["--proxy", &hub.address]].concat()).well();
}
