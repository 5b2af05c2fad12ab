use std::time::Duration;

use serde_json::json;

use super::node::{Node, api, lives, sh};

#[tokio::test]
async fn a_probe_that_hangs_fails_and_restarts_its_container() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let mut container = sh("c", "exec sleep 4401");
    container["livenessProbe"] = json!({
        "exec": {"command": ["sleep", "4402"]},
        "timeoutSeconds": 1, "periodSeconds": 1, "failureThreshold": 1,
        "terminationGracePeriodSeconds": 1,
    });
    node.create("p", json!({"containers": [container]})).await;
    let pod =
        node.until("p", |pod| pod["status"]["containerStatuses"][0]["restartCount"] == 1).await;
    assert_eq!(pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"], 143);
    let told = node.until_told("p", "Killing Container c failed liveness probe").await;
    let text =
        "Unhealthy Liveness probe failed: command timed out: \"sleep 4402\" timed out after 1s";
    assert!(told.iter().any(|one| one == text), "{told:#?}");
    node.stop().await;
    assert!(!lives(dir.path(), "4401") && !lives(dir.path(), "4402"));
}

#[tokio::test]
async fn readiness_follows_its_probe() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let file = dir.path().join("ready");
    let mut container = sh("c", "exec sleep 4403");
    container["readinessProbe"] = json!({
        "exec": {"command": ["test", "-e", file]},
        "periodSeconds": 1, "failureThreshold": 1,
    });
    node.create("p", json!({"containers": [container]})).await;
    let is_ready = |ready: bool| {
        move |pod: &serde_json::Value| {
            let status = &pod["status"];
            status["phase"] == "Running"
                && status["conditions"][2]["status"] == if ready { "True" } else { "False" }
        }
    };
    node.until("p", is_ready(false)).await;
    std::fs::write(&file, "").unwrap();
    node.until("p", is_ready(true)).await;
    std::fs::remove_file(&file).unwrap();
    node.until("p", is_ready(false)).await;
    node.stop().await;
}

#[tokio::test]
async fn nothing_is_written_while_nothing_happens() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let mut container = sh("c", "exec sleep 4404");
    container["readinessProbe"] = json!({"exec": {"command": ["true"]}, "periodSeconds": 1});
    node.create("p", json!({"containers": [container]})).await;
    let pod = node.until("p", |pod| pod["status"]["conditions"][2]["status"] == "True").await;
    tokio::time::timeout(
        Duration::from_secs(3),
        node.until("p", |now| {
            now["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]
        }),
    )
    .await
    .unwrap_err();
    node.stop().await;
}
