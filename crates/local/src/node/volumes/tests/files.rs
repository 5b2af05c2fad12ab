use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn an_update_turns_all_files_at_once_and_leaves_nothing_behind() {
    let mut node = Node::new().with_map("m", json!({"a": "1", "b": "1", "old": "x"}));
    let pod = pod(json!({"configMap": {"name": "m"}}));
    let dir = node.set_up_at(&pod, at(1)).unwrap()["v"].clone();
    let first = fs::read_link(dir.join("..data")).unwrap();

    node.set_up_at(&pod, at(2)).unwrap();
    assert_eq!(fs::read_link(dir.join("..data")).unwrap(), first, "nothing changed");

    node = node.with_map("m", json!({"a": "2", "b": "1", "new": "y"}));
    node.set_up_at(&pod, at(3)).unwrap();
    assert_ne!(fs::read_link(dir.join("..data")).unwrap(), first);
    let want =
        ["(time)", "..data -> (time)", "a -> ..data/a", "b -> ..data/b", "new -> ..data/new"];
    assert_eq!(listing(&dir), want);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "2");

    // The clock may stand still.
    node = node.with_map("m", json!({"a": "3"}));
    node.set_up_at(&pod, at(3)).unwrap();
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "3");
    assert_eq!(listing(&dir), ["(time)", "..data -> (time)", "a -> ..data/a"]);
}

#[test]
fn a_changed_mode_is_a_change() {
    let node = Node::new().with_map("m", json!({"a": "1"}));
    let dir = node.only(&pod(json!({"configMap": {"name": "m", "defaultMode": 0o600}}))).unwrap();
    assert_eq!(mode(&dir.join("a")), 0o600);
    node.only(&pod(json!({"configMap": {"name": "m", "defaultMode": 0o755}}))).unwrap();
    assert_eq!(mode(&dir.join("a")), 0o755);
}

#[test]
fn leftovers_of_a_crash_do_not_disturb() {
    let node = Node::new().with_map("m", json!({"a": "1"}));
    let pod = pod(json!({"configMap": {"name": "m"}}));
    let dir = node.places.pod(UID).unwrap().join("volumes/v");
    fs::create_dir_all(dir.join("..2020_01_01_00_00_00.000000000")).unwrap();
    symlink("..nowhere", dir.join("..data_tmp")).unwrap();
    symlink("..nowhere", dir.join("..data")).unwrap();
    symlink("..data/gone", dir.join("gone")).unwrap();
    node.set_up(&pod).unwrap();
    assert_eq!(listing(&dir), ["(time)", "..data -> (time)", "a -> ..data/a"]);
}

#[test]
fn what_a_process_put_in_the_way_is_replaced_and_links_are_not_followed() {
    let node = Node::new().with_map("m", json!({"a": "1"}));
    let outside = node.dir.path().join("precious");
    fs::write(&outside, "mine").unwrap();
    let pod = pod(json!({"configMap": {"name": "m"}}));
    let dir = node.set_up(&pod).unwrap()["v"].clone();
    fs::remove_file(dir.join("a")).unwrap();
    symlink(&outside, dir.join("a")).unwrap();
    node.set_up(&pod).unwrap();
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "1");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
}

#[test]
fn an_empty_directory_keeps_what_is_put_there() {
    let node = Node::new();
    let pod = pod(json!({"emptyDir": {}}));
    let dir = node.only(&pod).unwrap();
    fs::write(dir.join("x"), "kept").unwrap();
    assert_eq!(node.only(&pod).unwrap(), dir);
    assert_eq!(fs::read_to_string(dir.join("x")).unwrap(), "kept");
    let memory = super::pod(json!({"emptyDir": {"medium": "Memory"}}));
    assert!(node.only(&memory).unwrap().starts_with(&node.places.runtime));
}

