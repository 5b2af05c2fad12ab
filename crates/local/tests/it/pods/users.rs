//! Users that pods name, where the tests are run by root.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::node::{Node, PODS, api, sh, state};

/// A directory that others may pass through; `None` says aloud that only root can choose users.
fn passable() -> Option<TempDir> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can run processes as others");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    Some(dir)
}

async fn started(dir: &Path) -> Node {
    let state = dir.join("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
    let node = Node::start(api(&state).await, &state);
    let map = json!({"metadata": {"name": "m"}, "data": {"k": "from map"}});
    node.api.post("/api/v1/namespaces/default/configmaps", map).await.is(201);
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "from secret"}});
    node.api.post("/api/v1/namespaces/default/secrets", secret).await.is(201);
    node
}

fn mounted(mut container: Value) -> Value {
    container["volumeMounts"] = json!([
        {"name": "data", "mountPath": "/data"},
        {"name": "data", "mountPath": "/part", "subPath": "a/b"},
        {"name": "map", "mountPath": "/map"},
        {"name": "secret", "mountPath": "/secret"},
        {"name": "secret", "mountPath": "/copy", "subPath": "k"},
    ]);
    container
}

fn spec(context: Value, container: Value) -> Value {
    json!({
        "restartPolicy": "Never",
        "securityContext": context,
        "containers": [container],
        "volumes": [
            {"name": "data", "emptyDir": {}},
            {"name": "map", "configMap": {"name": "m", "items": [{"key": "k", "path": "d/k"}]}},
            {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0o400}},
        ],
    })
}

async fn log(node: &Node, name: &str) -> String {
    node.api.get(&format!("{PODS}/{name}/log")).await.is(200).text
}

#[tokio::test]
async fn a_pod_runs_as_the_user_it_names_and_has_its_volumes() {
    let Some(dir) = passable() else { return };
    let node = started(dir.path()).await;
    let script = "set -e; id -u; id -g; id -G; cat /map/d/k; echo; cat /secret/k; echo; cat /copy; echo; \
        stat -L -c %a /secret/k; echo made > /data/f; cat /data/f; echo part > /part/f; \
        cat /data/a/b/f; echo home > $HOME/f; cat $HOME/f; test -r $KUBECONFIG; \
        test -s /var/run/secrets/kubernetes.io/serviceaccount/token; \
        ! touch /map/d/new 2> /dev/null; echo -n bye > /dev/termination-log ; exit 0";
    let context = json!({"runAsUser": 4242, "runAsGroup": 4243, "runAsNonRoot": true});
    node.create("p", spec(context, mounted(sh("c", script)))).await;
    let over =
        |pod: &Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let pod = node.until("p", over).await;
    let said = log(&node, "p").await;
    let want = "4242\n4243\n4243\nfrom map\nfrom secret\nfrom secret\n400\nmade\npart\nhome\n";
    assert_eq!(said, want, "{pod:#}");
    assert_eq!(pod["status"]["phase"], "Succeeded", "{said}");
    assert_eq!(state(&pod)["terminated"]["message"], "bye");
    // Nobody else can look around.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let state = dir.path().join("state");
    let own = state.join("pods").join(pod["metadata"]["uid"].as_str().unwrap());
    assert_eq!(mode(&state), 0o711);
    assert_eq!(mode(&own), 0o711);
    assert_eq!(mode(&own.join("run.json")), 0o600);
    assert_eq!(mode(&own.join("volumes/data")), 0o700);
    assert_eq!(mode(&own.join("scratch-4242")), 0o700);
    node.stop().await;
}

#[tokio::test]
async fn probes_of_a_container_run_as_its_user() {
    let Some(dir) = passable() else { return };
    let node = started(dir.path()).await;
    let mut container = sh("c", "exec sleep 4821");
    container["securityContext"] = json!({"runAsUser": 4244});
    container["readinessProbe"] =
        json!({"exec": {"command": ["sh", "-c", "test $(id -u) = 4244"]}, "periodSeconds": 1});
    node.create("p", json!({"containers": [container]})).await;
    node.until("p", |pod| pod["status"]["containerStatuses"][0]["ready"] == true).await;
    node.stop().await;
}

#[tokio::test]
async fn containers_of_different_users_share_what_their_group_may_have() {
    let Some(dir) = passable() else { return };
    let node = started(dir.path()).await;
    let mut first = mounted(sh("i", "umask 027; cat /secret/k > /data/f"));
    first["securityContext"] = json!({"runAsUser": 4245});
    let script = "cat /data/f; echo; stat -c %u:%g /data/f; cat /secret/k";
    let mut spec = spec(json!({"runAsUser": 4246, "fsGroup": 4250}), mounted(sh("c", script)));
    spec["initContainers"] = json!([first]);
    node.create("p", spec.clone()).await;
    let pod = node.until_phase("p", "Succeeded").await;
    assert_eq!(log(&node, "p").await, "from secret\n4245:4250\nfrom secret\n", "{pod:#}");
    // Without a group of their own everybody on the machine could read the secret.
    spec["securityContext"] = json!({"runAsUser": 4246});
    node.create("q", spec).await;
    node.until_told("q", "containers of different users share it: set fsGroup for them").await;
    node.stop().await;
}

#[tokio::test]
async fn a_pod_that_must_not_be_root_waits_where_it_would_be() {
    let Some(dir) = passable() else { return };
    let node = started(dir.path()).await;
    for (name, context, want) in [
        (
            "image",
            json!({"runAsNonRoot": true}),
            "container has runAsNonRoot and image will run as root",
        ),
        (
            "named",
            json!({"runAsNonRoot": true, "runAsUser": 0}),
            "container's runAsUser breaks non-root policy",
        ),
    ] {
        node.create(name, spec(context, sh("c", "exit 0"))).await;
        let waits = |pod: &Value| state(pod)["waiting"]["reason"] == "CreateContainerConfigError";
        let pod = node.until(name, waits).await;
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        let want = format!("{want} (pod: \"{name}_default({uid})\", container: c)");
        assert_eq!(state(&pod)["waiting"]["message"], want);
    }
    node.stop().await;
}

#[tokio::test]
async fn a_directory_that_is_closed_to_the_user_is_named() {
    let Some(dir) = passable() else { return };
    fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
    let node = started(dir.path()).await;
    node.create("p", spec(json!({"runAsUser": 4247}), sh("c", "exit 0"))).await;
    let waits = |pod: &Value| state(pod)["waiting"]["reason"] == "CreateContainerConfigError";
    let pod = node.until("p", waits).await;
    let text = state(&pod)["waiting"]["message"].as_str().unwrap();
    assert!(text.starts_with("user 4247 cannot reach "), "{text}");
    assert!(text.ends_with(&format!("as {} is closed to others", dir.path().display())), "{text}");
    node.stop().await;
}
