use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time;
use windlass_local::store::Store;

use crate::{
    api::{Answer, Api, CONFIG_MAPS, Watch, config_map},
    objects::deployment,
};

async fn owned(api: &Api, name: &str, owners: &[(&Value, bool)]) -> Value {
    let mut body = config_map(name, json!({}));
    let references = owners.iter().map(|(owner, blocks)| {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocks,
        })
    });
    body["metadata"]["ownerReferences"] = references.collect();
    api.post(CONFIG_MAPS, body).await.is(201).body
}

fn at(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

#[tokio::test]
async fn deletion_answers_with_success_or_with_the_object() {
    let api = Api::new().await;
    let made = api.post(CONFIG_MAPS, config_map("a", json!({}))).await.is(201);
    let gone = api.delete(&at("a")).await.is(200);
    assert_eq!(gone.body["status"], "Success");
    let uid = &made.body["metadata"]["uid"];
    assert_eq!(gone.body["details"], json!({"name": "a", "kind": "configmaps", "uid": uid}));
    api.delete(&at("a")).await.fails(404, "NotFound");
    let path = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    api.post(path, service).await.is(201);
    assert_eq!(api.delete(&format!("{path}/s")).await.is(200).body["kind"], "Service");
}

#[tokio::test]
async fn preconditions_are_checked() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, config_map("a", json!({}))).await.is(201);
    let with = |options: Value| {
        let api = &api;
        async move { api.delete_with(&at("a"), options).await }
    };
    let wrong = with(json!({"preconditions": {"uid": "x"}})).await.fails(409, "Conflict");
    assert!(wrong.message().contains("the UID in the precondition (x) does not match"));
    assert_eq!(wrong.body["details"]["kind"], "ConfigMap");
    with(json!({"preconditions": {"resourceVersion": "1"}})).await.fails(409, "Conflict");
    let bogus = with(json!({"propagationPolicy": "Bogus"})).await.fails(422, "Invalid");
    assert!(
        bogus.message().starts_with("DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy")
    );
}

