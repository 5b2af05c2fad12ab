use serde_json::{Value, json};

use super::{
    node::{Node, PODS, api, lives, sh, state, until},
    program::{PORT, server},
};

#[tokio::test]
async fn a_pod_runs_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let script = "echo $POD_IP $HOSTNAME; echo -n done > /dev/termination-log ; exit 0";
    node.run("p", script, "Never").await;
    let pod = node.until_phase("p", "Succeeded").await;
    let ended = &state(&pod)["terminated"];
    assert_eq!((&ended["exitCode"], &ended["reason"]), (&json!(0), &json!("Completed")));
    assert_eq!(ended["message"], "done");
    assert!(pod["status"]["podIP"].as_str().unwrap().starts_with("127.64."));
    assert_eq!(pod["status"]["hostIP"], "127.0.0.1");
    assert_eq!(pod["status"]["resources"], json!({}));
    let container = &pod["status"]["containerStatuses"][0];
    assert!(container["containerID"].as_str().unwrap().starts_with("windlass://"));
    assert!(container["imageID"].as_str().unwrap().starts_with("sha256:"));
    let kinds: Vec<&str> = pod["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| condition["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
    );
    let told = node.until_told("p", "Started Container started").await;
    assert!(told.iter().any(|one| one.starts_with("Pulled Container image \"sh:1\" already")));
    node.stop().await;
}

#[tokio::test]
async fn the_node_is_an_object_with_a_lease() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/local";
    let api = node.api.clone();
    api.until(lease, |answer| answer.status == 200).await;
    let lease = api.get(lease).await.is(200).body;
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 40);
    let object = api.get("/api/v1/nodes/local").await.is(200).body;
    let ready = &object["status"]["conditions"][3];
    assert_eq!((&ready["type"], &ready["status"]), (&json!("Ready"), &json!("True")));
    assert_eq!(object["status"]["capacity"]["pods"], "110");
    assert_eq!(object["metadata"]["labels"]["kubernetes.io/hostname"], "local");
    node.stop().await;
}

#[tokio::test]
async fn init_containers_and_sidecars_run_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let mount = |mut container: Value| {
        container["volumeMounts"] = json!([{"name": "v", "mountPath": "/data"}]);
        container
    };
    let mut sidecar = mount(sh("s", "echo s >> /data/order; exec sleep 4201"));
    sidecar["restartPolicy"] = "Always".into();
    // Without it a sidecar counts as started as soon as it is a process.
    sidecar["startupProbe"] =
        json!({"exec": {"command": ["grep", "s", "/data/order"]}, "periodSeconds": 1});
    let spec = json!({
        "restartPolicy": "Never",
        "volumes": [{"name": "v", "emptyDir": {}}],
        "initContainers": [mount(sh("i", "echo i >> /data/order")), sidecar],
        "containers": [mount(sh("c", "echo c >> /data/order; tr '\\n' ' ' < /data/order > /dev/termination-log"))],
        "terminationGracePeriodSeconds": 5,
    });
    node.create("p", spec).await;
    let pod = node.until_phase("p", "Succeeded").await;
    let words = state(&pod)["terminated"]["message"].as_str().unwrap();
    assert_eq!(words, "i s c ");
    assert!(!lives(dir.path(), "4201"));
    assert_eq!(pod["status"]["initContainerStatuses"][1]["state"]["terminated"]["exitCode"], 143);
    node.stop().await;
}

#[tokio::test]
async fn a_crash_loop_backs_off() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    node.run("p", "echo oops; exit 3", "Always").await;
    let pod = node.until("p", |pod| state(pod)["waiting"]["reason"] == "CrashLoopBackOff").await;
    let container = &pod["status"]["containerStatuses"][0];
    assert_eq!(container["restartCount"], 1);
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 3);
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    assert_eq!(
        container["state"]["waiting"]["message"],
        format!("back-off 10s restarting failed container=c pod=p_default({uid})")
    );
    assert_eq!(pod["status"]["phase"], "Running");
    node.until_told("p", "BackOff Back-off restarting failed container c in pod p_default(").await;
    node.stop().await;
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let missing = |policy: &str| json!({"restartPolicy": policy, "containers": [{"name": "c", "image": "missing:1"}]});
    node.create("always", missing("Always")).await;
    node.create("never", missing("Never")).await;
    let pod =
        node.until("always", |pod| state(pod)["waiting"]["reason"] == "RunContainerError").await;
    let text = "exec: \"no-such-program\": executable file not found in $PATH";
    assert_eq!(state(&pod)["waiting"]["message"], text);
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!((&last["exitCode"], &last["reason"]), (&json!(128), &json!("StartError")));
    let pod = node.until_phase("never", "Failed").await;
    assert_eq!(state(&pod)["terminated"]["reason"], "StartError");
    node.until_told("always", "Failed Error: exec: ").await;
    node.stop().await;
}

#[tokio::test]
async fn an_image_without_a_rule_says_what_to_add() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    node.create("p", json!({"containers": [{"name": "c", "image": "example.com/engine:2"}]})).await;
    let pod = node.until("p", |pod| state(pod)["waiting"]["reason"] == "ImagePullBackOff").await;
    let text = state(&pod)["waiting"]["message"].as_str().unwrap();
    assert!(text.starts_with("Back-off pulling image \"example.com/engine:2\": ErrImagePull: "));
    assert!(text.contains("images.toml"), "{text}");
    node.stop().await;
}

