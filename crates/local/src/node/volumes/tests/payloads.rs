use super::*;

#[test]
fn a_config_map_becomes_links_into_a_directory_of_its_time() {
    let node = Node::new().with_map("m", json!({"a.txt": "one", "b": "two"}));
    let dir = node.only(&pod(json!({"configMap": {"name": "m", "defaultMode": 0o640}}))).unwrap();
    assert!(dir.starts_with(node.places.pod(UID).unwrap().join("volumes")));
    assert_eq!(
        listing(&dir),
        ["(time)", "..data -> (time)", "a.txt -> ..data/a.txt", "b -> ..data/b"]
    );
    let time = fs::read_link(dir.join("..data")).unwrap();
    assert_eq!(time.to_str().unwrap(), "..2026_11_15_10_20_30.500000000");
    assert_eq!(fs::read_to_string(dir.join("a.txt")).unwrap(), "one");
    assert_eq!(mode(&dir.join("a.txt")), 0o640);
    assert_eq!(mode(&dir), 0o700);
}

#[test]
fn items_choose_keys_paths_and_modes() {
    let node = Node::new().with_map("m", json!({"a": "one", "b": "two", "c": "three"}));
    let items = json!([
        {"key": "a", "path": "x/y/a"}, {"key": "b", "path": "x/b", "mode": 0o400}, {"key": "a", "path": "z"},
    ]);
    let dir = node.only(&pod(json!({"configMap": {"name": "m", "items": items}}))).unwrap();
    assert_eq!(listing(&dir), ["(time)", "..data -> (time)", "x -> ..data/x", "z -> ..data/z"]);
    assert_eq!(fs::read_to_string(dir.join("x/y/a")).unwrap(), "one");
    assert_eq!(mode(&dir.join("x/b")), 0o400);
    assert_eq!(mode(&dir.join("z")), 0o644);
}

#[test]
fn secrets_are_in_the_runtime_directory_and_for_the_owner_to_read() {
    let node = Node::new().with_secret("s", &[("key", b"\x00\xff"), ("run", b"#!")]);
    let items =
        json!([{"key": "key", "path": "key"}, {"key": "run", "path": "run", "mode": 0o755}]);
    let dir = node.only(&pod(json!({"secret": {"secretName": "s", "items": items}}))).unwrap();
    assert!(dir.starts_with(&node.places.runtime));
    assert_eq!(fs::read(dir.join("key")).unwrap(), b"\x00\xff");
    assert_eq!(mode(&dir.join("key")), 0o400);
    assert_eq!(mode(&dir.join("run")), 0o500);
}

