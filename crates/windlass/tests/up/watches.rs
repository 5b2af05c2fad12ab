use std::{fs, pin::Pin, time::Instant};

use futures::{Stream, StreamExt, future::try_join_all};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::time::timeout;

use crate::{
    running::{Up, World, client},
    wait::DEADLINE,
};

/// Of each of two users. One may have 512.
const EACH: usize = 510;
/// What a watch may take in the server, in kibibytes.
const ROOM: usize = 128;

type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<ConfigMap>>>>>;

/// In kibibytes.
fn memory(up: &Up) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", up.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

async fn watches(client: &Client, since: &str) -> Vec<Events> {
    let all: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut open: Vec<Events> = Vec::new();
    // A few at a time, as the machine of a test may be small.
    while open.len() < EACH {
        let some = (EACH - open.len()).min(30);
        let some = (0..some).map(|_| async {
            let events = all.watch(&WatchParams::default(), since).await?;
            Ok::<_, kube::Error>(Box::pin(events) as Events)
        });
        open.extend(try_join_all(some).await.unwrap());
    }
    open
}

/// Each over a connection of its own, where a process may have 1,024 files open unless it asks for more.
#[tokio::test]
async fn a_thousand_watches_see_a_change_and_others_are_served() {
    // This process has the other ends.
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits }).unwrap();
    let world = World::new();
    let up = world.up_with_open_files(1024);
    let admin = up.client().await;
    let kubeconfig = up.kubeconfig();
    let other = client(&kubeconfig, |config| {
        config.auth_info.impersonate = Some("other".into());
        config.auth_info.impersonate_groups = Some(vec!["system:masters".into()]);
    });
    let other = other.await;
    let all: Api<ConfigMap> = Api::default_namespaced(admin.clone());
    let since = all.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();

    let before = memory(&up);
    let mut open = watches(&admin, &since).await;
    open.extend(watches(&other, &since).await);
    let grown = memory(&up).saturating_sub(before);
    assert!(grown < ROOM * open.len(), "{grown} KiB for {} watches", open.len());

    let started = Instant::now();
    let metadata = ObjectMeta { name: Some("seen".into()), ..Default::default() };
    let made = ConfigMap { metadata, ..Default::default() };
    let made = all.create(&PostParams::default(), &made).await.unwrap();
    for events in &mut open {
        match timeout(DEADLINE, events.next()).await.unwrap() {
            Some(Ok(WatchEvent::Added(seen))) => assert_eq!(seen, made),
            event => panic!("{event:?}; log: {}", up.log()),
        }
    }
    eprintln!("{} watches saw it within {:?}, {grown} KiB", open.len(), started.elapsed());

    // Who does not watch is served as before.
    let found = other.apiserver_version().await.unwrap();
    assert!(found.git_version.contains("windlass"));
    assert_eq!(all.get("seen").await.unwrap(), made);
    assert_eq!(up.log(), "", "there is nothing to complain of");
}
