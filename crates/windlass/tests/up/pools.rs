//! Which pod of a pool answers. The pods are servers in the test, so that their figures can be set.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{SocketAddr, TcpListener},
    sync::{Arc, atomic::Ordering},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::json;

use crate::{
    backend::{Figures, apply, engine, route, service, text},
    gateway::{says, up},
    running::{Up, World},
    wait::until,
};

const GROUP: &str = "inference.networking.k8s.io";

/// Pods behind a pool and a route, as busy as the test says.
struct Pool {
    up: Up,
    client: Client,
    figures: BTreeMap<&'static str, Arc<Figures>>,
}

impl Pool {
    /// The addresses are those of `net`, so that no other test has them.
    async fn new(world: &World, net: u8, names: &[&'static str]) -> Self {
        let up = up(world);
        let client = up.client().await;
        let ip = |at: usize| format!("127.0.{net}.{}", at + 1);
        let port = TcpListener::bind((ip(0), 0)).unwrap().local_addr().unwrap().port();
        let mut figures = BTreeMap::new();
        for (at, name) in names.iter().enumerate() {
            let address = SocketAddr::new(ip(at).parse().unwrap(), port);
            figures.insert(*name, engine(address, name).await);
            pod(&client, name, &ip(at)).await;
        }
        let pool = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "InferencePool",
            "metadata": { "name": "p" },
            "spec": { "selector": { "matchLabels": { "app": "m" } },
                "targetPorts": [{ "number": port }],
                "endpointPickerRef": { "name": "epp", "failureMode": "FailOpen" } } });
        apply(&client, pool).await;
        let backend = json!([{ "group": GROUP, "kind": "InferencePool", "name": "p" }]);
        let spec =
            json!({ "parentRefs": [{ "name": "g" }], "rules": [{ "backendRefs": backend }] });
        apply(&client, route("r", spec)).await;
        Self { up, client, figures }
    }

    fn set(&self, name: &str, waiting: u16, cache: u16) {
        self.figures[name].waiting.store(waiting, Ordering::Relaxed);
        self.figures[name].cache.store(cache, Ordering::Relaxed);
    }

    async fn ask(&self, prompt: &str) -> (u16, String) {
        let body = json!({ "model": "m", "prompt": prompt }).to_string();
        let request = Request::post("/v1/completions").header("host", "h");
        text(self.up.ask(request.body(Full::new(Bytes::from(body))).unwrap()).await).await
    }

    /// Who has answered a prompt.
    async fn answering(&self, prompt: &str) -> Result<String, String> {
        match self.ask(prompt).await {
            (200, name) => Ok(name),
            refused => Err(format!("{refused:?}")),
        }
    }

    /// Until all of so many requests are answered by these, and by each of them. The prompts are too
    /// short to be known again.
    async fn until_answered_by(&self, names: &[&str]) {
        const TIMES: usize = 60;
        until("choice", || async {
            let mut seen = BTreeSet::new();
            for _ in 0..TIMES {
                let name = self.answering("x").await?;
                if !names.contains(&name.as_str()) {
                    return Err(format!("{name}, not one of {names:?}"));
                }
                seen.insert(name);
            }
            if seen.len() == names.len() { Ok(()) } else { Err(format!("only {seen:?}")) }
        })
        .await;
    }
}

/// A pod that nobody runs, of which the test says that it is ready.
async fn pod(client: &Client, name: &str, ip: &str) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let spec = json!({ "schedulerName": "nobody",
        "containers": [{ "name": "c", "image": "none" }] });
    let pod = json!({ "metadata": { "name": name, "labels": { "app": "m" },
        // So that it is seen to leave before it is gone.
        "finalizers": ["test/leaving"] }, "spec": spec });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let status = json!({ "status": { "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }],
        "conditions": [{ "type": "Ready", "status": "True" }] } });
    let params = PatchParams::default();
    pods.patch_status(name, &params, &Patch::Merge(status)).await.unwrap();
}