#[test]
fn a_directory_over_its_limit_is_told() {
    let node = Node::new();
    let pod = pod(json!({"emptyDir": {"sizeLimit": "64Ki"}}));
    assert_eq!(over_limit(&pod, &node.places).unwrap(), None);
    let dir = node.only(&pod).unwrap();
    fs::create_dir(dir.join("deep")).unwrap();
    symlink("/", dir.join("deep/root")).unwrap();
    assert_eq!(over_limit(&pod, &node.places).unwrap(), None);
    fs::write(dir.join("deep/x"), vec![1; 100_000]).unwrap();
    assert_eq!(
        over_limit(&pod, &node.places).unwrap().unwrap(),
        "Usage of EmptyDir volume \"v\" exceeds the limit \"64Ki\". "
    );
}

#[test]
fn paths_of_the_machine_are_checked_as_their_type_says() {
    let node = Node::new();
    let root = node.dir.path();
    fs::write(root.join("file"), "").unwrap();
    let check = |name: &str, kind: &str| {
        let path = root.join(name);
        let pod = pod(json!({"hostPath": {"path": path, "type": kind}}));
        match node.only(&pod) {
            Ok(found) => {
                assert_eq!(found, path);
                "ok".to_owned()
            }
            Err(error) => error.replace(&*root.to_string_lossy(), ""),
        }
    };
    let failed = "MountVolume.SetUp failed for volume \"v\" : hostPath type check failed: ";
    for (name, kind, want) in [
        ("nothing", "", "ok".to_owned()),
        ("file", "File", "ok".into()),
        ("file", "FileOrCreate", "ok".into()),
        ("made", "FileOrCreate", "ok".into()),
        ("deep/made", "DirectoryOrCreate", "ok".into()),
        ("deep/made", "Directory", "ok".into()),
        ("nothing", "Directory", format!("{failed}/nothing is not a directory")),
        ("file", "DirectoryOrCreate", format!("{failed}/file is not a directory")),
        ("deep", "File", format!("{failed}/deep is not a file")),
        ("file", "Socket", format!("{failed}/file is not a socket file")),
        ("file", "CharDevice", format!("{failed}/file is not a character device")),
        ("file", "BlockDevice", format!("{failed}/file is not a block device")),
    ] {
        assert_eq!(check(name, kind), want, "{name} {kind}");
    }
    assert!(root.join("made").is_file());
    assert!(check("a/../file", "").contains("must not contain '..'"));
}

#[test]
fn a_claim_leads_to_the_directory_of_its_volume() {
    let node = Node::new();
    let ours = node.places.persistent("pvc-1").unwrap();
    let other = node.dir.path().join("other");
    let volume = |name: &str, source: Value| {
        let mut volume = json!({"metadata": {"name": name}, "spec": source});
        volume["kind"] = "PersistentVolume".into();
        volume
    };
    let node = node
        .with_claim("own", Some(volume("pvc-1", json!({"local": {"path": ours}}))))
        .with_claim("user", Some(volume("x", json!({"hostPath": {"path": other}}))))
        .with_claim("waiting", None);
    let of = |name: &str| node.only(&pod(json!({"persistentVolumeClaim": {"claimName": name}})));
    assert_eq!(of("own").unwrap(), ours);
    assert!(ours.is_dir());
    assert!(of("user").unwrap_err().ends_with("does not exist"));
    fs::create_dir(&other).unwrap();
    assert_eq!(of("user").unwrap(), other);
    assert!(of("waiting").unwrap_err().ends_with("claim \"waiting\" is not bound"));
}

#[test]
fn a_volume_is_mounted_only_by_the_claim_that_both_say_it_is_bound_to() {
    let node = Node::new();
    let dir = node.dir.path().join("x");
    fs::create_dir(&dir).unwrap();
    let own = json!({"namespace": "ns", "name": "c", "uid": "u"});
    for (case, phase, reference, want) in [
        ("both say so", "Bound", own.clone(), true),
        ("the claim does not yet", "Pending", own, false),
        ("the volume is free", "Bound", Value::Null, false),
        ("reserved by name", "Bound", json!({"namespace": "ns", "name": "c"}), false),
        ("reserved for another", "Pending", json!({"namespace": "ns", "name": "d"}), false),
        ("of a namesake", "Bound", json!({"namespace": "ns", "name": "c", "uid": "v"}), false),
        ("elsewhere", "Bound", json!({"namespace": "n2", "name": "c", "uid": "u"}), false),
    ] {
        let volume = json!({"metadata": {"name": "v"},
            "spec": {"hostPath": {"path": dir}, "claimRef": reference}});
        let node = Node::new().with_claim_in(phase, "c", Some(volume));
        let found = node.only(&pod(json!({"persistentVolumeClaim": {"claimName": "c"}})));
        assert_eq!(found.is_ok(), want, "{case}");
        if let Err(text) = found {
            assert!(text.ends_with("claim \"c\" is not bound"), "{case}: {text}");
        }
    }
}

