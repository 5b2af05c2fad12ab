//! From a hub to a server: a model is imported, packed and pushed to the registry of `windlass up` by
//! the Job of an artifact, and unpacked before its server starts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use kube::Client;
use serde_json::{Value, json};
use windlass_tests::until;

use crate::{
    hub::Hub,
    objects,
    up::{Up, World},
};

/// Only for the servers: what packs and unpacks needs none.
const RULES: &str = r#"
[[image]]
match = "*"
command = ["vllm", "serve"]
argv = ["{bin}/stand-in", "server", "--host", "{podIP}"]

[[image]]
match = "ghcr.io/llm-d/llm-d-inference-scheduler:*"
argv = ["{bin}/stand-in", "picker", "--host", "{podIP}"]
"#;

fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("model.safetensors", b"weights".to_vec()),
        ("config.json", b"{}".to_vec()),
        ("README.md", b"# Readme".to_vec()),
    ]
}

/// A world in which the hub is the one of the test.
fn up(world: &World, hub: &Hub, more: &[&str]) -> Up {
    let flags = [&["--gateway-port=0", "--registry-port=0"], more].concat();
    world.up_with(&[("HF_ENDPOINT", &hub.address)], &flags)
}

fn artifact(registry: &str, format: &str) -> Value {
    let target = json!({
        "registry": registry, "repository": "org/tiny", "tag": format.to_lowercase(),
        "insecure": true,
    });
    json!({
        "apiVersion": "model.otterscale.io/v1alpha1",
        "kind": "ModelArtifact",
        "metadata": { "name": format.to_lowercase() },
        "spec": {
            "source": { "huggingFace": { "model": "Org/Tiny" } },
            "target": target,
            "format": format,
            "storage": { "size": "1Gi" },
        },
    })
}

fn service(image: &str) -> Value {
    json!({
        "apiVersion": "model.otterscale.io/v1alpha1",
        "kind": "ModelService",
        "metadata": { "name": "tiny" },
        "spec": {
            "model": { "name": "org/tiny", "image": image, "insecure": true },
            "engine": { "image": "vllm-cpu:v0.8.0" },
            "accelerator": { "type": "cpu" },
            "decode": { "replicas": 1 },
        },
    })
}

async fn ready(client: &Client, object: &Value) -> Value {
    until("it to be ready", || async {
        let found = objects::get(client, object).await.ok_or("gone")?;
        objects::is_ready(&found).map(|()| found)
    })
    .await
}

/// All files of this name below a folder.
fn named(folder: &Path, name: &str) -> Vec<PathBuf> {
    let children = fs::read_dir(folder).into_iter().flatten().flatten();
    let found = children.flat_map(|child| {
        let path = child.path();
        match child.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => named(&path, name),
            false => vec![path],
        }
    });
    found.filter(|path| path.file_name().is_some_and(|found| found == name)).collect()
}

/// What the server of the service has before it.
fn unpacked(world: &World) -> Vec<String> {
    let found = named(&world.state().join("pods"), "model.safetensors");
    found.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

async fn from_hub_to_server(kit: &[&str]) {
    let world = World::new(RULES);
    let hub = Hub::start(files()).await;
    let up = up(&world, &hub, kit);
    let client = up.client().await;
    for format in ["ModelPack", "ModelKit"] {
        let artifact = artifact(&up.registry(), format);
        objects::apply(&client, &artifact).await;
        let found = ready(&client, &artifact).await;
        let status = &found["status"];
        assert_eq!(status["phase"], "Succeeded", "{status:#}");
        let digest = status["digest"].as_str().unwrap();
        assert!(digest.starts_with("sha256:") && digest.len() == 71, "{status:#}");
        let service = service(&format!("{}/org/tiny@{digest}", up.registry()));
        objects::apply(&client, &service).await;
        ready(&client, &service).await;
        assert_eq!(unpacked(&world), ["weights"], "{format}");
        objects::delete(&client, &service).await;
        until("its pods to go", || async {
            let left = unpacked(&world);
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
    }
    let asked = std::mem::take(&mut hub.known.lock().unwrap().asked);
    assert!(asked.iter().any(|(path, ..)| path.ends_with("/model.safetensors")), "{asked:?}");
    up.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_goes_from_a_hub_to_its_server_by_the_usual_image() {
    from_hub_to_server(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_goes_from_a_hub_to_its_server_by_our_own_image() {
    from_hub_to_server(&["--kit-image=ghcr.io/windlass/windlass:0.1.0"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_hub_refuses_is_the_cause_that_the_artifact_tells() {
    let world = World::new(RULES);
    let hub = Hub::start(files()).await;
    hub.known.lock().unwrap().refuse = Some((403, "GatedRepo"));
    let up = up(&world, &hub, &["--kit-image=ghcr.io/windlass/windlass:0.1.0"]);
    let client = up.client().await;
    let artifact = artifact(&up.registry(), "ModelPack");
    objects::apply(&client, &artifact).await;
    until("it to fail", || async {
        let found = objects::get(&client, &artifact).await.ok_or("gone")?;
        let status = found["status"].to_string();
        let told = status.contains("\"Failed\"") && status.contains("must be requested");
        if told { Ok(()) } else { Err(status) }
    })
    .await;
    up.terminate();
}
