use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{self, Instant};
use windlass_local::{auth::User, store::Store};

use crate::api::{Api, CONFIG_MAPS, admin, config_map};

#[tokio::test]
async fn a_watch_tells_every_change_in_order() {
    let api = Api::new().await;
    let start = api.get(CONFIG_MAPS).await.version();
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={start}")).await;
    let path = format!("{CONFIG_MAPS}/a");
    let made = api.post(CONFIG_MAPS, config_map("a", json!({"k": "1"}))).await.version();
    let changed = api.merge(&path, json!({"data": {"k": "2"}})).await.version();
    api.delete(&path).await.is(200);
    assert_eq!(watch.event().await, ("ADDED".into(), "a".into(), made));
    assert_eq!(watch.event().await, ("MODIFIED".into(), "a".into(), changed));
    let gone = watch.next().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["data"]["k"], "2");
    let version = gone["object"]["metadata"]["resourceVersion"].as_str().unwrap();
    assert!(version.parse::<u64>().unwrap() > changed);
}

#[tokio::test]
async fn a_watch_may_ask_for_longer_than_time_lasts() {
    let api = Api::new().await;
    for seconds in [i64::MAX, i64::MAX / 1000, u32::MAX.into()] {
        let path = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds={seconds}");
        for bookmarks in ["", "&allowWatchBookmarks=true"] {
            let mut watch = api.watch(&format!("{path}{bookmarks}")).await;
            assert_eq!(watch.event().await.0, "ADDED");
        }
    }
}

#[tokio::test]
async fn a_state_that_is_not_there_yet_is_waited_for() {
    let api = Api::new().await;
    let now = api.get(CONFIG_MAPS).await.version();
    let ask = |version: u64| {
        let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        format!("{CONFIG_MAPS}?{query}&resourceVersion={version}")
    };
    let mut late = api.watch(&ask(now + 1000)).await;
    let error = late.next().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(504)));
    assert_eq!(late.next().await, None);
    let made = async {
        api.post(CONFIG_MAPS, config_map("a", json!({}))).await.is(201);
    };
    let path = ask(now + 1);
    let (mut watch, ()) = tokio::join!(api.watch(&path), made);
    assert_eq!(watch.event().await.1, "a");
}

#[tokio::test]
async fn a_thousand_watches_all_see_a_change() {
    let api = Api::new().await;
    let start = api.get(CONFIG_MAPS).await.version();
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={start}");
    let others = api.as_user(User { name: "other".into(), ..admin() });
    let mut watches = Vec::new();
    for api in [&api, &others] {
        for _ in 0..500 {
            watches.push(api.watch(&path).await);
        }
    }
    let made = api.post(CONFIG_MAPS, config_map("a", json!({}))).await.version();
    for watch in &mut watches {
        assert_eq!(watch.event().await, ("ADDED".into(), "a".into(), made));
    }
    for _ in 500..512 {
        watches.push(api.watch(&path).await);
    }
    api.get(&path).await.fails(429, "TooManyRequests");
    // Who goes makes room.
    drop(watches);
    api.watch(&path).await;
}

#[tokio::test]
async fn leaving_the_selection_is_a_deletion() {
    let api = Api::new().await;
    let start = api.get(CONFIG_MAPS).await.version();
    let query = format!("watch=1&labelSelector=x%3Dy&resourceVersion={start}");
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    let mut body = config_map("a", json!({}));
    body["metadata"]["labels"] = json!({"x": "y"});
    api.post(CONFIG_MAPS, body).await.is(201);
    let path = format!("{CONFIG_MAPS}/a");
    let left = api.merge(&path, json!({"metadata": {"labels": {"x": "z"}}})).await.version();
    api.merge(&path, json!({"data": {"unseen": "1"}})).await.is(200);
    api.merge(&path, json!({"metadata": {"labels": {"x": "y"}}})).await.is(200);
    assert_eq!(watch.event().await.0, "ADDED");
    let gone = watch.next().await.unwrap();
    assert_eq!(
        (&gone["type"], &gone["object"]["metadata"]["labels"]["x"]),
        (&json!("DELETED"), &json!("y"))
    );
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], left.to_string());
    assert_eq!(watch.event().await.0, "ADDED");
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let api = Api::new().await;
    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(watch.event().await.1, "kube-root-ca.crt");
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let without = format!("{CONFIG_MAPS}?watch=1&sendInitialEvents=true");
    api.get(&without).await.fails(422, "Invalid");
    let list = format!("{CONFIG_MAPS}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    api.get(&list).await.fails(422, "Invalid");
}

