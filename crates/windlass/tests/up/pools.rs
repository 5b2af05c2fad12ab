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
    running::{self, Up, World},
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

#[tokio::test]
async fn a_model_is_asked_for_under_another_name_without_anything_being_installed() {
    let world = World::new();
    let pool = Pool::new(&world, 80, &["a"]).await;
    pool.until_answered_by(&["a"]).await;
    let early = "inference.networking.x-k8s.io";
    let reference = json!({ "group": GROUP, "name": "p" });
    let rewrite = json!({ "apiVersion": format!("{early}/v1alpha2"),
        "kind": "InferenceModelRewrite", "metadata": { "name": "w" },
        "spec": { "poolRef": reference, "rules": [{
            "matches": [{ "model": { "type": "Exact", "value": "m" } }],
            "targets": [{ "modelRewrite": "other", "weight": 1 }] }] } });
    apply(&pool.client, rewrite).await;
    let objective = json!({ "apiVersion": format!("{early}/v1alpha2"),
        "kind": "InferenceObjective", "metadata": { "name": "o" },
        "spec": { "poolRef": reference, "priority": -1 } });
    apply(&pool.client, objective).await;
    until("another name", || async {
        pool.answering("x").await?;
        let model = pool.figures["a"].model.lock().unwrap().clone();
        if model == "other" { Ok(()) } else { Err(model) }
    })
    .await;
}

#[tokio::test]
async fn what_pools_are_asked_is_counted_under_the_names_of_the_pickers_of_others() {
    let world = World::new();
    let pool = Pool::new(&world, 81, &["a", "b"]).await;
    pool.set("a", 4, 0);
    pool.set("b", 2, 50);
    pool.until_answered_by(&["b"]).await;
    let labels = r#"model_name="m",target_model_name="m""#;
    let counted = |text: &str| {
        let start = format!("inference_objective_request_total{{{labels}}} ");
        text.lines().find_map(|line| line.strip_prefix(&start)?.parse::<u64>().ok())
    };
    let read = || async {
        let request = Request::get("/metrics").body(Vec::new()).unwrap();
        pool.client.request_text(request).await.unwrap()
    };
    let before = counted(&read().await).unwrap();
    for _ in 0..5 {
        pool.answering("x").await.unwrap();
    }
    let text = read().await;
    assert_eq!(counted(&text), Some(before + 5), "{text}");
    for line in [
        format!("llm_d_epp_request_total{{{labels}}} {}", before + 5),
        r#"inference_pool_average_queue_size{name="p"} 3"#.to_owned(),
        r#"inference_pool_average_kv_cache_utilization{name="p"} 0.25"#.to_owned(),
        r#"inference_pool_per_pod_queue_size{name="p",model_server_pod="a-rank-0"} 4"#.to_owned(),
    ] {
        assert!(text.lines().any(|said| said == line), "{line} in {text}");
    }
    // A request is over a moment after its answer.
    until("rest", || async {
        let text = read().await;
        let rest = r#"inference_objective_running_requests{model_name="m"} 0"#;
        if text.lines().any(|said| said == rest) { Ok(()) } else { Err(text) }
    })
    .await;
    // Only who may read them sees them.
    let anybody =
        running::client(&pool.up.kubeconfig(), |config| config.auth_info = <_>::default()).await;
    let request = Request::get("/metrics").body(Vec::new()).unwrap();
    let refused = anybody.request_text(request).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 401), "{refused}");
}
