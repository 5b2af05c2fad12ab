use k8s_openapi::api::{core::v1::Pod, rbac::v1::ClusterRoleBinding};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    operator::create_service,
    running::{Up, World},
    terminal::Terminal,
    wait::until,
};

pub(crate) const SHELL: &str = "docker.io/library/sh:*=sh";

/// A pod of one container, which has a second to end.
pub(crate) async fn create(up: &Up, name: &str, image: &str, script: &str) -> Api<Pod> {
    create_with(up, name, 1, json!({"name": "c", "image": image, "args": ["-c", script]})).await
}

pub(crate) async fn create_with(up: &Up, name: &str, grace: u32, container: Value) -> Api<Pod> {
    let pods: Api<Pod> = Api::default_namespaced(up.client().await);
    let pod = json!({
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": if name.starts_with("once") { "Never" } else { "Always" },
            "terminationGracePeriodSeconds": grace,
            "containers": [container],
        },
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    // The account that pods are given comes a moment after its namespace.
    until("creation", || async {
        pods.create(&PostParams::default(), &pod).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
    pods
}

/// Waits until what is seen is as wanted.
async fn shown(terminal: &Terminal, wanted: &[&str]) -> Vec<String> {
    until("the drawing", || async {
        let rows = terminal.rows();
        let is_there = |text: &&str| rows.iter().any(|row| row.contains(text));
        if wanted.iter().all(is_there) { Ok(rows) } else { Err(rows.join("\n")) }
    })
    .await
}

#[tokio::test]
async fn on_a_terminal_what_waits_is_redrawn_in_place() {
    let world = World::new();
    let terminal = Terminal::new(100, 40);
    let mut up = world.up_on(&terminal, &["--image-rule", SHELL], &[]);
    create(&up, "fine", "sh:1", "exec sleep 4601").await;
    shown(&terminal, &["1 ready"]).await;
    create(&up, "lost", "example.com/engine:2", "").await;
    let pods = create(&up, "crash", "sh:1", "echo out of luck; exit 3").await;
    let images = world.usual_dir().join("images.toml");
    let seen = [
        "default/lost   stuck     0/1",
        "no rule maps image \"example.com/engine:2\"",
        "    [[image]]",
        "    match = \"example.com/engine:*\"",
        "    argv = [\"/path/to/program\"]",
        "default/crash  stuck     0/1",
        "crash loop, restarted once: exit code 3: out of luck",
        "1 ready",
    ];
    let rows = shown(&terminal, &seen).await;
    assert!(rows.concat().replace(' ', "").contains(images.to_str().unwrap()), "{rows:#?}");
    for once in ["default/lost", "default/crash", "1 ready"] {
        assert_eq!(rows.iter().filter(|row| row.contains(once)).count(), 1, "{rows:#?}");
    }

    // A log line comes above it and stays.
    let bindings: Api<ClusterRoleBinding> = Api::all(up.client().await);
    bindings.delete("windlass", &DeleteParams::default()).await.unwrap();
    create_service(&up.client().await, "mute").await;
    let rows = shown(&terminal, &["forbidden", "default/lost"]).await;
    let at = |text: &str| rows.iter().position(|row| row.contains(text)).unwrap();
    assert!(at("forbidden") < at("default/crash"), "{rows:#?}");
    assert_eq!(rows.last().unwrap(), "", "the cursor is below");

    for name in ["lost", "crash"] {
        pods.delete(name, &DeleteParams::default()).await.unwrap();
    }
    until("rest", || async {
        let rows = terminal.rows();
        let is_gone = !rows.iter().any(|row| row.contains("default/"));
        if is_gone && rows.iter().any(|row| row == "1 ready") {
            Ok(())
        } else {
            Err(rows.join("\n"))
        }
    })
    .await;
    up.signal(Signal::INT);
    assert!(up.wait().success());
    let rows = terminal.rows();
    assert!(!rows.iter().any(|row| row.contains("ready") || row.contains("ending")), "{rows:#?}");
    let written = terminal.written();
    assert!(written.contains("ending 1 pod; Ctrl-C once more ends it at once"));
    assert!(written.contains("\x1b[31mstuck"), "in colour");
}

#[tokio::test]
async fn colours_can_be_refused() {
    let world = World::new();
    let terminal = Terminal::new(60, 10);
    let up = world.up_on(&terminal, &["--log-level", "info"], &[("NO_COLOR", "1")]);
    create(&up, "lost", "example.com/engine:2", "").await;
    shown(&terminal, &["default/lost  stuck"]).await;
    up.terminate();
    let written = terminal.written();
    let sequences: Vec<_> = written.split("\x1b[").skip(1).collect();
    assert!(!sequences.is_empty());
    for sequence in sequences {
        let end = sequence.trim_start_matches(|c: char| c.is_ascii_digit()).chars().next();
        assert_ne!(end, Some('m'), "{written:?}");
    }
}

#[tokio::test]
async fn elsewhere_each_change_is_a_line() {
    let world = World::new();
    let up = world.up(&["--image-rule", SHELL]);
    create(&up, "fine", "sh:1", "exec sleep 4602").await;
    let pods = create(&up, "lost", "example.com/engine:2", "").await;
    let told = async |wanted: &str| {
        until("line", || async {
            let log = up.log();
            if log.lines().any(|line| line.starts_with(wanted)) { Ok(log) } else { Err(log) }
        })
        .await
    };
    told("default/fine: ready").await;
    told("default/lost: stuck: no rule maps image").await;
    let log = told("    argv = ").await;
    assert_eq!(log.lines().filter(|line| line.starts_with("    [[image]]")).count(), 1, "{log}");
    pods.delete("lost", &DeleteParams::default()).await.unwrap();
    told("default/lost: gone").await;
    let before = up.log();
    up.signal(Signal::TERM);
    let log = told("ending 1 pod; the same signal once more ends it at once").await;
    assert!(log.starts_with(&before) && !log.contains('\x1b'), "{log}");
    let mut said: Vec<&str> = before.lines().collect();
    let all = said.len();
    said.sort_unstable();
    said.dedup();
    assert_eq!(said.len(), all, "nothing is said twice: {before}");
}

#[tokio::test]
async fn a_port_in_use_is_told_in_the_words_of_the_program() {
    let world = World::new();
    let up = world.up(&["--ephemeral"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let dir = world.path("inner");
    let container = json!({
        "name": "c", "image": "ghcr.io/windlass/windlass:0",
        "args": ["up", "--port", port, "--dir", dir, "--progress", "none"],
    });
    create_with(&up, "port", 1, container).await;
    let want = format!("error: cannot listen on 127.0.0.1:{port} (--port)");
    until("line", || async {
        let log = up.log();
        let is_there = log.lines().any(|line| {
            line.starts_with("default/port: stuck: crash loop") && line.contains(&want)
        });
        if is_there { Ok(()) } else { Err(log) }
    })
    .await;
    up.terminate();
}

#[tokio::test]
async fn nothing_is_shown_to_who_does_not_want_it() {
    let world = World::new();
    for silent in [["--progress", "none"], ["--log-format", "json"]] {
        let up = world.up(&["--ephemeral", silent[0], silent[1]]);
        let pods = create(&up, "lost", "example.com/engine:2", "").await;
        until("waiting", || async {
            let pod = pods.get("lost").await.unwrap();
            let text = serde_json::to_string(&pod.status).unwrap();
            if text.contains("no rule maps image") { Ok(()) } else { Err(text) }
        })
        .await;
        let log = world.path("log");
        up.terminate();
        let log = std::fs::read_to_string(log).unwrap();
        assert_eq!(log, "");
    }
}
