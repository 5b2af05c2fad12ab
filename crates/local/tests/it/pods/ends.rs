use std::time::{Duration, Instant};

use serde_json::json;

use super::node::{Node, PODS, api, lives, sh, state, stray, strays, until};

#[tokio::test]
async fn a_pod_that_ignores_sigterm_is_killed_when_its_time_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let script = "trap '' TERM; sleep 4301 & while :; do sleep 4302; done";
    node.run("p", script, "Always").await;
    until("it runs", || lives(dir.path(), "4301") && lives(dir.path(), "4302")).await;
    let begin = Instant::now();
    node.api.delete_with(&format!("{PODS}/p"), json!({"gracePeriodSeconds": 1})).await.is(200);
    node.until_gone("p").await;
    assert!(begin.elapsed() >= Duration::from_millis(900), "it had its time");
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(!lives(dir.path(), "4301") && !lives(dir.path(), "4302"));
    node.until_told("p", "Killing Stopping container c").await;
    node.stop().await;
}

#[tokio::test]
async fn a_pod_that_hears_sigterm_tells_how_it_ended() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let script =
        "trap 'echo -n bye > /dev/termination-log ; exit 7' TERM; while :; do sleep 0.1; done";
    let mut pod = json!({
        "metadata": {"name": "p", "finalizers": ["x.io/hold"]},
        "spec": {"nodeName": "local", "containers": [sh("c", script)]},
    });
    pod["spec"]["containers"][0]["readinessProbe"] =
        json!({"exec": {"command": ["true"]}, "periodSeconds": 1});
    node.api.post(PODS, pod).await.is(201);
    node.until("p", |pod| pod["status"]["containerStatuses"][0]["ready"] == true).await;
    node.api.delete(&format!("{PODS}/p")).await.is(200);
    let pod = node.until_phase("p", "Failed").await;
    let ended = &state(&pod)["terminated"];
    assert_eq!((&ended["exitCode"], &ended["message"]), (&json!(7), &json!("bye")));
    node.api.merge(&format!("{PODS}/p"), json!({"metadata": {"finalizers": null}})).await.is(200);
    node.until_gone("p").await;
    node.stop().await;
}

#[tokio::test]
async fn a_hook_runs_before_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let file = dir.path().join("hook");
    let mut container = sh("c", "exec sleep 4303");
    let script = format!("echo ran > {}", file.display());
    container["lifecycle"] = json!({"preStop": {"exec": {"command": ["sh", "-c", script]}}});
    node.create("p", json!({"containers": [container]})).await;
    node.until_phase("p", "Running").await;
    node.api.delete_with(&format!("{PODS}/p"), json!({"gracePeriodSeconds": 10})).await.is(200);
    node.until_gone("p").await;
    assert_eq!(std::fs::read_to_string(file).unwrap(), "ran\n");
    assert!(!lives(dir.path(), "4303"));
    node.stop().await;
}

#[tokio::test]
async fn a_process_that_leaves_its_group_ends_with_its_container() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    node.run("p", "setsid sleep 4304 & sleep 0.3", "Never").await;
    node.until_phase("p", "Succeeded").await;
    assert!(!lives(dir.path(), "4304"));
    node.stop().await;
}

#[tokio::test]
async fn a_process_that_gives_up_all_that_it_is_known_by_ends_with_its_container() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    node.run("p", &stray(dir.path(), "exec sleep 4607"), "Always").await;
    until("the stray runs", || strays(dir.path())).await;
    node.until_phase("p", "Running").await;
    let options = json!({"gracePeriodSeconds": 1});
    node.api.delete_with(&format!("{PODS}/p"), options).await.is(200);
    node.until_gone("p").await;
    assert!(!strays(dir.path()));
    node.stop().await;
}

