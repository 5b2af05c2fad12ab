//! A server with its controllers, and what stands in for a node.

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use windlass_local::controllers::{self, Settings};

use crate::api::{Answer, Api};

/// The controllers end with the test.
pub(crate) struct Controlled {
    pub(crate) api: Api,
    task: JoinHandle<()>,
}

impl Drop for Controlled {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Controlled {
    pub(crate) async fn new(settings: Settings) -> Self {
        Self::on(Api::new().await, settings)
    }

    pub(crate) fn on(api: Api, settings: Settings) -> Self {
        let task = tokio::spawn(controllers::run(api.server.clone(), settings));
        Self { api, task }
    }

    /// What the list at this path holds, once it is as wanted.
    pub(crate) async fn list(&self, path: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let items = |answer: &Answer| answer.body["items"].as_array().cloned().unwrap_or_default();
        let answer = self.api.until(path, |answer| wanted(&items(answer))).await;
        items(&answer)
    }

    /// The first event of this reason, once there is one.
    pub(crate) async fn event(&self, reason: &str) -> Value {
        let path = format!("/api/v1/namespaces/default/events?fieldSelector=reason%3D{reason}");
        self.list(&path, |events| !events.is_empty()).await.remove(0)
    }

    /// As a node would report it.
    pub(crate) async fn run_pod(&self, name: &str, ip: &str, ready: bool) {
        let status = json!({"status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
        }});
        self.api.merge(&format!("{PODS}/{name}/status"), status).await.is(200);
    }
}

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

pub(crate) fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name, "labels": {"app": "a"}}, "spec": {
        "containers": [{"name": "c", "image": "i", "ports": [
            {"name": "http", "containerPort": 8000}]}]}});
    if let Some(fields) = spec.as_object() {
        for (key, value) in fields {
            pod["spec"][key] = value.clone();
        }
    }
    pod
}