#[test]
fn a_pod_is_removed_whatever_it_did_to_its_files() {
    let node = Node::new().with_secret("s", &[("k", b"1")]);
    let outside = node.dir.path().join("precious");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "mine").unwrap();
    let volumes = json!([
        {"name": "e", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "s"}},
    ]);
    let mounts = json!([{"name": "e", "mountPath": "/e"}, {"name": "s", "mountPath": "/s"}]);
    let all = node.set_up(&pod_with(volumes, mounts)).unwrap();
    let deep = all["e"].join("deep");
    fs::create_dir(&deep).unwrap();
    fs::write(deep.join("x"), "").unwrap();
    symlink(&outside, deep.join("link")).unwrap();
    fs::set_permissions(&deep, fs::Permissions::from_mode(0o000)).unwrap();
    remove(&node.places, UID).unwrap();
    assert!(!node.places.pod(UID).unwrap().exists());
    assert!(!node.places.private_pod(UID).unwrap().exists());
    assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), "mine");
    remove(&node.places, UID).unwrap();
    assert!(remove(&node.places, "..").is_err());
}

#[test]
fn secrets_go_even_if_the_rest_cannot() {
    let node = Node::new();
    let secret = node.places.private_pod(UID).unwrap();
    fs::create_dir_all(&secret).unwrap();
    let pods = node.places.pods();
    fs::create_dir_all(pods.parent().unwrap()).unwrap();
    fs::write(&pods, "in the way").unwrap();
    assert!(remove(&node.places, UID).is_err());
    assert!(!secret.exists());
}

/// Where `/v` of the only container leads.
fn part(node: &Node, pod: &Pod) -> Result<PathBuf, String> {
    let all = node.set_up(pod)?;
    let variables = [("NAME", "n"), ("UP", "..")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let mounts = mounts(pod, container(pod), None, &node.places, &all, &variables);
    mounts.map(|mounts| mounts.real("/v").unwrap()).map_err(|error| error.to_string())
}

fn sub_pod(source: Value, mount: Value) -> Pod {
    let mut pod = pod(source);
    let mut whole = json!({"name": "v", "mountPath": "/v"});
    whole.as_object_mut().unwrap().extend(mount.as_object().unwrap().clone());
    pod.spec.as_mut().unwrap().containers[0].volume_mounts =
        Some(vec![serde_json::from_value(whole).unwrap()]);
    pod
}

#[test]
fn parts_of_volumes_never_lead_out_of_them() {
    let node = Node::new();
    let dir = node.only(&pod(json!({"emptyDir": {}}))).unwrap();
    let dir = fs::canonicalize(dir).unwrap();
    fs::create_dir_all(dir.join("real/deep")).unwrap();
    fs::write(dir.join("file"), "").unwrap();
    symlink("real", dir.join("inside")).unwrap();
    symlink("..", dir.join("up")).unwrap();
    symlink("/etc", dir.join("etc")).unwrap();
    symlink("real/../../..", dir.join("real/out")).unwrap();
    symlink("nothing", dir.join("dangling")).unwrap();
    let failed = "failed to prepare subPath for volumeMount \"v\" of container \"c\"";
    for (sub, want) in [
        ("real", Ok("real")),
        ("./real//deep/", Ok("real/deep")),
        ("inside/deep", Ok("real/deep")),
        ("file", Ok("file")),
        ("new/deep", Ok("new/deep")),
        ("up", Err(failed)),
        ("etc", Err(failed)),
        ("etc/passwd", Err(failed)),
        ("up/x", Err(failed)),
        ("real/out/x", Err(failed)),
        ("dangling", Err(failed)),
        ("file/x", Err(failed)),
        ("../x", Err("unable to provision SubPath `../x`: must not contain '..'")),
        ("a/../b", Err("unable to provision SubPath `a/../b`: must not contain '..'")),
        ("/etc", Err("error SubPath `/etc` must not be an absolute path")),
    ] {
        let got = part(&node, &sub_pod(json!({"emptyDir": {}}), json!({"subPath": sub})));
        let want = want.map(|path| dir.join(path)).map_err(str::to_owned);
        assert_eq!(got, want, "{sub}");
    }
    assert!(dir.join("new/deep").is_dir());
    assert!(!dir.parent().unwrap().join("x").exists());
}

#[test]
fn parts_may_be_named_by_variables() {
    let node = Node::new();
    let of =
        |text: &str| part(&node, &sub_pod(json!({"emptyDir": {}}), json!({"subPathExpr": text})));
    assert!(of("logs/$(NAME)").unwrap().ends_with("v/logs/n"));
    assert!(of("$$(NAME)").unwrap().ends_with("v/$(NAME)"));
    assert_eq!(of("$(NONE)").unwrap_err(), "missing value for \"NONE\"");
    assert!(of("$(UP)/x").unwrap_err().contains("must not contain '..'"));
}

#[test]
fn a_part_of_a_config_map_stays_while_the_rest_is_updated() {
    let mut node = Node::new().with_map("m", json!({"a": "1", "b": "1"}));
    let source = json!({"configMap": {"name": "m", "defaultMode": 0o640}});
    let pod = sub_pod(source, json!({"subPath": "a"}));
    let file = part(&node, &pod).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "1");
    assert_eq!(mode(&file), 0o640);
    node = node.with_map("m", json!({"a": "2"}));
    node.set_up_at(&pod, at(9)).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "1");
    // The next start of the container sees the new one.
    assert_eq!(part(&node, &pod).unwrap(), file);
    assert_eq!(fs::read_to_string(&file).unwrap(), "2");
}

