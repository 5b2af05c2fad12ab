//! Jobs whose pods are processes that fail.

use std::path::Path;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use windlass_local::controllers::{self, Settings};

use super::node::{Node, PODS, api, lives, sh, until};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// A node with the controllers.
async fn started(dir: &Path) -> (Node, JoinHandle<()>) {
    let api = api(dir).await;
    let node = Node::start(api.clone(), dir);
    let controlled = tokio::spawn(controllers::run(api.server.clone(), Settings::default()));
    (node, controlled)
}

async fn run(node: &Node, script: &str, policy: &str, limit: i32) {
    let spec = json!({"backoffLimit": limit, "template": {"spec": {
        "restartPolicy": policy,
        "terminationGracePeriodSeconds": 1,
        "containers": [sh("c", script)],
    }}});
    node.api.post(JOBS, json!({"metadata": {"name": "j"}, "spec": spec})).await.is(201);
}

/// The Job, once it has ended so.
async fn ended(node: &Node, condition: &str) -> Value {
    let has = |job: &Value| {
        let all = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.iter().any(|one| one["type"] == condition && one["status"] == "True")
    };
    node.api.until(&format!("{JOBS}/j"), |answer| has(&answer.body)).await.body
}

async fn pods(node: &Node) -> Vec<Value> {
    node.api.get(PODS).await.is(200).body["items"].as_array().unwrap().clone()
}

/// Fails as long as there is no such file, which it then leaves.
fn once(file: &Path) -> String {
    format!("if [ -e {0} ]; then exit 0; fi; echo > {0}; exit 3", file.display())
}

#[tokio::test]
async fn a_job_restarts_its_container_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let (node, controlled) = started(dir.path()).await;
    run(&node, &once(&dir.path().join("tried")), "OnFailure", 3).await;
    let job = ended(&node, "Complete").await;
    assert_eq!(job["status"]["succeeded"], 1);
    assert_eq!(job["status"]["failed"], Value::Null, "{job:#}");
    let pods = pods(&node).await;
    assert_eq!(pods.len(), 1);
    let container = &pods[0]["status"]["containerStatuses"][0];
    assert_eq!(container["restartCount"], 1);
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 3);
    controlled.abort();
    node.stop().await;
}

#[tokio::test]
async fn a_job_makes_another_pod_for_one_that_has_failed() {
    let dir = tempfile::tempdir().unwrap();
    let (node, controlled) = started(dir.path()).await;
    run(&node, &once(&dir.path().join("tried")), "Never", 1).await;
    let job = ended(&node, "Complete").await;
    assert_eq!((&job["status"]["succeeded"], &job["status"]["failed"]), (&json!(1), &json!(1)));
    let mut phases: Vec<_> =
        pods(&node).await.iter().map(|pod| pod["status"]["phase"].clone()).collect();
    phases.sort_by_key(Value::to_string);
    assert_eq!(phases, ["Failed", "Succeeded"]);
    controlled.abort();
    node.stop().await;
}

#[tokio::test]
async fn a_job_that_always_fails_gives_up_and_leaves_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let (node, controlled) = started(dir.path()).await;
    run(&node, "setsid sleep 4811 & exit 4", "OnFailure", 1).await;
    let job = ended(&node, "Failed").await;
    let conditions = job["status"]["conditions"].as_array().unwrap();
    let failed = conditions.iter().find(|one| one["type"] == "Failed").unwrap();
    assert_eq!(failed["reason"], "BackoffLimitExceeded");
    assert_eq!(failed["message"], "Job has reached the specified backoff limit");
    node.api.until(PODS, |pods| pods.body["items"] == json!([])).await;
    until("nothing is left", || !lives(dir.path(), "4811")).await;
    controlled.abort();
    node.stop().await;
}