#[tokio::test]
async fn what_a_probe_starts_after_the_end_of_its_container_ends_too() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let ended = dir.path().join("ended");
    // Somebody who is not known any more keeps the output open, and so the end is not heard at once.
    let free = "env -i $(command -v setsid) $(command -v prlimit) --rttime=unlimited sleep 5";
    let mut container = sh("c", &format!("{free} & sleep 1; echo > {}", ended.display()));
    let late =
        format!("test ! -e {0} || (setsid sleep 4611 >&- 2>&- & echo >> {0})", ended.display());
    for probe in ["readinessProbe", "livenessProbe"] {
        container[probe] = json!({"exec": {"command": ["sh", "-c", late]}, "periodSeconds": 1});
    }
    node.create("p", json!({"restartPolicy": "Never", "containers": [container]})).await;
    node.until_phase("p", "Succeeded").await;
    let lines = std::fs::read_to_string(ended).unwrap().lines().count();
    assert!(lines > 1, "a probe has run after the end");
    assert!(!lives(dir.path(), "4611"));
    node.stop().await;
}

#[tokio::test]
async fn a_container_over_its_memory_limit_is_ended_for_it_and_started_again() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let limited = |script: &str| {
        let mut container = sh("c", script);
        container["resources"] = json!({"limits": {"memory": "48Mi"}});
        json!({"restartPolicy": "Always", "containers": [container]})
    };
    let large = "x=$(head -c 8000000 /dev/zero | tr '\\0' x);";
    // What several of them share counts once, also where one has ended and nobody has waited for it.
    let share = "g() { sleep 4609; echo $x; }; g & g & g & g & g & g & g & (: & exec sleep 4610)";
    node.create("sharing", limited(&format!("{large} {share}"))).await;
    until("all share", || lives(dir.path(), "4609") && lives(dir.path(), "4610")).await;
    // What all of its processes have counts.
    let part = format!("f() {{ {large} sleep 4608; echo $x; }};");
    node.create("greedy", limited(&format!("{part} f & f & f & f & f & f & f"))).await;
    node.create("modest", limited(&format!("{part} f"))).await;
    let pod = node
        .until("greedy", |pod| pod["status"]["containerStatuses"][0]["restartCount"] == 1)
        .await;
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!((&last["reason"], &last["exitCode"]), (&json!("OOMKilled"), &json!(137)));
    for name in ["modest", "sharing"] {
        let pod = node.pod(name).await;
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0, "{name}");
        assert_eq!(pod["status"]["phase"], "Running", "{name}");
    }
    node.stop().await;
}

#[tokio::test]
async fn the_log_of_a_failed_container_can_be_its_last_words() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let mut container = sh("c", "echo first; echo last >&2; exit 9");
    container["terminationMessagePolicy"] = "FallbackToLogsOnError".into();
    node.create("p", json!({"restartPolicy": "Never", "containers": [container]})).await;
    let pod = node.until_phase("p", "Failed").await;
    let ended = &state(&pod)["terminated"];
    assert_eq!(ended["exitCode"], 9);
    let words = ended["message"].as_str().unwrap();
    assert!(words.contains("first") && words.contains("last"), "{words:?}");
    node.stop().await;
}

#[tokio::test]
async fn a_pod_may_be_active_only_for_so_long() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let spec = json!({
        "activeDeadlineSeconds": 1,
        "terminationGracePeriodSeconds": 1,
        "containers": [sh("c", "exec sleep 4305")],
    });
    node.create("p", spec).await;
    let pod = node.until_phase("p", "Failed").await;
    assert_eq!(pod["status"]["reason"], "DeadlineExceeded");
    assert_eq!(state(&pod)["terminated"]["exitCode"], 143);
    assert!(!lives(dir.path(), "4305"));
    node.stop().await;
}

#[tokio::test]
async fn a_pod_that_is_deleted_at_once_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    node.run("p", "trap '' TERM; sleep 4306", "Always").await;
    until("it runs", || lives(dir.path(), "4306")).await;
    node.api.delete_with(&format!("{PODS}/p"), json!({"gracePeriodSeconds": 0})).await.is(200);
    until("it ends", || !lives(dir.path(), "4306")).await;
    let pods = dir.path().join("pods");
    until("its directory goes", || std::fs::read_dir(&pods).unwrap().count() == 0).await;
    node.stop().await;
}
