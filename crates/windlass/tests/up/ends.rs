use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    os::{
        fd::OwnedFd,
        unix::{
            fs::{DirBuilderExt, PermissionsExt},
            process::ExitStatusExt,
        },
    },
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use rustix::process::Signal;
use serde_json::json;

use crate::{
    progress::{SHELL, create, create_with},
    running::{Up, World},
    wait::until,
};

/// A process of this world with this argument lives.
fn lives(world: &World, word: &str) -> bool {
    let home = format!("HOME={}/", world.path("").display().to_string().trim_end_matches('/'));
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let has = |path: &Path, file: &str, wanted: &dyn Fn(&[u8]) -> bool| {
        let text = fs::read(path.join(file)).unwrap_or_default();
        text.split(|byte| *byte == 0).any(wanted)
    };
    all.into_iter().any(|path| {
        has(&path, "cmdline", &|part| part == word.as_bytes())
            && has(&path, "environ", &|part| part.starts_with(home.as_bytes()))
    })
}

async fn until_lives(world: &World, word: &str) {
    until("process", || async { if lives(world, word) { Ok(()) } else { Err(word.to_owned()) } })
        .await;
}

/// Waits for the phase.
pub(crate) async fn reached(pods: &Api<Pod>, name: &str, phase: &str) -> Pod {
    until("phase", || async {
        let pod = pods.get(name).await.map_err(|error| error.to_string())?;
        let found = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if found == Some(phase) { Ok(pod) } else { Err(format!("{:?}", pod.status)) }
    })
    .await
}

pub(crate) async fn log_of(pods: &Api<Pod>, name: &str) -> String {
    pods.logs(name, &kube::api::LogParams::default()).await.unwrap()
}

#[tokio::test]
async fn a_second_signal_ends_pods_at_once() {
    let world = World::new();
    for (signal, word) in [(Signal::TERM, "4611"), (Signal::INT, "4612")] {
        let mut up = world.up(&["--ephemeral", "--image-rule", SHELL]);
        let script = format!("trap '' TERM; while :; do sleep {word}; done");
        let container = json!({"name": "c", "image": "sh:1", "args": ["-c", script]});
        create_with(&up, "deaf", 600, container).await;
        until_lives(&world, word).await;
        let begin = Instant::now();
        up.signal(signal);
        until("ending", || async {
            let log = up.log();
            if log.contains("ending 1 pod") { Ok(()) } else { Err(log) }
        })
        .await;
        assert!(lives(&world, word), "it has its grace");
        up.signal(signal);
        assert!(up.wait().success(), "{}", up.log());
        assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
        assert!(!lives(&world, word));
    }
}

/// As a process that was made for a pod, and has not run its program yet when `up` is killed, has them.
#[tokio::test]
async fn what_a_killed_one_has_left_keeps_neither_its_store_nor_its_port_from_the_next() {
    let world = World::new();
    let first = world.up::<&str>(&[]);
    let url = |up: &Up| up.said[0].split(';').next().unwrap().to_owned();
    let before = url(&first);
    first.kill();
    let dir = world.usual_dir();
    let pod = dir.join("pods/0f8fad5b-d9cb-469f-a165-70867728950e");
    fs::create_dir_all(&pod).unwrap();
    let token = format!("left-by-{}", std::process::id());
    let record = json!({"c": {"id": "i", "restarts": 0, "imageId": "", "token": token,
        "started": "2026-01-01T00:00:00Z"}});
    fs::write(pod.join("run.json"), record.to_string()).unwrap();
    let store = File::open(dir.join("store.redb")).unwrap();
    store.try_lock().unwrap();
    let port = before.rsplit(':').next().unwrap().parse().unwrap();
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let mut left = {
        let mut sleep = Command::new("sleep");
        sleep.arg("60").env("WINDLASS_RUN", &token).stderr(Stdio::null());
        sleep.stdin(store).stdout(OwnedFd::from(socket)).spawn().unwrap()
    };
    let second = world.up::<&str>(&[]);
    assert_eq!(url(&second), before);
    assert_eq!(left.wait().unwrap().signal(), Some(9));
    second.terminate();
}