#[test]
fn last_words_have_a_fresh_file_at_each_start() {
    let node = Node::new();
    let mut pod = pod(json!({"emptyDir": {}}));
    let all = node.set_up(&pod).unwrap();
    let start = |pod: &Pod| {
        mounts(pod, container(pod), None, &node.places, &all, &Variables::new()).unwrap()
    };
    let file = start(&pod).real("/dev/termination-log").unwrap();
    assert_eq!(file, node.places.last_words(UID, "c").unwrap());
    fs::write(&file, "died").unwrap();
    start(&pod);
    assert_eq!(fs::read_to_string(&file).unwrap(), "");
    // Not even through a link.
    let outside = node.dir.path().join("precious");
    fs::write(&outside, "mine").unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&outside, &file).unwrap();
    pod.spec.as_mut().unwrap().containers[0].termination_message_path = Some("/tmp/last".into());
    assert_eq!(start(&pod).real("/tmp/last").unwrap(), file);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever links a process leaves in its volume.
    #[test]
    fn no_maze_of_links_leads_out_of_a_volume(
        links in proptest::collection::vec(("[abc]", prop_oneof![
            Just("."), Just(".."), Just("../.."), Just("/"), Just("a"), Just("b/c"), Just("../x"),
            Just("d/../.."), Just("d/e"),
        ], any::<bool>()), 0..6),
        sub in proptest::collection::vec(prop_oneof![
            Just("a"), Just("b"), Just("c"), Just("d"), Just("."), Just("x"), Just(".."),
        ], 1..5),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let volume = dir.path().join("volume");
        fs::create_dir_all(volume.join("d/e")).unwrap();
        for (name, to, deep) in links {
            let place = if deep { volume.join("d") } else { volume.clone() };
            // Two links of one name: the first stays.
            let _ = symlink(to, place.join(name));
        }
        if let Ok(found) = subpath::beneath(&volume, &sub.join("/"), Readers::Node) {
            let found = fs::canonicalize(found).unwrap();
            prop_assert!(found.starts_with(fs::canonicalize(&volume).unwrap()), "{:?}", found);
        }
        let around: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        prop_assert_eq!(around.len(), 1, "nothing is made beside the volume");
    }
}
