//! From a request to the program of a pod, through the gateway.

use std::{collections::BTreeSet, fs, path::PathBuf, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};
use windlass_tests::until;

use crate::{
    objects,
    rules::RULES,
    traffic::{Client, Load, Sum, Target, ask_many},
    up::World,
};

const CLIENTS: usize = 8;

/// What the template of the example is for.
const MODEL: &str = "acme/tiny-lm-7b-fp8";

fn examples(name: &str) -> Vec<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples");
    objects::documents(&fs::read_to_string(folder.join(name)).unwrap())
}

fn example(name: &str) -> Value {
    examples(name).remove(0)
}

async fn apply_until_ready(client: &kube::Client, object: &Value) {
    objects::apply(client, object).await;
    until("it to be ready", || async {
        let found = objects::get(client, object).await.ok_or("gone")?;
        let current = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        match current {
            true => objects::is_ready(&found),
            false => Err("its change has not been seen".to_owned()),
        }
    })
    .await;
}

/// Nothing is lost, and of each version something was seen.
fn check(what: &str, sum: &Sum, versions: &[&str]) {
    eprintln!(
        "{what}: {} plain and {} streamed answers, {} failures, by version: {:?}",
        sum.plain,
        sum.streamed,
        sum.failures.len(),
        sum.versions
    );
    assert!(sum.failures.is_empty(), "{:#?}", sum.failures);
    for version in versions {
        assert!(sum.versions.contains_key(*version), "{version}: {:?}", sum.versions);
    }
}

#[tokio::test]
async fn a_canary_gets_its_share_of_requests() {
    const REQUESTS: u64 = 2000;
    let world = World::new(RULES);
    let up = world.up::<&str>(&[]);
    let client = up.client().await;
    let mut canary = example("zerfoo-canary.yaml");
    let gateway = up.gateway();
    let target = Target { gateway, host: "llama.example.com".into(), base: "", model: "" };
    // At the first weight the number of pods would lead to the same share, at the second it does not.
    for weight in [20_u32, 50] {
        canary["spec"]["canary"]["weight"] = weight.into();
        apply_until_ready(&client, &canary).await;
        until("the route to have the weight", || async {
            let route = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
                "metadata": {"name": "llama-canary-route"}});
            let route = objects::get(&client, &route).await.ok_or("gone")?;
            let weights = route["spec"]["rules"][0]["backendRefs"].clone();
            let is_there =
                weights.as_array().into_iter().flatten().any(|it| it["weight"] == weight);
            if is_there { Ok(()) } else { Err(weights.to_string()) }
        })
        .await;
        let seen = ask_many(&target, REQUESTS, 16, "model").await;
        eprintln!("{REQUESTS} requests at a weight of {weight}: {seen:?}");
        assert_eq!(seen.values().sum::<u64>(), REQUESTS);
        let share = seen["qwen-3-8b"] as f64 / REQUESTS as f64;
        let wanted = f64::from(weight) / 100.0;
        assert!((share - wanted).abs() <= 0.03, "{share}, not {wanted}");
    }
    up.terminate();
}

/// The names of the pods with this label.
async fn pods_of(client: &kube::Client, label: &str) -> BTreeSet<String> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let listed = pods.list_metadata(&ListParams::default().labels(label)).await.unwrap();
    listed.items.into_iter().filter_map(|pod| pod.metadata.name).collect()
}

#[tokio::test]
async fn an_aim_service_answers_by_its_route_from_the_pods_of_kserve() {
    let world = World::new(RULES);
    let up = world.up(&["--node-resource=amd.com/gpu=8"]);
    let client = up.client().await;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner"}});
    objects::apply(&client, &account).await;
    for object in examples("aim-service.yaml") {
        objects::apply(&client, &object).await;
    }
    let service = examples("aim-service.yaml").pop().unwrap();
    apply_until_ready(&client, &service).await;
    let pods = pods_of(&client, "serving.kserve.io/inferenceservice=chat").await;
    assert_eq!(pods.len(), 2, "{pods:?}");
    assert!(pods.iter().all(|pod| pod.starts_with("chat-predictor-")), "{pods:?}");

    // The path that the template makes of namespace and name, under any host.
    let target = Target {
        gateway: up.gateway(),
        host: "a.example".into(),
        base: "/default/chat",
        model: "",
    };
    until("the first answer", || async { Client::new(&target).get("/v1/models").await }).await;
    let seen = ask_many(&target, 100, 4, "pod").await;
    assert_eq!(seen.keys().cloned().collect::<BTreeSet<_>>(), pods);
    let mut asking = Client::new(&target);
    let models: Value =
        serde_json::from_str(&asking.get("/v1/models").await.unwrap().text).unwrap();
    assert_eq!(models["data"][0]["id"], MODEL, "{models}");
    // The prefix itself stands for the root of the server.
    for root in ["", "/"] {
        let who: Value = serde_json::from_str(&asking.get(root).await.unwrap().text).unwrap();
        assert_eq!(who["model"], MODEL, "{root:?}: {who}");
    }
    for streamed in [false, true] {
        let answer = asking.complete(4, streamed, Duration::ZERO).await.unwrap();
        assert!(pods.contains(answer.says("pod")), "{answer:?}");
    }
    for base in ["", "/default", "/default/chatter", "/other/chat"] {
        let elsewhere = Target { base, ..target.clone() };
        let refused = Client::new(&elsewhere).get("/v1/models").await.unwrap_err();
        assert_eq!(refused, "404 Not Found: no route matches", "{base:?}");
    }
    up.terminate();
}

fn deployment(replicas: u64, version: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "plain"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "plain"}},
            "template": {
                "metadata": {"labels": {"app": "plain"}},
                "spec": {"containers": [{
                    "name": "server", "image": "local/server:1",
                    "args": ["--port", "8080", "--version", version],
                    "readinessProbe":
                        {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1},
                }]},
            },
        },
    })
}

