//! After a stop, an orderly one or not.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Instant,
};

use jiff::Timestamp;
use serde_json::json;
use windlass_local::store::Store;

use super::node::{Node, PATIENCE, api, api_on, lives, stray, strays, until};

#[tokio::test]
async fn an_orderly_stop_ends_the_processes_and_the_next_start_runs_them_again() {
    let dir = tempfile::tempdir().unwrap();
    let api = api(dir.path()).await;
    let node = Node::start(api.clone(), dir.path());
    node.run("p", "exec sleep 4501", "Always").await;
    node.run("never", "exec sleep 4502", "Never").await;
    let before = node.until_phase("p", "Running").await;
    node.until_phase("never", "Running").await;
    node.stop().await;
    assert!(!lives(dir.path(), "4501") && !lives(dir.path(), "4502"));
    let node = Node::start(api, dir.path());
    let pod =
        node.until("p", |pod| pod["status"]["containerStatuses"][0]["restartCount"] == 1).await;
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!((&last["exitCode"], &last["reason"]), (&json!(255), &json!("Unknown")));
    assert_eq!(pod["status"]["podIP"], before["status"]["podIP"]);
    node.until_phase("never", "Failed").await;
    node.stop().await;
    assert!(!lives(dir.path(), "4501"));
}

#[tokio::test]
async fn a_node_that_is_dropped_takes_its_processes_along() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    node.run("p", "trap '' TERM; sleep 4503 & sleep 4504", "Always").await;
    until("it runs", || lives(dir.path(), "4503") && lives(dir.path(), "4504")).await;
    node.abort();
    until("it ends", || !lives(dir.path(), "4503") && !lives(dir.path(), "4504")).await;
}

#[tokio::test]
async fn a_pod_keeps_its_address_over_a_restart_although_a_new_one_is_seen_first() {
    let dir = tempfile::tempdir().unwrap();
    let api = api(dir.path()).await;
    let node = Node::start(api.clone(), dir.path());
    node.run("z", "exec sleep 4505", "Always").await;
    let before = node.until_phase("z", "Running").await;
    node.stop().await;
    let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "local",
        "containers": [super::node::sh("c", "exec sleep 4506")]}});
    api.post(super::node::PODS, pod).await.is(201);
    let node = Node::start(api, dir.path());
    let new = node.until_phase("a", "Running").await;
    let after =
        node.until("z", |pod| pod["status"]["containerStatuses"][0]["restartCount"] == 1).await;
    assert_eq!(after["status"]["podIP"], before["status"]["podIP"]);
    assert_ne!(new["status"]["podIP"], before["status"]["podIP"]);
    node.stop().await;
}

#[tokio::test]
async fn what_is_over_is_left_alone_by_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let api = api(dir.path()).await;
    let node = Node::start(api.clone(), dir.path());
    node.run("p", "exit 0", "Never").await;
    let pod = node.until_phase("p", "Succeeded").await;
    node.stop().await;
    let node = Node::start(api, dir.path());
    node.run("q", "exit 0", "Never").await;
    node.until_phase("q", "Succeeded").await;
    assert_eq!(node.pod("p").await, pod);
    node.stop().await;
}

/// What a node to be killed leaves when it may be.
const SIGN: &str = "sign";

/// The program of [`a_killed_node_leaves_nothing_that_the_next_start_does_not_end`]: the same test
/// binary, which is killed.
const CHILD: &str = "WINDLASS_TEST_NODE";

