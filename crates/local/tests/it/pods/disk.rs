//! A disk without room, as the node and the volumes of its pods find it.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
    process::Command,
};

use serde_json::{Value, json};

use super::node::{Node, PODS, api, sh, state, until};

/// Names the directory that is a small disk, for the test that stands for a program.
const DISK: &str = "WINDLASS_TEST_DISK";

/// This command sees a small disk at the directory, and nobody else does.
fn with_disk(dir: &Path, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.arg("--mount");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    let script = "mount -t tmpfs -o size=2m,mode=700 small \"$0\" && exec \"$@\"";
    command.args(["--", "sh", "-c", script]).arg(dir).arg(program).args(arguments);
    command.env(DISK, dir);
    command
}

#[test]
fn a_full_disk_is_told_of_and_pods_run_when_there_is_room_again() {
    let dir = tempfile::tempdir().unwrap();
    if !with_disk(dir.path(), "true", &[]).output().is_ok_and(|done| done.status.success()) {
        // Containers often forbid it.
        eprintln!("skipped: this system lets us have no disk of our own (unshare, mount)");
        return;
    }
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", "pods::disk::a_node_on_a_small_disk", "--nocapture"];
    let done = with_disk(dir.path(), program.to_str().unwrap(), &arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
}

/// Takes all that is left.
fn fill(file: &Path) {
    let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
    for size in [64 * 1024, 4096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[tokio::test]
async fn a_node_on_a_small_disk() {
    let Ok(disk) = std::env::var(DISK) else { return };
    let (disk, gates) = (Path::new(&disk), tempfile::tempdir().unwrap());
    let node = Node::start(api(disk).await, disk);
    let gate = |name: &str| gates.path().join(name);
    let wait =
        |name: &str| format!("while [ ! -e {} ]; do sleep 0.05; done;", gate(name).display());
    let words = "head -c 20000 /dev/zero | tr '\\0' x | fold -w 100;";
    let script = format!(
        "echo first; {} {words} echo; echo > {}; {} echo last; {} exit 0",
        wait("speak"),
        gate("spoken").display(),
        wait("again"),
        wait("end")
    );
    node.run("talker", &script, "Never").await;
    node.run("ender", &format!("{} exit 5", wait("fail")), "Never").await;
    for name in ["talker", "ender"] {
        node.until_phase(name, "Running").await;
    }
    let path = format!("{PODS}/talker/log");
    node.api.until(&path, |log| log.text.starts_with("first\n")).await;
    fill(&disk.join("ballast"));

    // Neither volumes nor runs can be written down.
    let map = json!({"metadata": {"name": "m"}, "data": {"k": "x"}});
    node.api.post("/api/v1/namespaces/default/configmaps", map).await.is(201);
    let mut container = sh("c", "cat /v/k");
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let volumes = json!([{"name": "v", "configMap": {"name": "m"}}]);
    let spec = json!({"restartPolicy": "Never", "containers": [container], "volumes": volumes});
    let filled = node.create("filled", spec).await;
    let told = node.until_told("filled", "FailedMount MountVolume.SetUp failed for volume").await;
    assert!(told.iter().any(|one| one.contains("No space left on device")), "{told:#?}");
    let plain = json!({
        "restartPolicy": "Never", "automountServiceAccountToken": false,
        "containers": [sh("c", "exit 0")],
    });
    node.create("plain", plain).await;
    let reason = |pod: &Value| state(pod)["waiting"]["reason"].clone();
    let pod = node.until("plain", |pod| reason(pod) == "CreateContainerError").await;
    let message = state(&pod)["waiting"]["message"].as_str().unwrap();
    assert!(message.starts_with("cannot write "), "{message}");
    assert!(message.contains("No space left on device"), "{message}");
    // What runs goes on, and its end is known, though it cannot be written down.
    fs::write(gate("speak"), "").unwrap();
    until("it has spoken", || gate("spoken").exists()).await;
    fs::write(gate("fail"), "").unwrap();
    let pod = node.until_phase("ender", "Failed").await;
    assert_eq!(state(&pod)["terminated"]["exitCode"], 5);
    assert_eq!(node.pod("talker").await["status"]["phase"], "Running");
    let halves = disk.join("pods").join(filled["metadata"]["uid"].as_str().unwrap());
    let halves = fs::read_dir(halves.join("volumes/v")).map_or(0, Iterator::count);
    assert!(halves <= 1, "{halves} tries have left something behind");

    fs::remove_file(disk.join("ballast")).unwrap();
    for name in ["filled", "plain"] {
        node.until_phase(name, "Succeeded").await;
    }
    fs::write(gate("again"), "").unwrap();
    let log = node.api.until(&path, |log| log.text.ends_with("last\n")).await.text;
    assert!(log.starts_with("first\n"), "{log}");
    assert!(log.contains(" bytes of output could not be written and are lost\n"), "{log}");
    fs::write(gate("end"), "").unwrap();
    node.until_phase("talker", "Succeeded").await;
    node.stop().await;
}