#[tokio::test]
async fn a_pool_prefers_the_shorter_queue_and_leaves_out_who_leaves() {
    let world = World::new();
    let pool = Pool::new(&world, 77, &["long", "short"]).await;
    // Each time both say how busy they are anew.
    for (busy, idle) in [("long", "short"), ("short", "long")] {
        pool.set(busy, 50, 0);
        pool.set(idle, 0, 0);
        pool.until_answered_by(&[idle]).await;
    }
    let client = &pool.client;
    let kind = GroupVersionKind::gvk(GROUP, "v1", "InferencePool");
    let reason = |at: u8| format!("/status/parents/0/conditions/{at}/reason");
    says(client, &kind, "p", &reason(0), json!("Accepted")).await;
    says(client, &kind, "p", &reason(1), json!("InvalidExtensionRef")).await;
    service(client, "epp", &[]).await;
    says(client, &kind, "p", &reason(1), json!("ResolvedRefs")).await;

    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.delete("long", &DeleteParams::default()).await.unwrap();
    let short = Ok("short".to_owned());
    until("choice", || async {
        let got = pool.answering("x").await;
        if got == short { Ok(()) } else { Err(format!("{got:?}")) }
    })
    .await;
    for _ in 0..20 {
        assert_eq!(pool.answering("x").await, short);
    }
    pods.delete("short", &DeleteParams::default()).await.unwrap();
    until("refusal", || async {
        let got = pool.ask("x").await;
        if got == (503, "no endpoint is ready".to_owned()) {
            Ok(())
        } else {
            Err(format!("{got:?}"))
        }
    })
    .await;
}

#[tokio::test]
async fn a_pool_prefers_the_emptier_cache() {
    let world = World::new();
    let pool = Pool::new(&world, 78, &["a", "b", "c"]).await;
    // Where nothing tells them apart all are asked, so the rest is no habit.
    pool.until_answered_by(&["a", "b", "c"]).await;
    for (a, b, c, want) in [
        (90, 10, 50, &["b"][..]),
        (10, 90, 50, &["a"]),
        (50, 90, 10, &["c"]),
        (90, 20, 20, &["b", "c"]),
    ] {
        pool.set("a", 0, a);
        pool.set("b", 0, b);
        pool.set("c", 0, c);
        pool.until_answered_by(want).await;
    }
    // The longest queue costs as much as a full cache, and so more than nine tenths of one.
    pool.set("a", 50, 0);
    pool.set("b", 0, 90);
    pool.set("c", 50, 90);
    pool.until_answered_by(&["b"]).await;

    // Who has said otherwise is not asked for caches at all.
    pool.set("a", 0, 0);
    pool.set("c", 0, 90);
    let config = "apiVersion: inference.networking.x-k8s.io/v1alpha1\n\
                  kind: EndpointPickerConfig\nplugins:\n- type: queue-scorer\n";
    let config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "epp-config", "labels": { "app.kubernetes.io/component": "epp" } },
        "data": { "config.yaml": config } });
    apply(&pool.client, config).await;
    pool.until_answered_by(&["a", "b", "c"]).await;
}

/// Long enough for many blocks, and unlike those of other conversations from the first on.
fn prompt(conversation: usize, question: &str) -> String {
    format!("{} {question}", format!("{conversation:03} knows much. ").repeat(150))
}

#[tokio::test]
async fn a_prompt_that_begins_alike_comes_back_to_the_same_pod() {
    const CONVERSATIONS: usize = 60;
    let world = World::new();
    let pool = Pool::new(&world, 79, &["a", "b", "c"]).await;
    pool.until_answered_by(&["a", "b", "c"]).await;

    let mut homes = Vec::new();
    for conversation in 0..CONVERSATIONS {
        homes.push(pool.answering(&prompt(conversation, "Hello")).await.unwrap());
    }
    // Chance leaves one out once in ten thousand million runs.
    assert_eq!(homes.iter().collect::<BTreeSet<_>>().len(), 3, "{homes:?}");
    for question in ["Who?", "Where?", "And then?"] {
        for (conversation, home) in homes.iter().enumerate() {
            let answered = pool.answering(&prompt(conversation, question)).await;
            assert_eq!(answered.as_ref(), Ok(home), "{conversation} {question}");
        }
    }

    // A full cache is no reason to begin anew elsewhere; with a queue before it, it is.
    let home = homes[0].as_str();
    let others: Vec<_> = ["a", "b", "c"].into_iter().filter(|name| *name != home).collect();
    pool.set(home, 0, 100);
    pool.until_answered_by(&others).await;
    for _ in 0..20 {
        assert_eq!(pool.answering(&prompt(0, "Still there?")).await.as_deref(), Ok(home));
    }
    pool.set(home, 50, 100);
    until("another home", || async {
        let name = pool.answering(&prompt(0, "Where to?")).await?;
        if name == home { Err(name) } else { Ok(()) }
    })
    .await;
    let mut seen = BTreeSet::new();
    for _ in 0..20 {
        seen.insert(pool.answering(&prompt(0, "Here?")).await.unwrap());
    }
    assert!(seen.len() == 1 && !seen.contains(home), "{seen:?}, not {home}");
}
