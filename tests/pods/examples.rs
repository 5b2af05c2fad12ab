use std::{fs, path::PathBuf};

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt, api::ListParams};
use serde_json::{Value, json};
use windlass_tests::{http, until};

use crate::{machine, objects, rules::RULES, up::World};

/// What the examples say that somebody brings.
fn given() -> Vec<Value> {
    let secret = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
    let registry = |name: &str| {
        let mut secret = secret(name, json!({".dockerconfigjson": "{\"auths\":{}}"}));
        secret["type"] = json!("kubernetes.io/dockerconfigjson");
        secret
    };
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner"}}),
        secret("hf-token", json!({"token": "hf_x"})),
        secret("llama-keys", json!({"apiKey": "secret"})),
        registry("oci-creds"),
        registry("registry-credentials"),
    ]
}

/// All files of the folder. A cache is where this world may write.
fn examples(world: &World) -> Vec<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let models = world.path("models");
    let text = |file| fs::read_to_string(file).unwrap();
    let text = |file| text(file).replace("/var/lib/zerfoo/models", models.to_str().unwrap());
    files.into_iter().flat_map(|file| objects::documents(&text(file))).collect()
}

fn flags(world: &World) -> [String; 4] {
    [
        "--node-resource=nvidia.com/gpu=32".to_owned(),
        "--node-resource=amd.com/gpu=8".to_owned(),
        "--node-label=nvidia.com/gpu.memory=24576".to_owned(),
        format!("--host-path-prefixes={}", world.path("models").display()),
    ]
}

async fn pods(client: &Client) -> Vec<Pod> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.list(&ListParams::default()).await.unwrap().items
}

fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Succeeded")
}

fn is_pod_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Each server says who it is, at the address of its own pod.
fn check_answers(pods: &[Pod]) -> usize {
    let mut asked = 0;
    for pod in pods.iter().filter(|pod| is_pod_ready(pod)) {
        let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap();
        let containers = &pod.spec.as_ref().unwrap().containers;
        let mut ports = containers.iter().flat_map(|container| container.ports.iter().flatten());
        let Some(port) = ports.find(|port| port.name.as_deref() == Some("http")) else { continue };
        let answer = http::get(&format!("{address}:{}", port.container_port), "/").unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["pod"], *pod.name_any(), "{answer}");
        assert_ne!(answer["model"], "", "{answer}");
        asked += 1;
    }
    asked
}

#[tokio::test]
async fn every_example_comes_up_and_its_deletion_leaves_nothing() {
    let world = World::new(RULES);
    let up = world.up(&flags(&world));
    let client = up.client().await;
    for object in given() {
        objects::apply(&client, &object).await;
    }
    let before = (objects::all(&client).await, machine::listeners([up.id()]));

    let examples = examples(&world);
    assert!(examples.len() >= 13, "{}", examples.len());
    for object in &examples {
        objects::apply(&client, object).await;
    }
    for object in &examples {
        until("every object of an example to be ready", || async {
            objects::is_ready(&objects::get(&client, object).await.ok_or("gone")?)
        })
        .await;
    }
    let pods = until("every pod to be ready or finished", || async {
        let pods = pods(&client).await;
        let waiting = pods.iter().find(|pod| !is_pod_ready(pod) && !is_finished(pod));
        waiting.map_or(Ok(pods.clone()), |pod| Err(format!("{:#?}", pod.status)))
    })
    .await;
    let running = pods.iter().filter(|pod| is_pod_ready(pod)).count();
    let processes = machine::by_pod(&machine::processes(&world.path("")));
    assert_eq!(processes.len(), running, "{processes:?}");
    let asked = check_answers(&pods);
    eprintln!("{running} pods run, {asked} of them answer requests");
    assert!(asked >= 18, "{asked}");

    for object in &examples {
        objects::delete(&client, object).await;
    }
    until("nothing to be left", || async {
        let processes = machine::processes(&world.path(""));
        let files = machine::files_of_pods(&world.path(""));
        let after = (objects::all(&client).await, machine::listeners([up.id()]));
        match processes.is_empty() && files.is_empty() && after == before {
            true => Ok(()),
            false => {
                let more = (&after.0 - &before.0, &after.1 - &before.1);
                Err(format!("{processes:?} {files:?} {more:?}"))
            }
        }
    })
    .await;
    up.terminate();
}