#[tokio::test]
async fn missing_sources_are_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let mut container = sh("c", "echo -n $A $(cat /v/k) > /dev/termination-log");
    container["env"] =
        json!([{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]);
    node.create("env", json!({"restartPolicy": "Never", "containers": [container.clone()]})).await;
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let volumes = json!([{"name": "v", "configMap": {"name": "m"}}]);
    let spec = json!({"restartPolicy": "Never", "containers": [container], "volumes": volumes});
    node.create("volume", spec).await;
    let pod = node
        .until("env", |pod| state(pod)["waiting"]["reason"] == "CreateContainerConfigError")
        .await;
    assert_eq!(state(&pod)["waiting"]["message"], "configmap \"m\" not found");
    node.until_told(
        "volume",
        "MountVolume.SetUp failed for volume \"v\" : configmap \"m\" not found",
    )
    .await;
    let map = json!({"metadata": {"name": "m"}, "data": {"k": "x"}});
    node.api.post("/api/v1/namespaces/default/configmaps", map).await.is(201);
    let pod = node.until_phase("volume", "Succeeded").await;
    assert_eq!(state(&pod)["terminated"]["message"], "x x");
    node.stop().await;
}

#[tokio::test]
async fn two_pods_have_the_same_port_on_addresses_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let gate = dir.path().join("gate");
    std::fs::write(&gate, "").unwrap();
    for name in ["a", "b"] {
        node.create(name, json!({"containers": [server(&gate)]})).await;
    }
    let a = node.until_phase("a", "Running").await;
    let b = node.until_phase("b", "Running").await;
    assert_ne!(a["status"]["podIP"], b["status"]["podIP"]);
    for (name, pod) in [("a", &a), ("b", &b)] {
        let address = (pod["status"]["podIP"].as_str().unwrap(), PORT);
        until("it listens", || std::net::TcpStream::connect(address).is_ok()).await;
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut stream, request).await.unwrap();
        let mut answer = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(name), "{answer}");
    }
    for name in ["a", "b"] {
        node.api
            .delete_with(&format!("{PODS}/{name}"), json!({"gracePeriodSeconds": 1}))
            .await
            .is(200);
        node.until_gone(name).await;
    }
    assert!(!lives(dir.path(), "pods::program::a_server_in_a_container"));
    let pods = dir.path().join("pods");
    until("the directories go", || std::fs::read_dir(&pods).unwrap().count() == 0).await;
    node.stop().await;
}

#[tokio::test]
async fn a_service_is_listened_for_while_somebody_answers() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let echo = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = echo.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = echo.accept().await {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"hello").await;
        }
    });
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 4680}]}});
    let service = node.api.post("/api/v1/namespaces/default/services", service).await.is(201).body;
    let address = format!("{}:4680", service["spec"]["clusterIP"].as_str().unwrap());
    let slice = |ready: bool| {
        json!({
            "metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
            "addressType": "IPv4",
            "ports": [{"port": port}],
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": ready}}],
        })
    };
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    node.api.post(slices, slice(true)).await.is(201);
    until("it answers", || std::net::TcpStream::connect(&address).is_ok()).await;
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut text).await.unwrap();
    assert_eq!(text, "hello");
    node.api.put(&format!("{slices}/s-1"), slice(false)).await.is(200);
    until("it refuses", || std::net::TcpStream::connect(&address).is_err()).await;
    node.stop().await;
}

#[tokio::test]
async fn a_port_that_cannot_be_had_is_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 4681}]}});
    let service = node.api.post("/api/v1/namespaces/default/services", service).await.is(201).body;
    let address = format!("{}:4681", service["spec"]["clusterIP"].as_str().unwrap());
    let taken = std::net::TcpListener::bind(&address).unwrap();
    let slice = json!({
        "metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4",
        "ports": [{"port": 1}],
        "endpoints": [{"addresses": ["127.0.0.1"]}],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    node.api.post(slices, slice).await.is(201);
    let told = node.until_told("s", "PortNotBound").await;
    assert!(told[0].starts_with(&format!("PortNotBound cannot listen on {address}: ")), "{told:?}");
    drop(taken);
    node.stop().await;
}

#[tokio::test]
async fn logs_are_read_through_the_api() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    node.run("p", "echo one; echo two >&2; exit 0", "Never").await;
    node.until_phase("p", "Succeeded").await;
    let log = node.api.get(&format!("{PODS}/p/log")).await.is(200).text;
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["one", "two"]);
    node.stop().await;
}

#[tokio::test]
async fn a_disk_that_takes_nothing_is_told_of_and_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let mut container = sh("c", "exit 0");
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let volumes = json!([{"name": "v", "configMap": {"name": "m"}}]);
    let spec = json!({"restartPolicy": "Never", "containers": [container], "volumes": volumes});
    let pod = node.create("p", spec).await;
    node.until_told("p", "FailedMount").await;
    // What cannot be written, for whatever reason, looks the same.
    let pods = dir.path().join("pods").join(pod["metadata"]["uid"].as_str().unwrap());
    std::fs::create_dir_all(pods.join("run.json/in-the-way")).unwrap();
    let map = json!({"metadata": {"name": "m"}, "data": {"k": "x"}});
    node.api.post("/api/v1/namespaces/default/configmaps", map).await.is(201);
    let pod =
        node.until("p", |pod| state(pod)["waiting"]["reason"] == "CreateContainerError").await;
    let text = state(&pod)["waiting"]["message"].as_str().unwrap();
    assert!(text.starts_with("cannot write "), "{text}");
    std::fs::remove_dir_all(pods.join("run.json")).unwrap();
    node.until_phase("p", "Succeeded").await;
    node.stop().await;
}
