use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ListParams, ObjectMeta, PostParams},
};
use rustix::process::Signal;

use crate::running::{Up, World};

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
        data: Some(BTreeMap::from([("a".to_owned(), "b".to_owned())])),
        ..Default::default()
    }
}

async fn config_maps(up: &Up) -> Vec<String> {
    let all: Api<ConfigMap> = Api::default_namespaced(up.client().await);
    let all = all.list(&ListParams::default()).await.unwrap();
    all.items.into_iter().filter_map(|map| map.metadata.name).collect()
}

#[tokio::test]
async fn up_answers_by_a_kubeconfig_for_its_owner_alone() {
    let world = World::new();
    let up = world.up::<&str>(&[]);
    let dir = world.usual_dir();
    assert_eq!(up.kubeconfig(), dir.join("kubeconfig"));
    assert!(up.said[0].starts_with("windlass is up at https://127.0.0.1:"), "{:?}", up.said);
    assert!(up.said[0].ends_with(&format!("its state is in {}", dir.display())), "{:?}", up.said);
    assert!(up.said[2].starts_with("the registry is at http://127.0.0.1:"), "{:?}", up.said);
    assert_eq!(up.said[4], "Ctrl-C or `windlass down` ends it");

    let version = up.client().await.apiserver_version().await.unwrap();
    assert!(version.git_version.contains("windlass"), "{version:?}");

    let mode = |path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(dir.clone()), 0o700);
    let files: Vec<_> = fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.contains(&dir.join("kubeconfig")), "{files:?}");
    for file in files {
        let want = if file.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(file.clone()), want, "{}", file.display());
    }
    assert_eq!(up.log(), "", "at rest there is nothing to complain of");
}

#[test]
fn a_second_up_on_the_same_store_says_who_runs() {
    let world = World::new();
    let dir = world.path("a state");
    let given = ["--dir".as_ref(), dir.as_os_str()];
    let up = world.up(&given);
    let second = world.run(&["up".as_ref(), given[0], given[1]]);
    assert_eq!(second.code, Some(1));
    let want = format!(
        "error: windlass is already up on {0} as process {1}; `windlass down --dir '{0}'` ends it\n",
        dir.display(),
        up.id()
    );
    assert_eq!((second.err, second.out.as_str()), (want, ""));
}

#[test]
fn down_ends_it_and_finds_nothing_afterwards() {
    let world = World::new();
    let mut up = world.up::<&str>(&[]);
    let dir = world.usual_dir();
    let down = world.run(&["down"]);
    let ended = format!("ended process {}, which was up on {}\n", up.id(), dir.display());
    assert_eq!((down.code, down.out, down.err.as_str()), (Some(0), ended, ""));
    assert!(up.wait().success());

    let again = world.run(&["down"]);
    let nothing = format!("nothing is up on {}\n", dir.display());
    assert_eq!((again.code, again.out, again.err.as_str()), (Some(0), nothing, ""));
}

#[test]
fn down_where_nothing_ever_was_makes_nothing() {
    let world = World::new();
    let dir = world.path("never");
    let down = world.run(&["down".as_ref(), "--dir".as_ref(), dir.as_os_str()]);
    assert_eq!(down.code, Some(0), "{}", down.err);
    assert_eq!(down.out, format!("nothing is up on {}\n", dir.display()));
    assert!(!dir.exists());
}

#[tokio::test]
async fn an_ephemeral_one_leaves_nothing() {
    let world = World::new();
    for signal in [Signal::TERM, Signal::INT] {
        let mut up = world.up(&["--ephemeral"]);
        assert!(up.kubeconfig().starts_with(world.path("tmp")), "{:?}", up.said);
        assert!(up.said[0].ends_with("nothing is kept"), "{:?}", up.said);
        let all: Api<ConfigMap> = Api::default_namespaced(up.client().await);
        all.create(&PostParams::default(), &config_map("gone")).await.unwrap();
        up.signal(signal);
        assert!(up.wait().success(), "{}", up.log());
        for place in ["tmp", "home"] {
            let left: Vec<_> = fs::read_dir(world.path(place)).unwrap().collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

#[test]
fn ephemeral_ones_run_side_by_side_and_down_ends_the_one_that_is_meant() {
    let world = World::new();
    let mut one = world.up(&["--ephemeral"]);
    let mut other = world.up(&["--ephemeral"]);
    let command = |up: &Up| up.said[4].split('`').nth(1).unwrap().to_owned();
    let (end_one, end_other) = (command(&one), command(&other));

    let which = world.run(&["down"]);
    assert_eq!((which.code, which.out.as_str()), (Some(1), ""));
    assert!(which.err.contains(&end_one) && which.err.contains(&end_other), "{}", which.err);

    let arguments: Vec<&str> = end_one.split(' ').skip(1).collect();
    assert_eq!(&arguments[..2], &["down", "--dir"]);
    for (arguments, up) in [(&arguments[..], &mut one), (&["down"], &mut other)] {
        let down = world.run(arguments);
        assert_eq!(down.code, Some(0), "{}", down.err);
        assert!(down.out.starts_with(&format!("ended process {}", up.id())), "{}", down.out);
        assert!(up.wait().success());
    }
}

#[tokio::test]
async fn what_was_answered_survives_a_kill_and_clients_find_it_again() {
    let world = World::new();
    let up = world.up::<&str>(&[]);
    let all: Api<ConfigMap> = Api::default_namespaced(up.client().await);
    let mut answered = Vec::new();
    for at in 0..20 {
        let name = format!("kept-{at}");
        all.create(&PostParams::default(), &config_map(&name)).await.unwrap();
        answered.push(name);
    }
    let known = fs::read_to_string(up.kubeconfig()).unwrap();
    up.kill();

    let up = world.up::<&str>(&[]);
    let found = config_maps(&up).await;
    let lost: Vec<_> = answered.iter().filter(|name| !found.contains(name)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    // The same port, token and authority: whoever has read the old one can go on with it.
    assert_eq!(fs::read_to_string(up.kubeconfig()).unwrap(), known);
    all.get("kept-0").await.unwrap();
    up.terminate();
}

/// Half a megabyte.
pub(crate) fn large(name: &str) -> ConfigMap {
    let data = [("k".to_owned(), "x".repeat(500_000))];
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(data.into()),
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_outlived() {
    let world = World::new();
    let up = world.up_within(8 << 10);
    let api: Api<ConfigMap> = Api::default_namespaced(up.client().await);
    let mut kept = Vec::new();
    let refused = loop {
        let name = format!("c{}", kept.len());
        match api.create(&PostParams::default(), &large(&name)).await {
            Ok(_) => kept.push(name),
            Err(error) => break error.to_string(),
        }
        assert!(kept.len() < 50, "the disk is never full");
    };
    assert!(refused.contains("there is no room left"), "{refused}");
    assert!(refused.contains("File too large"), "{refused}");
    // Reads go on, and writes are refused as long as there is no room.
    for name in &kept {
        api.get(name).await.unwrap();
    }
    for _ in 0..3 {
        api.create(&PostParams::default(), &large("late")).await.unwrap_err();
    }
    assert!(api.get_opt("late").await.unwrap().is_none());
    up.unlimited();
    api.create(&PostParams::default(), &large("late")).await.unwrap();
    up.kill();
    let up = world.up::<&str>(&[]);
    let api: Api<ConfigMap> = Api::default_namespaced(up.client().await);
    kept.push("late".to_owned());
    for name in &kept {
        api.get(name).await.unwrap();
    }
    let missed = format!("c{}", kept.len() - 1);
    assert!(api.get_opt(&missed).await.unwrap().is_none());
}