#[tokio::test]
async fn a_node_to_be_killed() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let dir = std::path::Path::new(&dir);
    let store = Store::open(&dir.join("store.redb"), Arc::new(Timestamp::now)).unwrap();
    let node = Node::start(api_on(store, dir).await, dir);
    node.run("p", "sleep 4511 & setsid sleep 4512 & exec sleep 4513", "Always").await;
    node.run("q", "trap '' TERM; sleep 4514; sleep 4514", "Always").await;
    node.until_phase("p", "Running").await;
    node.run("r", &stray(dir, "exec sleep 4515"), "Always").await;
    node.until_phase("q", "Running").await;
    until("all run", || ["4511", "4512", "4513", "4514"].iter().all(|word| lives(dir, word))).await;
    until("the stray runs", || strays(dir)).await;
    std::fs::write(dir.join(SIGN), "").unwrap();
    std::future::pending::<()>().await;
}

const EARLY: &str = "WINDLASS_TEST_EARLY";

#[tokio::test]
async fn a_node_to_be_killed_early() {
    let Ok(dir) = std::env::var(EARLY) else { return };
    let dir = std::path::Path::new(&dir);
    let store = Store::open(&dir.join("store.redb"), Arc::new(Timestamp::now)).unwrap();
    let node = Node::start(api_on(store, dir).await, dir);
    for number in 0.. {
        let script =
            format!("sleep 4520 & {} sleep 4521", if number % 2 == 0 { "exec" } else { "" });
        node.run(&format!("p{number}"), &script, "Always").await;
        if number == 1 {
            std::fs::write(dir.join(SIGN), "").unwrap();
        }
    }
}

/// At any instant: while pods are made, while processes are, while the API is told.
#[tokio::test]
async fn a_node_that_is_killed_at_any_time_leaves_no_orphan() {
    for round in 0..6 {
        let begin = Instant::now();
        let dir = tempfile::tempdir().unwrap();
        let mut child = child("a_node_to_be_killed_early", EARLY, dir.path());
        until("it begins", || dir.path().join(SIGN).exists()).await;
        // Looked at without a pause, so that it is caught in the midst of the next one.
        let runs = dir.path().join("pods");
        while std::fs::read_dir(&runs).map_or(0, Iterator::count) < 4 * round {
            assert!(begin.elapsed() < PATIENCE);
            tokio::task::yield_now().await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let store = Store::open(&dir.path().join("store.redb"), Arc::new(Timestamp::now)).unwrap();
        let api = api_on(store, dir.path()).await;
        let options = json!({"gracePeriodSeconds": 0});
        api.delete_with(super::node::PODS, options).await.is(200);
        let node = Node::start(api, dir.path());
        until("all have ended", || !lives(dir.path(), "4520") && !lives(dir.path(), "4521")).await;
        let pods = dir.path().join("pods");
        until("their directories go", || {
            std::fs::read_dir(&pods).is_ok_and(|all| all.count() == 0)
        })
        .await;
        node.stop().await;
    }
}

/// This test binary again, with one test that stands for a program.
fn child(test: &str, variable: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("pods::recovery::{test}"), "--nocapture"])
        .env(variable, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn a_killed_node_leaves_nothing_that_the_next_start_does_not_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = child("a_node_to_be_killed", CHILD, dir.path());
    until("all run", || dir.path().join(SIGN).exists()).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let words = ["4511", "4512", "4513", "4514"];
    assert!(words.iter().all(|word| lives(dir.path(), word)), "they do not know yet");
    assert!(strays(dir.path()));
    let store = Store::open(&dir.path().join("store.redb"), Arc::new(Timestamp::now)).unwrap();
    let api = api_on(store, dir.path()).await;
    // The pods go meanwhile, so that nothing of them is started again.
    for name in ["p", "q", "r"] {
        let path = format!("{}/{name}", super::node::PODS);
        api.delete_with(&path, json!({"gracePeriodSeconds": 0})).await.is(200);
    }
    let node = Node::start(api, dir.path());
    until("all have ended", || !words.iter().any(|word| lives(dir.path(), word))).await;
    until("the stray has ended", || !strays(dir.path())).await;
    let pods = dir.path().join("pods");
    until("their directories go", || std::fs::read_dir(&pods).unwrap().count() == 0).await;
    node.stop().await;
}
