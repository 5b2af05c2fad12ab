//! Models of a hub.

use crate::{
    hub::{COMMIT, Hub},
    server::Server,
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