#[tokio::test]
async fn what_a_killed_ephemeral_one_leaves_is_swept_by_the_next() {
    let world = World::new();
    let tmp = world.path("tmp");
    let up = world.up(&["--ephemeral", "--image-rule", SHELL]);
    create(&up, "left", "sh:1", "exec sleep 4613").await;
    until_lives(&world, "4613").await;
    let dir = up.kubeconfig().parent().unwrap().to_owned();
    let mode = fs::metadata(&dir).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "nobody else looks into it");
    up.kill();
    assert!(lives(&world, "4613") && dir.exists());
    // Others' directories that look alike: of somebody else's making, or one that is to stay.
    fs::DirBuilder::new().mode(0o700).create(tmp.join("windlass-abcdef")).unwrap();
    let kept = tmp.join("windlass-ABC123");
    world.up(&["--dir".as_ref(), kept.as_os_str()]).terminate();
    let beside = world.up(&["--ephemeral"]);
    assert!(!lives(&world, "4613"));
    assert!(!dir.exists());
    // One that runs stays, too.
    let another = world.up(&["--ephemeral"]);
    for up in [beside, another] {
        assert!(up.kubeconfig().exists());
        up.terminate();
    }
    let mut left: Vec<_> = fs::read_dir(&tmp).unwrap().map(|entry| entry.unwrap().path()).collect();
    left.sort();
    assert_eq!(left, [kept.clone(), tmp.join("windlass-abcdef")]);
    assert!(kept.join("store.redb").exists());
}

#[tokio::test]
async fn ends_of_pods_are_known_though_children_were_ignored() {
    let world = World::new();
    let up = world.up_unaware(&["--ephemeral", "--image-rule", SHELL]);
    let pods = create(&up, "once", "sh:1", "exit 3").await;
    let pod = reached(&pods, "once", "Failed").await;
    let status = pod.status.unwrap().container_statuses.unwrap().remove(0);
    assert_eq!(status.state.unwrap().terminated.unwrap().exit_code, 3);
    up.terminate();
}

#[tokio::test]
async fn the_image_of_windlass_is_the_program_that_runs() {
    let world = World::new();
    let up = world.up(&["--ephemeral"]);
    let image = concat!("ghcr.io/windlass/windlass:", env!("CARGO_PKG_VERSION"));
    let container = json!({"name": "c", "image": image, "args": ["--version"]});
    let pods = create_with(&up, "once", 1, container).await;
    reached(&pods, "once", "Succeeded").await;
    assert_eq!(log_of(&pods, "once").await, concat!("windlass ", env!("CARGO_PKG_VERSION"), "\n"));
    up.terminate();
}

/// What the scheduler says of a pod that asks for what there is not.
async fn refusal(up: &Up, resource: &str) -> String {
    let container = json!({
        "name": "c", "image": "sh:1", "args": ["-c", "exec sleep 4614"],
        "resources": {"limits": {resource: "2"}},
    });
    let pods = create_with(up, "greedy", 1, container).await;
    until("refusal", || async {
        let pod = pods.get("greedy").await.map_err(|error| error.to_string())?;
        let status = pod.status.unwrap_or_default();
        let all = status.conditions.unwrap_or_default();
        let found = all.into_iter().find(|condition| condition.type_ == "PodScheduled");
        let message = found.and_then(|condition| condition.message);
        assert_ne!(status.phase.as_deref(), Some("Running"));
        message.ok_or_else(|| "not yet".to_owned())
    })
    .await
}

#[tokio::test]
async fn a_pod_that_asks_for_more_devices_than_there_are_waits_in_the_usual_words() {
    let world = World::new();
    let offered = "nvidia.com/gpu=1";
    let up = world.up(&["--ephemeral", "--image-rule", SHELL, "--node-resource", offered]);
    let want = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.";
    let said = refusal(&up, "nvidia.com/gpu").await;
    assert!(said.starts_with(want), "{said}");
    until("line", || async {
        let log = up.log();
        if log.contains(&format!("default/greedy: stuck: {want}")) { Ok(()) } else { Err(log) }
    })
    .await;
    let node: Api<k8s_openapi::api::core::v1::Node> = Api::all(up.client().await);
    let node = node.get("local").await.unwrap().status.unwrap();
    assert_eq!(node.capacity.unwrap()["nvidia.com/gpu"].0, "1");
    up.terminate();
}
