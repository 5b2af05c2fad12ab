//! Limits of containers, where this machine lets us set them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use rustix::process::geteuid;
use serde_json::{Value, json};
use windlass_tests::{needs, until};

use crate::{objects, rules::RULES, up::World};

const ROOT: &str = "/sys/fs/cgroup";

/// A control group of version 2 for one test, gone with it.
struct Group(PathBuf);

impl Group {
    /// `None` says aloud what this machine lacks.
    fn new() -> Option<Self> {
        let shared = fs::read_to_string(Path::new(ROOT).join("cgroup.subtree_control"));
        let shared = shared.unwrap_or_default();
        let has = |name| shared.split_whitespace().any(|one| one == name);
        let dir = Path::new(ROOT).join(format!("windlass-test-{}", std::process::id()));
        if !geteuid().is_root() || !has("cpu") || !has("memory") || fs::create_dir(&dir).is_err() {
            needs::note("needs root and control groups of version 2 with cpu and memory");
            return None;
        }
        Some(Self(dir))
    }

    /// The groups of runs.
    fn runs(&self) -> Vec<PathBuf> {
        let inside = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        let is_run =
            |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("run-");
        inside.filter(is_run).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        let inside = fs::read_dir(&self.0).into_iter().flatten().flatten();
        inside.for_each(|entry| drop(fs::remove_dir(entry.path())));
        let _ = fs::remove_dir(&self.0);
    }
}

fn pod(name: &str, script: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "c", "image": "local/shell:1", "args": [script],
                "resources": {"limits": {"memory": "32Mi", "cpu": "500m"}},
            }],
        },
    })
}

#[tokio::test]
async fn a_pod_over_its_memory_limit_is_killed_for_it_and_nothing_is_left() {
    let Some(group) = Group::new() else { return };
    let world = World::of_root(RULES);
    let up = world.up_in(&group.0);
    let client = up.client().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let greedy = pod("greedy", "exec dd if=/dev/zero of=/dev/null bs=256M count=1");
    objects::apply(&client, &greedy).await;
    let ended = until("end", || async {
        let pod = pods.get("greedy").await.map_err(|error| error.to_string())?;
        let state = &serde_json::to_value(&pod.status).unwrap()["containerStatuses"][0]["state"];
        let ended = state["terminated"].clone();
        if ended.is_object() { Ok(ended) } else { Err(state.to_string()) }
    })
    .await;
    assert_eq!((&ended["reason"], &ended["exitCode"]), (&json!("OOMKilled"), &json!(137)));

    // It has left its group of processes and has no variables. It is still in the control group, and has
    // the limit that marks it.
    let sly = pod("sly", "env -i setsid sleep 48410 & sleep 0.2; exec sleep 48411");
    objects::apply(&client, &sly).await;
    let alive = |word: &str| {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines
            .into_iter()
            .any(|line| line.split(|byte| *byte == 0).any(|one| one == word.as_bytes()))
    };
    let seen = async |what: &str, is_so: &dyn Fn() -> bool| {
        until(what, || async { if is_so() { Ok(()) } else { Err(what.to_owned()) } }).await;
    };
    seen("both run", &|| alive("48410") && alive("48411")).await;
    let runs = group.runs();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let limit = |file: &str| fs::read_to_string(runs[0].join(file)).unwrap();
    assert_eq!((&*limit("memory.max"), &*limit("cpu.max")), ("33554432\n", "50000 100000\n"));
    objects::delete(&client, &sly).await;
    seen("both have ended", &|| !alive("48410") && !alive("48411")).await;
    seen("their group has gone", &|| group.runs().is_empty()).await;
    up.terminate();
}