#[tokio::test]
async fn finalizers_hold_an_object() {
    let api = Api::new().await;
    let mut body = config_map("a", json!({}));
    body["metadata"]["finalizers"] = json!(["x.io/a", "x.io/b"]);
    api.post(CONFIG_MAPS, body).await.is(201);
    let held = api.delete(&at("a")).await.is(200);
    assert!(held.body["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(held.body["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(api.delete(&at("a")).await.is(200).version(), held.version());
    let more = json!({"metadata": {"finalizers": ["x.io/a", "x.io/b", "x.io/c"]}});
    let refused = api.merge(&at("a"), more).await.fails(422, "Invalid");
    assert!(refused.message().ends_with("found new finalizers []string{\"x.io/c\"}"));
    api.merge(&at("a"), json!({"data": {"k": "v"}})).await.is(200);
    api.merge(&at("a"), json!({"metadata": {"finalizers": ["x.io/b"]}})).await.is(200);
    api.merge(&at("a"), json!({"metadata": {"finalizers": null}})).await.is(200);
    api.get(&at("a")).await.fails(404, "NotFound");
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let api = Api::new().await;
    for name in ["a", "b"] {
        api.post(CONFIG_MAPS, config_map(name, json!({}))).await.is(201);
    }
    let gone = api.delete(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Da")).await.is(200);
    assert_eq!(gone.body["items"].as_array().unwrap().len(), 1);
    api.get(&at("a")).await.is(404);
    api.get(&at("b")).await.is(200);
}

#[tokio::test]
async fn dependents_follow_their_last_owner() {
    let api = Api::new().await;
    let one = api.post(CONFIG_MAPS, config_map("one", json!({}))).await.is(201).body;
    let two = api.post(CONFIG_MAPS, config_map("two", json!({}))).await.is(201).body;
    owned(&api, "child", &[(&one, false), (&two, false)]).await;
    api.delete(&at("one")).await.is(200);
    let child = at("child");
    let left = api.until(&child, |answer| {
        answer.body["metadata"]["ownerReferences"]
            .as_array()
            .is_some_and(|owners| owners.len() == 1)
    });
    assert_eq!(left.await.body["metadata"]["ownerReferences"][0]["name"], "two");
    api.delete(&at("two")).await.is(200);
    api.until_gone(&at("child")).await;
}

#[tokio::test]
async fn an_owner_with_another_uid_counts_as_gone() {
    let api = Api::new().await;
    let mut owner = api.post(CONFIG_MAPS, config_map("owner", json!({}))).await.is(201).body;
    owner["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000".into();
    owned(&api, "child", &[(&owner, false)]).await;
    api.until_gone(&at("child")).await;
}

#[tokio::test]
async fn orphans_lose_their_reference_only() {
    let api = Api::new().await;
    let owner = api.post(CONFIG_MAPS, config_map("owner", json!({}))).await.is(201).body;
    owned(&api, "child", &[(&owner, true)]).await;
    let held = api.delete_with(&at("owner"), json!({"propagationPolicy": "Orphan"})).await.is(200);
    assert_eq!(held.body["metadata"]["finalizers"], json!(["orphan"]));
    api.until_gone(&at("owner")).await;
    let child = api.get(&at("child")).await.is(200);
    assert!(child.body["metadata"].get("ownerReferences").is_none());
}

#[tokio::test]
async fn foreground_waits_for_those_that_block() {
    let api = Api::new().await;
    let owner = api.post(CONFIG_MAPS, config_map("owner", json!({}))).await.is(201).body;
    owned(&api, "blocks", &[(&owner, true)]).await;
    owned(&api, "held", &[(&owner, false)]).await;
    for name in ["blocks", "held"] {
        api.merge(&at(name), json!({"metadata": {"finalizers": ["x.io/hold"]}})).await.is(200);
    }
    let waits =
        api.delete_with(&at("owner"), json!({"propagationPolicy": "Foreground"})).await.is(200);
    assert_eq!(waits.body["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let deleting =
        |answer: &crate::api::Answer| answer.body["metadata"]["deletionTimestamp"].is_string();
    api.until(&at("blocks"), deleting).await;
    api.until(&at("held"), deleting).await;
    api.get(&at("owner")).await.is(200);
    api.merge(&at("blocks"), json!({"metadata": {"finalizers": null}})).await.is(200);
    api.until_gone(&at("owner")).await;
    api.get(&at("held")).await.is(200);
}

#[tokio::test]
async fn a_namespace_goes_when_its_content_has_gone() {
    let api = Api::new().await;
    let made = api.post("/api/v1/namespaces", json!({"metadata": {"name": "x"}})).await.is(201);
    assert_eq!(made.body["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(made.body["status"]["phase"], "Active");
    api.get("/api/v1/namespaces/x/serviceaccounts/default").await.is(200);
    let path = "/api/v1/namespaces/x/configmaps";
    let mut body = config_map("held", json!({}));
    body["metadata"]["finalizers"] = json!(["x.io/hold"]);
    api.post(path, body).await.is(201);
    let going = api.delete("/api/v1/namespaces/x").await.is(200);
    assert_eq!(going.body["status"]["phase"], "Terminating");
    let told = api
        .until("/api/v1/namespaces/x", |answer| answer.text.contains("NamespaceContentRemaining"));
    let told = told.await.text;
    assert!(
        told.contains("Some resources are remaining: configmaps. has 1 resource instances"),
        "{told}"
    );
    assert!(told.contains("x.io/hold in 1 resource instances"), "{told}");
    let refused = api.post(path, config_map("new", json!({}))).await.fails(403, "Forbidden");
    assert_eq!(refused.body["details"]["causes"][0]["reason"], "NamespaceTerminating");
    api.merge(&format!("{path}/held"), json!({"metadata": {"finalizers": null}})).await.is(200);
    api.until_gone("/api/v1/namespaces/x").await;
    api.delete("/api/v1/namespaces/default").await.fails(403, "Forbidden");
}

#[tokio::test]
async fn jobs_leave_their_pods_unless_told() {
    let api = Api::new().await;
    let path = "/apis/batch/v1/namespaces/default/jobs";
    let job = json!({
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i"}],
        }}},
    });
    api.post(path, job).await.is(201);
    let gone = api.delete(&format!("{path}/j")).await.is(200);
    assert!(gone.warnings()[0].contains("child pods are preserved by default"));
    assert_eq!(gone.body["metadata"]["finalizers"], json!(["orphan"]));
    api.until_gone(&format!("{path}/j")).await;
}

#[tokio::test]
async fn a_bound_pod_is_given_time_that_only_shrinks() {
    let api = Api::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str| json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.post(pods, pod("unbound")).await.is(201);
    let gone = api.delete(&format!("{pods}/unbound")).await.is(200);
    assert_eq!(gone.body["metadata"]["deletionGracePeriodSeconds"], 0, "{}", gone.text);
    assert_eq!(gone.body["metadata"]["generation"], 2);
    api.get(&format!("{pods}/unbound")).await.is(404);
    api.post(pods, pod("p")).await.is(201);
    let path = format!("{pods}/p");
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}});
    api.post(&format!("{path}/binding"), binding.clone()).await.is(201);
    let again = api.post(&format!("{path}/binding"), binding).await.fails(409, "Conflict");
    assert_eq!(again.body["details"]["kind"], "pods/binding");
    for (asked, want) in [(None, 30), (Some(5), 5), (Some(60), 5)] {
        let options = asked.map_or(json!({}), |grace: i64| json!({"gracePeriodSeconds": grace}));
        let held = api.delete_with(&path, options).await.is(200);
        assert_eq!(held.body["metadata"]["deletionGracePeriodSeconds"], want);
    }
    api.delete_with(&path, json!({"gracePeriodSeconds": 0})).await.is(200);
    api.get(&path).await.is(404);
}

#[tokio::test]
async fn deletion_raises_the_generation() {
    let api = Api::new().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let mut body = deployment("d");
    body["metadata"]["finalizers"] = json!(["x.io/hold"]);
    api.post(path, body).await.is(201);
    let held = api.delete(&format!("{path}/d")).await.is(200);
    assert_eq!(held.body["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_claim_is_held_only_by_pods_that_have_a_node() {
    let api = Api::new().await;
    let (claims, pods) =
        ("/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/namespaces/default/pods");
    let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}});
    let path = format!("{claims}/c");
    api.post(pods, pod).await.is(201);
    api.post(claims, claim.clone()).await.is(201);
    api.delete(&path).await.is(200);
    api.until_gone(&path).await;
    let binding = json!({"target": {"kind": "Node", "name": "n"}});
    api.post(&format!("{pods}/p/binding"), binding).await.is(201);
    api.post(claims, claim).await.is(201);
    api.delete(&path).await.is(200);
    assert!(api.get(&path).await.is(200).body["metadata"]["deletionTimestamp"].is_string());
    api.delete_with(&format!("{pods}/p"), json!({"gracePeriodSeconds": 0})).await.is(200);
    api.until_gone(&path).await;
}

#[tokio::test]
async fn what_every_namespace_has_comes_back() {
    let api = Api::new().await;
    api.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await.is(201);
    for path in [
        "/api/v1/namespaces/n/configmaps/kube-root-ca.crt",
        "/api/v1/namespaces/n/serviceaccounts/default",
        "/api/v1/namespaces/default/serviceaccounts/default",
        "/api/v1/namespaces/default/services/kubernetes",
        "/api/v1/namespaces/kube-node-lease",
    ] {
        let old = api.get(path).await.is(200).body["metadata"]["uid"].clone();
        api.delete(path).await.is(200);
        api.until(path, |now| now.status == 200 && now.body["metadata"]["uid"] != old).await;
    }
    // One that was changed is set right, and keeps what else there is of it.
    let roots = "/api/v1/namespaces/n/configmaps/kube-root-ca.crt";
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "data": {"ca.crt": "X", "k": "v"}});
    api.merge(roots, patch).await.is(200);
    let right = |answer: &Answer| answer.body["data"] == json!({"ca.crt": "PEM"});
    assert_eq!(api.until(roots, right).await.body["metadata"]["labels"], json!({"a": "b"}));
    // A namespace that goes takes them along.
    api.delete("/api/v1/namespaces/n").await.is(200);
    api.until_gone("/api/v1/namespaces/n").await;
    api.get(roots).await.is(404);
}

