//! A node of its own for each test.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::interval};
use tokio_util::sync::CancellationToken;
use windlass_local::{
    auth::Tokens,
    http::Access,
    node::{self, Settings, images::Rule, places::Places},
    store::Store,
};

use super::program;
use crate::api::Api;

pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Node {
    pub(super) api: Arc<Api>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), node::Error>>,
}

/// An API that gives tokens, as pods want them.
pub(super) async fn api(state: &Path) -> Arc<Api> {
    api_on(Store::in_memory(Arc::new(Timestamp::now)).unwrap(), state).await
}

pub(super) async fn api_on(store: Store, state: &Path) -> Arc<Api> {
    let tokens = Tokens::load_or_create(state).unwrap();
    Arc::new(Api::with(store, Access { tokens: Some(tokens) }).await)
}

pub(super) fn settings(state: &Path) -> Settings {
    Settings {
        name: "local".into(),
        places: Places { state: state.to_owned(), runtime: state.join("private") },
        api: "127.0.0.1:1".parse().unwrap(),
        windlass: PathBuf::from("/proc/self/exe"),
        first_rules: vec![
            Rule::parse_flag("*/sh:*=sh").unwrap(),
            Rule::parse_flag("*/missing:*=no-such-program").unwrap(),
            Rule::parse_flag(&program::rule(state)).unwrap(),
        ],
        last_rules: Vec::new(),
        resources: BTreeMap::new(),
        labels: BTreeMap::new(),
    }
}

impl Node {
    pub(super) fn start(api: Arc<Api>, state: &Path) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(node::run(api.server.clone(), settings(state), stop.clone()));
        Self { api, stop, task }
    }

    /// As `windlass down` does.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }

    /// As a panic of its holder does.
    pub(super) fn abort(self) {
        self.task.abort();
    }

    /// A pod on this node whose one container is `sh -c script`.
    pub(super) async fn run(&self, name: &str, script: &str, policy: &str) -> Value {
        self.create(
            name,
            json!({
                "restartPolicy": policy,
                "containers": [sh("c", script)],
            }),
        )
        .await
    }

    pub(super) async fn create(&self, name: &str, mut spec: Value) -> Value {
        spec["nodeName"] = "local".into();
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        self.api.post(PODS, pod).await.is(201).body
    }

    pub(super) async fn pod(&self, name: &str) -> Value {
        self.api.get(&format!("{PODS}/{name}")).await.body
    }

    /// The pod, once it is as wanted.
    pub(super) async fn until(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let pod = self.pod(name).await;
            if wanted(&pod) {
                return pod;
            }
            assert!(Instant::now() < deadline, "{pod:#}");
            pause().await;
        }
    }

    pub(super) async fn until_phase(&self, name: &str, phase: &str) -> Value {
        self.until(name, |pod| pod["status"]["phase"] == phase).await
    }

    pub(super) async fn until_gone(&self, name: &str) {
        self.until(name, |pod| pod["code"] == 404).await;
    }

    /// Reasons and messages of the events about a pod, once there is one like this.
    pub(super) async fn until_told(&self, name: &str, wanted: &str) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let path =
            format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D{name}");
        loop {
            let events = self.api.get(&path).await.is(200).body;
            let all: Vec<String> = events["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|event| {
                    format!(
                        "{} {}",
                        event["reason"].as_str().unwrap(),
                        event["message"].as_str().unwrap()
                    )
                })
                .collect();
            if all.iter().any(|one| one.contains(wanted)) {
                return all;
            }
            assert!(Instant::now() < deadline, "{all:#?}");
            pause().await;
        }
    }
}

pub(super) fn sh(name: &str, script: &str) -> Value {
    json!({"name": name, "image": "sh:1", "args": ["-c", script]})
}

pub(super) fn state(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["state"]
}

/// Between two looks.
pub(super) async fn pause() {
    let mut pause = interval(Duration::from_millis(20));
    pause.tick().await;
    pause.tick().await;
}

/// Waits for something outside the API.
pub(super) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        pause().await;
    }
}

/// Leaves a process behind that has no environment, a session of its own and no parent that is known,
/// and then does something else.
pub(super) fn stray(dir: &Path, then: &str) -> String {
    let loops = "while :; do sleep 1; done";
    format!("(env -i $(command -v setsid) sh -c '{loops}' {} &); {then}", dir.display())
}

/// One that [`stray`] has left lives, whatever else is known of it.
pub(super) fn strays(dir: &Path) -> bool {
    let own = std::process::id().to_string();
    let word = dir.to_string_lossy().into_owned().into_bytes();
    let all = std::fs::read_dir("/proc").unwrap();
    let all = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    all.filter(|pid| pid.parse::<u32>().is_ok() && *pid != own).any(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == word)
    })
}

/// A process of a node with this directory lives that has this word among its arguments.
pub(super) fn lives(dir: &Path, word: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap();
    let all = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    all.filter(|pid| pid.parse::<u32>().is_ok()).any(|pid| {
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let home = format!("HOME={}/", dir.display()).into_bytes();
        read("cmdline").split(|byte| *byte == 0).any(|part| part == word.as_bytes())
            && read("environ").split(|byte| *byte == 0).any(|part| part.starts_with(&home))
    })
}
