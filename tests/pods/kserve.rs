//! InferenceServices of KServe that a runtime of the whole cluster serves.

use rustix::process::geteuid;
use serde_json::{Value, json};
use windlass_tests::{http, needs, until};

use crate::{
    gateway::rolled_out,
    objects,
    rules::RULES,
    traffic::{Client, Target, ask_many},
    up::World,
};

const REPLICAS: u64 = 2;

fn runtime(version: &str) -> Value {
    json!({
        "apiVersion": "serving.kserve.io/v1alpha1", "kind": "ClusterServingRuntime",
        "metadata": {"name": "stand-in"},
        "spec": {
            "supportedModelFormats": [{"name": "petals", "version": "1"}],
            "containers": [{
                "name": "kserve-container", "image": "local/server:1",
                "args": ["--port", "8080", "--version", version, "--served-model-name", "{{.Name}}"],
                "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "readinessProbe":
                    {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1},
            }],
        },
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
        "metadata": {"name": "flowers"},
        "spec": {"predictor": {
            "minReplicas": REPLICAS,
            "model": {"modelFormat": {"name": "petals"}, "runtime": "stand-in"},
        }},
    })
}

fn route() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": "flowers"},
        "spec": {
            "parentRefs": [{"name": "any"}], "hostnames": ["flowers.example"],
            "rules": [{"backendRefs": [{"name": "flowers-predictor", "port": 80}]}],
        },
    })
}

/// Waits until the service says so of itself.
async fn until_told(client: &kube::Client, is_wanted: impl Fn(&Value) -> bool) {
    until("what the service says of itself", || async {
        let found = objects::get(client, &service()).await.ok_or("gone")?;
        if is_wanted(&found["status"]) { Ok(()) } else { Err(format!("{:#}", found["status"])) }
    })
    .await;
}

/// At the address of the Service itself, whose port not everybody may listen on.
async fn check_address(client: &kube::Client, version: &str) {
    if !geteuid().is_root() {
        return needs::note("needs root: others may not listen on port 80");
    }
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "flowers-predictor"}});
    let service = objects::get(client, &service).await.unwrap();
    let address = format!("{}:80", service["spec"]["clusterIP"].as_str().unwrap());
    until("an answer at the address of the Service", || async {
        let answer: Value = serde_json::from_str(&http::get(&address, "/")?).unwrap();
        let is_meant = answer["version"] == version && answer["model"] == "flowers";
        if is_meant { Ok(()) } else { Err(answer.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn a_service_comes_up_by_a_runtime_of_the_cluster_and_follows_its_changes() {
    const REQUESTS: u64 = 40;
    let world = World::of_root(RULES);
    let up = world.up::<&str>(&[]);
    let client = up.client().await;
    for object in [service(), route()] {
        objects::apply(&client, &object).await;
    }
    let missing = |status: &Value| {
        status["modelStatus"]["lastFailureInfo"]["reason"] == "RuntimeNotRecognized"
    };
    until_told(&client, missing).await;

    let host = "flowers.example".to_owned();
    let target = Target { gateway: up.gateway(), host, base: "", model: "" };
    for version in ["v1", "v2"] {
        objects::apply(&client, &runtime(version)).await;
        rolled_out(&client, "flowers-predictor", REPLICAS, version).await;
        until_told(&client, |status| {
            let conditions = status["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            status["clusterServingRuntimeName"] == "stand-in"
                && conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
        })
        .await;
        until("an answer", || async {
            let answer = Client::new(&target).get("/").await?;
            if answer.says("version") == version { Ok(()) } else { Err(format!("{answer:?}")) }
        })
        .await;
        let seen = ask_many(&target, REQUESTS, 4, "version").await;
        assert_eq!(seen, [(version.to_owned(), REQUESTS)].into());
        let pods = ask_many(&target, REQUESTS, 4, "pod").await;
        assert_eq!(pods.len() as u64, REPLICAS, "{pods:?}");
        check_address(&client, version).await;
    }
    up.terminate();
}