const EVENTS: &str = "/api/v1/namespaces/default/events";

/// The next event of a watch, once the time has come at which old ones are looked for.
async fn after_a_sweep(watch: &mut Watch) -> (String, String, u64) {
    for _ in 0..100 {
        time::pause();
        time::advance(Duration::from_secs(61)).await;
        time::resume();
        // Whoever looks for them may not have been waiting yet.
        if let Ok(event) = time::timeout(Duration::from_millis(100), watch.event()).await {
            return event;
        }
    }
    panic!("nothing happens")
}

#[tokio::test]
async fn events_are_kept_for_an_hour_after_they_last_happened() {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let now = Arc::new(Mutex::new(start));
    let clock = now.clone();
    let store = Store::in_memory(Arc::new(move || *clock.lock().unwrap())).unwrap();
    let api = Api::on(store).await;
    let at = |minutes| start + SignedDuration::from_mins(minutes);
    let event = |name: &str| json!({"metadata": {"name": name}, "involvedObject": {"namespace": "default"}});
    for (minutes, name) in [(0, "first"), (0, "again"), (30, "second"), (60, "third")] {
        *now.lock().unwrap() = at(minutes);
        api.post(EVENTS, event(name)).await.is(201);
    }
    let again = json!({"lastTimestamp": at(60).to_string(), "count": 2});
    api.merge(&format!("{EVENTS}/again"), again).await.is(200);
    let version = api.get(EVENTS).await.version();
    let path = format!("{EVENTS}?watch=true&resourceVersion={version}&timeoutSeconds=100000");
    let mut watch = api.watch(&path).await;
    for (minutes, gone, left) in [
        (61, &["first"][..], &["again", "second", "third"][..]),
        (91, &["second"], &["again", "third"]),
        (121, &["again", "third"], &[]),
    ] {
        *now.lock().unwrap() = at(minutes);
        for name in gone {
            let (kind, of, _) = after_a_sweep(&mut watch).await;
            assert_eq!((&*kind, &*of), ("DELETED", *name), "after {minutes} minutes");
        }
        let list = api.get(EVENTS).await.is(200);
        let found = list.body["items"].as_array().unwrap().iter();
        let found: Vec<_> =
            found.map(|event| event["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(found, left, "after {minutes} minutes");
    }
}