#[test]
fn what_is_missing_is_named_unless_it_is_optional() {
    let node = Node::new().with_map("m", json!({"a": "1"})).with_secret("s", &[("k", b"1")]);
    let failed = "MountVolume.SetUp failed for volume \"v\" : ";
    for (source, want) in [
        (json!({"configMap": {"name": "x"}}), "configmap \"x\" not found"),
        (json!({"secret": {"secretName": "missing"}}), "secret \"missing\" not found"),
        (
            json!({"configMap": {"name": "m", "items": [{"key": "z", "path": "z"}]}}),
            "configmap references non-existent config key: z",
        ),
        (
            json!({"secret": {"secretName": "s", "items": [{"key": "z", "path": "z"}]}}),
            "references non-existent secret key: z",
        ),
        (
            json!({"projected": {"sources": [
                {"configMap": {"name": "x"}}, {"secret": {"name": "y"}}, {"secret": {"name": "s"}},
            ]}}),
            "[configmap \"x\" not found, secret \"y\" not found]",
        ),
        (
            json!({"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}),
            "failed to fetch token: none was asked for",
        ),
        (
            json!({"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "spec.x"}}]}}),
            "unsupported fieldPath: spec.x",
        ),
        (
            json!({"persistentVolumeClaim": {"claimName": "x"}}),
            "persistentvolumeclaim \"x\" not found",
        ),
        (
            json!({"nfs": {"server": "x", "path": "/"}}),
            "this kind of volume is not supported on a local node",
        ),
    ] {
        let error = node.set_up(&pod(source.clone())).unwrap_err();
        assert_eq!(error, format!("{failed}{want}"), "{source}");
    }
    for source in [
        json!({"configMap": {"name": "x", "optional": true}}),
        json!({"secret": {"secretName": "x", "optional": true}}),
        json!({"configMap": {"name": "m", "optional": true, "items": [{"key": "z", "path": "z"}]}}),
        json!({"projected": {"sources": [{"secret": {"name": "x", "optional": true}}]}}),
    ] {
        let dir = node.only(&pod(source.clone())).unwrap();
        assert_eq!(listing(&dir), ["(time)", "..data -> (time)"], "{source}");
    }
}

#[test]
fn volumes_that_nothing_mounts_are_not_looked_at() {
    let node = Node::new();
    let volumes = json!([{"name": "v", "secret": {"secretName": "missing"}}]);
    assert_eq!(node.set_up(&pod_with(volumes, json!([]))).unwrap(), Directories::new());
}

#[test]
fn paths_that_lead_out_are_refused_before_the_disk() {
    let node = Node::new().with_map("m", json!({"a": "1"}));
    for path in
        ["../x", "a/../../x", "/etc/x", "..", "..data", "..x/y", "", "a//b", "./a", "a/", "a\0"]
    {
        let items = json!([{"key": "a", "path": path}]);
        let error = node.set_up(&pod(json!({"configMap": {"name": "m", "items": items}})));
        let error = error.unwrap_err();
        assert!(error.contains("invalid path"), "{path:?}: {error}");
    }
    assert!(!node.dir.path().join("state/pods/x").exists());
}

#[test]
fn the_account_of_a_pod_is_projected() {
    let node = Node::new().with_map("kube-root-ca.crt", json!({"ca.crt": "PEM"})).with_token("t0");
    let source = json!({"projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [
            {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"},
            {"fieldRef": {"fieldPath": "metadata.labels"}, "path": "labels"},
        ]}},
    ]}});
    let mut pod = pod(source);
    let account = "/var/run/secrets/kubernetes.io/serviceaccount";
    pod.spec.as_mut().unwrap().containers[0].volume_mounts.as_mut().unwrap()[0].mount_path =
        account.into();
    let all = node.set_up(&pod).unwrap();
    let dir = &all["v"];
    assert!(dir.starts_with(&node.places.runtime));
    for (name, want) in [
        ("token", "t0"),
        ("ca.crt", "PEM"),
        ("namespace", "ns"),
        ("labels", "a=\"1\"\nb=\"x\\\"y\""),
    ] {
        assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), want);
    }
    assert_eq!(mode(&dir.join("token")), 0o400);

    let mounts =
        mounts(&pod, container(&pod), None, &node.places, &all, &Variables::new()).unwrap();
    let api = "127.0.0.1:6443".parse().unwrap();
    let file = write_kubeconfig(&pod, None, &mounts, &node.places, api).unwrap().unwrap();
    assert_eq!(mode(&file), 0o600);
    let config: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(config["clusters"][0]["cluster"]["server"], "https://127.0.0.1:6443");
    let token = config["users"][0]["user"]["tokenFile"].as_str().unwrap();
    assert_eq!(fs::read_to_string(token).unwrap(), "t0");

    let nothing = write_kubeconfig(&pod, None, &Mounts::default(), &node.places, api).unwrap();
    assert_eq!(nothing, None);
}

#[test]
fn tokens_are_due_after_four_fifths_of_their_life_or_a_day() {
    let token = |seconds: i64| Token {
        text: String::new(),
        issued: Timestamp::UNIX_EPOCH,
        expires: Timestamp::from_second(seconds).unwrap(),
    };
    for (life, age, want) in [
        (3600, 0, false),
        (3600, 2879, false),
        (3600, 2880, true),
        (3600, 9999, true),
        (1_000_000, 86_399, false),
        (1_000_000, 86_400, true),
    ] {
        let now = Timestamp::from_second(age).unwrap();
        assert_eq!(token(life).is_due(now), want, "{life} {age}");
    }
}
