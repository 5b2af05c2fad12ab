use std::time::Duration;

use serde_json::json;

use super::{
    node::{Node, api, lives, sh},
    program::{GRPC_PORT, PORT, server},
};

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

/// A question of each kind that a server answers once it listens.
fn questions(gate: &std::path::Path) -> [(&'static str, serde_json::Value); 4] {
    [
        ("http", json!({"httpGet": {"path": "/", "port": "http"}})),
        ("tcp", json!({"tcpSocket": {"port": PORT}})),
        ("grpc", json!({"grpc": {"port": GRPC_PORT}})),
        ("exec", json!({"exec": {"command": ["test", "-e", gate]}})),
    ]
}

#[tokio::test]
async fn probes_of_every_kind_wait_for_a_server_that_listens() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let gate = dir.path().join("gate");
    for (kind, question) in questions(&gate) {
        for probe in ["readinessProbe", "startupProbe"] {
            let mut container = server(&gate);
            container[probe] = question.clone();
            container[probe]["periodSeconds"] = json!(1);
            container[probe]["failureThreshold"] = json!(60);
            node.create(&format!("{kind}-{}", &probe[..5]), json!({"containers": [container]}))
                .await;
        }
    }
    for (kind, _) in questions(&gate) {
        for (probe, field) in [("readi", "ready"), ("start", "started")] {
            let name = format!("{kind}-{probe}");
            let text = if probe == "readi" { "Readiness" } else { "Startup" };
            node.until_told(&name, &format!("Unhealthy {text} probe failed: ")).await;
            let pod = node.pod(&name).await;
            assert_eq!(pod["status"]["containerStatuses"][0][field], false, "{name}");
            assert_eq!(pod["status"]["containerStatuses"][0]["ready"], false, "{name}");
        }
    }
    std::fs::write(&gate, "").unwrap();
    for (kind, _) in questions(&gate) {
        for probe in ["readi", "start"] {
            let name = format!("{kind}-{probe}");
            let is_ready = |pod: &serde_json::Value| {
                let container = &pod["status"]["containerStatuses"][0];
                container["ready"] == true && container["started"] == true
            };
            let pod = node.until(&name, is_ready).await;
            assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0, "{name}");
        }
    }
    node.stop().await;
}

#[tokio::test]
async fn probes_of_every_kind_restart_a_container_that_never_starts() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let never = dir.path().join("never");
    for (kind, question) in questions(&never) {
        let mut container = server(&never);
        container["startupProbe"] = question;
        container["startupProbe"]["periodSeconds"] = json!(1);
        container["startupProbe"]["failureThreshold"] = json!(1);
        // Would fail as well, if it were asked.
        container["livenessProbe"] = json!({"exec": {"command": ["false"]}, "periodSeconds": 1});
        let spec = json!({"containers": [container], "terminationGracePeriodSeconds": 1});
        node.create(kind, spec).await;
    }
    for (kind, _) in questions(&never) {
        let restarted = |pod: &serde_json::Value| {
            pod["status"]["containerStatuses"][0]["restartCount"].as_i64() >= Some(1)
        };
        node.until(kind, restarted).await;
        let killing = "Killing Container c failed startup probe, will be restarted";
        let told = node.until_told(kind, killing).await;
        assert!(!told.iter().any(|one| one.contains("Liveness")), "{told:#?}");
    }
    node.stop().await;
}