#[tokio::test]
async fn who_wants_bookmarks_gets_one_a_minute_and_one_before_the_end() {
    let api = Api::new().await;
    let start = api.get(CONFIG_MAPS).await.version();
    let other = json!({"metadata": {"name": "other"}});
    let later = api.post("/api/v1/namespaces/default/secrets", other).await.version();
    // From here on time passes only while everybody waits.
    time::pause();
    let query = format!("watch=1&resourceVersion={start}&timeoutSeconds=150");
    let opened = Instant::now();
    let mut told = api.watch(&format!("{CONFIG_MAPS}?{query}&allowWatchBookmarks=true")).await;
    let mut untold = api.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    for second in [60, 120, 148] {
        let event = told.next_within(Duration::from_secs(200)).await.unwrap();
        assert_eq!((&event["type"], opened.elapsed().as_secs()), (&json!("BOOKMARK"), second));
        // Nothing of its own has changed, and still it need not begin where it began.
        let version = later.to_string();
        let bookmark = json!({"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"resourceVersion": version}});
        assert_eq!(event["object"], bookmark);
    }
    assert_eq!(told.next_within(Duration::from_secs(200)).await, None);
    assert_eq!(opened.elapsed().as_secs(), 150);
    assert_eq!(untold.next_within(Duration::from_secs(200)).await, None);
}

/// As large as they may be.
fn large(name: &str) -> Value {
    config_map(name, json!({"k": "x".repeat(1_000_000)}))
}

#[tokio::test]
async fn who_does_not_read_falls_off_and_keeps_nobody_waiting() {
    let api = Api::new().await;
    let start = api.get(CONFIG_MAPS).await.version();
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={start}");
    let mut slow = api.watch(&path).await;
    let mut other = api.watch(&path).await;
    api.post(CONFIG_MAPS, config_map("first", json!({}))).await.is(201);
    assert_eq!(slow.event().await.1, "first");
    assert_eq!(other.event().await.1, "first");
    // More than is remembered.
    for at in 0..70 {
        let name = format!("large-{at}");
        let made = api.post(CONFIG_MAPS, large(&name)).await.version();
        assert_eq!(other.event().await, ("ADDED".into(), name, made));
    }
    let event = slow.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(event["object"]["reason"], "Expired");
    let message = event["object"]["message"].as_str().unwrap();
    assert!(message.starts_with("too old resource version: "), "{message}");
    assert_eq!(slow.next().await, None);
}

#[tokio::test]
async fn a_watch_ends_when_it_is_to() {
    let api = Api::new().await;
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1")).await;
    assert_eq!(watch.event().await.0, "ADDED");
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_watch_of_what_always_changes_ends_too() {
    let api = Api::new().await;
    let made = api.post(CONFIG_MAPS, config_map("a", json!({}))).await.version();
    let query = format!("watch=1&resourceVersion={made}&timeoutSeconds=1");
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?{query}&allowWatchBookmarks=true")).await;
    let (opened, mut bookmarks) = (Instant::now(), 0);
    for at in 0.. {
        let data = json!({"data": {"k": at.to_string()}});
        api.merge(&format!("{CONFIG_MAPS}/a"), data).await.is(200);
        let Some(event) = watch.next().await else { break };
        bookmarks += usize::from(event["type"] == "BOOKMARK");
        assert!(opened.elapsed().as_secs() < 8, "it goes on");
    }
    assert_eq!(bookmarks, 1);
}

#[tokio::test]
async fn a_restart_ends_old_watches() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let store = Store::open(&path, Arc::new(Timestamp::now)).unwrap();
    let (old, held) = (store.read().version(), store.clone());
    let api = Api::on(store).await;
    drop((api, held));
    // The tidying task holds the store until the runtime lets it go, so the file is copied.
    let copy = dir.path().join("copy.redb");
    std::fs::copy(&path, &copy).unwrap();
    let api = Api::on(Store::open(&copy, Arc::new(Timestamp::now)).unwrap()).await;
    let query = format!("watch=1&resourceVersion={}", old + 1);
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    let event = watch.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn watches_take_the_form_that_is_asked_for() {
    let api = Api::new().await;
    let query = "watch=1&resourceVersion=0&allowWatchBookmarks=true";
    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut watch = api.watch_as(&format!("{CONFIG_MAPS}?{query}"), metadata).await;
    for kind in ["ADDED", "BOOKMARK"] {
        let event = watch.next().await.unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["kind"]),
            (&json!(kind), &json!("PartialObjectMetadata"))
        );
    }
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let mut watch = api.watch_as(&format!("{CONFIG_MAPS}?watch=1"), table).await;
    let first = watch.next().await.unwrap();
    assert!(first["object"]["columnDefinitions"].is_array());
    api.post(CONFIG_MAPS, config_map("a", json!({}))).await.is(201);
    let second = watch.next().await.unwrap();
    assert!(second["object"]["columnDefinitions"].is_null());
    assert_eq!(second["object"]["rows"][0]["cells"][0], "a");
}

#[tokio::test]
async fn a_watch_of_one_object_is_a_plain_read() {
    let api = Api::new().await;
    let read = api.get(&format!("{CONFIG_MAPS}/kube-root-ca.crt?watch=1")).await.is(200);
    assert_eq!(read.body["kind"], "ConfigMap");
}
