//! Objects that are none of the operator's business.

use anyhow::Result;
use kube::Client;
use serde_json::{Value, json};

use super::objects::Objects;

const NAMESPACE: &str = "foreign";

/// Creates so many Secrets, ConfigMaps and Pods each, small and without labels.
pub(super) async fn create(client: &Client, count: u32) -> Result<()> {
    let place = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        // Without a controller manager nobody else makes it, and pods are refused without it.
        object("ServiceAccount", "default"),
    ];
    let objects = Objects::learn(client, place.iter().chain(&all(1))).await?;
    for object in &place {
        objects.create_all(std::slice::from_ref(object)).await?;
    }
    objects.create_all(&all(count)).await?;
    Ok(())
}

fn all(count: u32) -> Vec<Value> {
    let of = |number: u32| {
        let name = format!("foreign-{number}");
        let mut secret = object("Secret", &name);
        secret["stringData"] = json!({"key": "value"});
        let mut config = object("ConfigMap", &name);
        config["data"] = json!({"key": "value"});
        let mut pod = object("Pod", &name);
        pod["spec"] = json!({
            "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": "none"}],
        });
        [secret, config, pod]
    };
    (1..=count).flat_map(of).collect()
}

fn object(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE},
    })
}