fn behind_a_route() -> [Value; 2] {
    [
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "plain"},
            "spec": {"selector": {"app": "plain"}, "ports": [{"port": 8080}]},
        }),
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": "plain"},
            "spec": {
                "parentRefs": [{"name": "any"}],
                "hostnames": ["plain.example.com"],
                "rules": [{"backendRefs": [{"name": "plain", "port": 8080}]}],
            },
        }),
    ]
}

/// All pods of the Deployment are of this version, as many as wanted, and no other is left.
pub(crate) async fn rolled_out(client: &kube::Client, name: &str, replicas: u64, version: &str) {
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}});
    until("the rollout", || async {
        let found = objects::get(client, &deployment).await.ok_or("gone")?;
        let (spec, status) = (&found["spec"], &found["status"]);
        let args = spec["template"]["spec"]["containers"][0]["args"].to_string();
        let counts = ["replicas", "updatedReplicas", "availableReplicas"];
        let done = counts.iter().all(|count| status[count] == replicas)
            && spec["replicas"] == replicas
            && args.contains(&format!("\"{version}\""))
            && status["observedGeneration"] == found["metadata"]["generation"]
            && status["terminatingReplicas"].as_i64().unwrap_or(0) == 0;
        if done { Ok(()) } else { Err(format!("{args} {status}")) }
    })
    .await;
}

#[tokio::test]
async fn no_request_is_lost_while_a_deployment_changes() {
    let world = World::new(RULES);
    let up = world.up::<&str>(&[]);
    let client = up.client().await;
    for object in behind_a_route() {
        objects::apply(&client, &object).await;
    }
    objects::apply(&client, &deployment(3, "v1")).await;
    rolled_out(&client, "plain", 3, "v1").await;
    let target =
        Target { gateway: up.gateway(), host: "plain.example.com".into(), base: "", model: "" };
    until("the first answer", || async { Client::new(&target).get("/").await }).await;
    let load = Load::start(&target, CLIENTS);
    load.go_on(50).await;
    for (replicas, version) in [(3, "v2"), (3, "v3"), (1, "v3"), (4, "v3"), (1, "v3")] {
        objects::apply(&client, &deployment(replicas, version)).await;
        rolled_out(&client, "plain", replicas, version).await;
        load.go_on(50).await;
    }
    check("Deployment", &load.end().await, &["v1", "v2", "v3"]);
    up.terminate();
}

fn model_service(replicas: u64, version: &str) -> Value {
    let mut service = example("model-service-prefill-decode.yaml");
    // One process for each device would be many.
    service["spec"]["accelerator"] = json!({"type": "cpu"});
    service["spec"]["engine"]["args"] = json!(["--version", version]);
    service["spec"]["decode"] = json!({"replicas": replicas});
    service["spec"]["prefill"] = json!({"replicas": 1});
    service["spec"]["inferencePool"]["endpointPicker"]["replicas"] = json!(1);
    service
}

#[tokio::test]
async fn no_request_is_lost_while_a_pool_changes_and_tokens_come_one_by_one() {
    let world = World::new(RULES);
    let up = world.up::<&str>(&[]);
    let client = up.client().await;
    apply_until_ready(&client, &model_service(2, "v1")).await;
    let target = Target {
        gateway: up.gateway(),
        host: "models.example.com".into(),
        base: "",
        model: "qwen3-32b-pd",
    };
    until("the first answer", || async { Client::new(&target).get("/v1/models").await }).await;
    check_streaming(&target).await;
    check_prefixes(&target, 2).await;
    let load = Load::start(&target, CLIENTS);
    load.go_on(50).await;
    for (replicas, version) in [(2, "v2"), (2, "v3"), (1, "v3")] {
        objects::apply(&client, &model_service(replicas, version)).await;
        rolled_out(&client, "qwen3-32b-pd-decode", replicas, version).await;
        load.go_on(50).await;
    }
    check("ModelService", &load.end().await, &["v1", "v2", "v3"]);
    up.terminate();
}

/// Through gateway, sidecar and server: the first is read long before the last is written.
async fn check_streaming(target: &Target) {
    const TOKENS: u64 = 8;
    const PAUSE: Duration = Duration::from_millis(100);
    let answer = Client::new(target).complete(TOKENS, true, PAUSE).await.unwrap();
    let (first, last) = (answer.parts[0], *answer.parts.last().unwrap());
    let took = last - first;
    eprintln!("{TOKENS} tokens came in {} parts during {took:?}", answer.parts.len());
    assert!(answer.parts.len() as u64 >= TOKENS, "{}", answer.parts.len());
    assert!(took >= PAUSE * 6, "{took:?}");
}

/// A conversation stays with the pod that it began with, and there are some with each.
async fn check_prefixes(target: &Target, pods: usize) {
    const CONVERSATIONS: usize = 40;
    let prompt = |conversation: usize, question: &str| {
        format!("{} {question}", format!("{conversation:03} knows much. ").repeat(150))
    };
    let mut client = Client::new(target);
    let mut homes = Vec::new();
    for conversation in 0..CONVERSATIONS {
        let answer = client.prompt(&prompt(conversation, "Hello")).await.unwrap();
        homes.push(answer.says("pod").to_owned());
    }
    let seen: BTreeSet<_> = homes.iter().collect();
    assert_eq!(seen.len(), pods, "{seen:?}");
    for question in ["Who?", "Where?"] {
        for (conversation, home) in homes.iter().enumerate() {
            let answer = client.prompt(&prompt(conversation, question)).await.unwrap();
            assert_eq!(answer.says("pod"), home, "{conversation} {question}");
        }
    }
}
