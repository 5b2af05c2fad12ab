//! What the real kubectl shows of a pod while it runs.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
};

use serde_json::json;
use windlass_tests::{needs, wait};

use crate::{objects, rules::RULES, up::World};

#[tokio::test]
async fn logs_are_followed_line_by_line_until_the_container_ends() {
    let Some(kubectl) = needs::kubectl() else { return };
    let world = World::new(RULES);
    let up = world.up::<&str>(&[]);
    // Says each line when the test has seen the one before.
    let gate = |at: usize| world.path("models").join(format!("seen-{at}"));
    let wait = |at: usize| format!("while [ ! -e {} ]; do sleep 0.05; done", gate(at).display());
    let script = format!("echo one; {}; echo two >&2; {}; echo -n three; exit 3", wait(1), wait(2));
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "talks"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "local/shell:1", "args": [script]}],
        },
    });
    let client = up.client().await;
    objects::apply(&client, &pod).await;
    wait::until("start", || async {
        let pod = objects::get(&client, &pod).await.unwrap();
        if pod["status"]["phase"] == "Running" { Ok(()) } else { Err(pod.to_string()) }
    })
    .await;
    let mut child = Command::new(kubectl)
        .args(["logs", "--follow", "talks", "--kubeconfig"])
        .arg(up.kubeconfig())
        .env("HOME", world.path("home"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (sender, lines) = mpsc::channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    for (at, want) in [(1, "one"), (2, "two"), (3, "three")] {
        assert_eq!(lines.recv_timeout(wait::DEADLINE).as_deref(), Ok(want), "{}", up.log());
        // The next is not there before it is asked for.
        assert!(lines.try_recv().is_err(), "{want} was the last");
        fs::write(gate(at), "").unwrap();
    }
    let ended = wait::blocking("end of kubectl", || child.try_wait().unwrap().ok_or("it follows"));
    assert!(ended.success());
    assert_eq!(lines.recv().ok(), None);
    // The end of the log is there a moment before it is told.
    wait::until("end", || async {
        let pod = objects::get(&client, &pod).await.unwrap();
        if pod["status"]["phase"] == "Failed" { Ok(()) } else { Err(pod.to_string()) }
    })
    .await;
    up.terminate();
}
