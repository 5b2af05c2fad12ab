use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};
use windlass_tests::eventually;

use super::{
    objects::{config_map, with},
    run::{Engine, Setup, child, condition, message, wait_child},
    widget::{FINALIZER, HOLD, Widget},
};

fn paused(value: &str) -> Value {
    json!({ "annotations": { "aim.eai.amd.com/reconciliation-paused": value } })
}

async fn finalizing(name: &str) -> Option<Engine> {
    Engine::start_with::<Widget>(name, Setup { finalizer: true, ..Setup::default() }).await
}

async fn delete(engine: &Engine, name: &str) {
    engine.api().delete(name, &Default::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn w25_the_finalizer_comes_first_and_clean_up_before_the_end() {
    let Some(engine) = finalizing("cleanup").await else { return };
    let shared = config_map("s", "x");
    engine.create("a", json!({ "shared": [shared], "cleanUp": [shared] })).await;
    let object = engine.wait_ready("a").await;
    assert_eq!(object["metadata"]["finalizers"], json!([FINALIZER]));
    let writes = engine.writes("");
    assert_eq!(writes[0].resource, "widgets", "the finalizer");
    assert_eq!(writes[1].resource, "configmaps", "what would be left behind");

    // Somebody holds what has to go first.
    let hold = json!({ "metadata": { "finalizers": ["test.windlass.dev/held"] } });
    engine.space.edit::<ConfigMap>("s", hold).await;
    delete(&engine, "a").await;
    let leaving = |found: &Value| found["metadata"]["deletionTimestamp"].is_string();
    wait_child::<ConfigMap>(&engine, "s", leaving).await;
    let looks = engine.passes.looks("a");
    eventually("a further look", || async { engine.passes.looks("a") }, |now| *now > looks).await;
    let object = engine.get("a").await.unwrap();
    assert_eq!(object["metadata"]["finalizers"], json!([FINALIZER]), "it waits");
    let release = json!({ "metadata": { "finalizers": null } });
    engine.space.edit::<ConfigMap>("s", release).await;
    eventually("the end", || engine.get("a"), Option::is_none).await;
    assert!(child::<ConfigMap>(&engine, "s").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn w25_a_deleted_object_is_not_worked_on_any_more() {
    let Some(engine) = finalizing("deleted").await else { return };
    let metadata = json!({ "finalizers": ["test.windlass.dev/held"] });
    engine.create_with("a", metadata, json!({ "owned": [config_map("a", "x")] })).await;
    engine.wait_ready("a").await;
    delete(&engine, "a").await;
    // Ours goes, somebody else's stays.
    let only_theirs = |object: &Option<Value>| {
        object.as_ref().unwrap()["metadata"]["finalizers"] == json!(["test.windlass.dev/held"])
    };
    eventually("our finalizer to go", || engine.get("a"), only_theirs).await;
    let before = (engine.passes.verdicts("a"), engine.writes("configmaps").len());
    engine.space.delete::<ConfigMap>("a").await;
    engine.create("b", json!({})).await;
    engine.wait_ready("b").await;
    assert_eq!((engine.passes.verdicts("a"), engine.writes("configmaps").len()), before);
    engine.edit("a", json!({ "metadata": { "finalizers": null } })).await;
    eventually("the end", || engine.get("a"), Option::is_none).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w25_a_paused_object_gets_its_finalizer_and_can_be_deleted() {
    let Some(engine) = finalizing("paused").await else { return };
    let shared = config_map("s", "x");
    engine.create("a", json!({ "shared": [shared], "cleanUp": [shared] })).await;
    engine.wait_ready("a").await;
    engine.edit("a", json!({ "metadata": paused("true") })).await;
    engine.wait_paused("a").await;
    engine.create_with("b", paused("true"), json!({ "owned": [config_map("b", "x")] })).await;
    let object = engine.wait_paused("b").await;
    assert_eq!(object["metadata"]["finalizers"], json!([FINALIZER]));
    assert!(child::<ConfigMap>(&engine, "b").await.is_none());
    for name in ["a", "b"] {
        delete(&engine, name).await;
        eventually("the end", || engine.get(name), Option::is_none).await;
    }
    assert!(child::<ConfigMap>(&engine, "s").await.is_none(), "cleaned up");
}

#[tokio::test(flavor = "multi_thread")]
async fn w25_a_namespace_that_ends_takes_objects_along_without_clean_up() {
    let Some(engine) = finalizing("ending").await else { return };
    let shared = config_map("s", "x");
    engine.create("a", json!({ "shared": [shared], "cleanUp": [shared] })).await;
    engine.wait_ready("a").await;
    // With this, clean-up would never come to an end.
    let hold = json!({ "metadata": { "finalizers": ["test.windlass.dev/held"] } });
    engine.space.edit::<ConfigMap>("s", hold).await;
    let namespaces: Api<Namespace> = Api::all(engine.space.client.clone());
    namespaces.delete(&engine.space.name, &Default::default()).await.unwrap();
    eventually("the end", || engine.get("a"), Option::is_none).await;
    assert!(child::<ConfigMap>(&engine, "s").await.is_some());
    let release = json!({ "metadata": { "finalizers": null } });
    engine.space.edit::<ConfigMap>("s", release).await;
    let namespace = || async { namespaces.get_opt(&engine.space.name).await.unwrap() };
    eventually("the end of the namespace", namespace, Option::is_none).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g17_a_paused_object_changes_nothing_but_says_that_it_is_paused() {
    let Some(engine) = Engine::start("pause").await else { return };
    let component = json!({ "name": "Model", "state": "Progressing", "reason": "Loading" });
    engine.create("a", json!({ "owned": [config_map("a", "x")], "components": [component] })).await;
    let before = engine.wait("a", "ModelReady", "False", "Loading").await;
    engine.edit("a", json!({ "metadata": paused("true") })).await;
    let object = engine.wait_paused("a").await;
    assert_eq!(condition(&object, "ReconciliationPaused")["reason"], "PausedByAnnotation");
    assert_eq!(condition(&object, "ModelReady"), condition(&before, "ModelReady"));
    let told = engine.events("a").await;

    engine.order("a", json!({ "owned": [config_map("a", "y")] })).await;
    engine.space.edit::<ConfigMap>("a", json!({ "data": { "key": "hacked" } })).await;
    // Another object is worked on meanwhile, so there was time to do so.
    engine.create_with("b", paused("True"), json!({ "owned": [config_map("b", "x")] })).await;
    engine.wait_ready("b").await;
    engine.look_again("b").await;
    assert_eq!(child::<ConfigMap>(&engine, "a").await.unwrap()["data"]["key"], "hacked");
    assert_eq!(engine.events("a").await, told);
    let object = engine.get("a").await.unwrap();
    assert_eq!(object["status"]["observedGeneration"], before["metadata"]["generation"]);

    engine.edit("a", json!({ "metadata": paused("false") })).await;
    let object = engine.wait("a", "ModelReady", "False", "Loading").await;
    assert_eq!(*condition(&object, "ReconciliationPaused"), json!(null));
    wait_child::<ConfigMap>(&engine, "a", |found| found["data"]["key"] == "y").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w21_a_missing_upstream_is_looked_for_again_and_again() {
    let setup = Setup { impatient: true, ..Setup::default() };
    let Some(engine) = Engine::start_with::<Widget>("upstream", setup).await else { return };
    engine.create("a", json!({ "secrets": ["s"], "owned": [config_map("a", "x")] })).await;
    let object = engine.wait("a", "Ready", "False", "ReferenceNotFound").await;
    assert!(message(&object, "Ready").contains("no Secret s"));
    assert_eq!(object["status"]["status"], "Degraded");
    assert!(child::<ConfigMap>(&engine, "a").await.is_none());
    // Secrets are not watched, so only asking again can tell.
    let secret: Secret = serde_json::from_value(json!({ "metadata": { "name": "s" } })).unwrap();
    engine.space.create(&secret).await;
    engine.wait_ready("a").await;
    assert!(child::<ConfigMap>(&engine, "a").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_may_ask_to_be_looked_at_again() {
    let Some(engine) = Engine::start("requeue").await else { return };
    engine.create("a", json!({ "requeueMillis": 200 })).await;
    engine.create("b", json!({})).await;
    engine.wait_ready("b").await;
    engine.look_again("b").await;
    let before = engine.passes.verdicts("b");
    let so_far = engine.passes.verdicts("a");
    engine.wait_verdicts("a", so_far + 5).await;
    assert_eq!(engine.passes.verdicts("b"), before, "not so one that does not ask");
    assert_eq!(engine.writes("widgets/status").len(), 2, "which is no reason to write");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_stops_nobody_else_and_is_tried_again() {
    let Some(engine) = Engine::start("panic").await else { return };
    engine.create("bad", json!({ "panics": true })).await;
    // More often than there are workers: none of them has died of it.
    eventually("tries", || async { engine.passes.looks("bad") }, |looks| *looks > 5).await;
    engine.create("good", json!({ "owned": [config_map("good", "x")] })).await;
    engine.wait_ready("good").await;
    assert_eq!(engine.get("bad").await.unwrap()["status"], json!(null));
    engine.order("bad", json!({ "panics": false, "owned": [config_map("bad", "x")] })).await;
    engine.wait_ready("bad").await;
}

/// A child that is held until the widget orders its release.
fn held() -> Value {
    with(config_map("held", "x"), "finalizers", json!([HOLD]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_child_outlives_its_deletion_until_it_is_released() {
    let Some(engine) = Engine::start("held").await else { return };
    engine.create("a", json!({ "owned": [held()] })).await;
    wait_child::<ConfigMap>(&engine, "held", |_| true).await;
    engine.space.delete::<ConfigMap>("held").await;
    let leaving = |found: &Value| found["metadata"]["deletionTimestamp"].is_string();
    wait_child::<ConfigMap>(&engine, "held", leaving).await;
    engine.look_again("a").await;
    wait_child::<ConfigMap>(&engine, "held", leaving).await;

    engine.order("a", json!({ "owned": [], "release": [held()] })).await;
    eventually("its end", || child::<ConfigMap>(&engine, "held"), Option::is_none).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_object_leaves_behind_is_let_go() {
    let Some(engine) = Engine::start("left").await else { return };
    for (name, cascade) in [("a", DeleteParams::background()), ("b", DeleteParams::foreground())] {
        engine.create(name, json!({ "owned": [held()] })).await;
        wait_child::<ConfigMap>(&engine, "held", |_| true).await;
        engine.delete(name, cascade).await;
        eventually("its end", || child::<ConfigMap>(&engine, "held"), Option::is_none).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_finalizer_is_there_only_while_there_is_something_to_clean_up() {
    let Some(engine) = finalizing("needless").await else { return };
    let shared = config_map("s", "x");
    engine.create("a", json!({ "noFinalizer": true })).await;
    let object = engine.wait_ready("a").await;
    assert_eq!(object["metadata"]["finalizers"], json!(null));

    engine
        .order("a", json!({ "noFinalizer": false, "shared": [shared], "cleanUp": [shared] }))
        .await;
    wait_child::<ConfigMap>(&engine, "s", |_| true).await;
    let object = engine.get("a").await.unwrap();
    assert_eq!(object["metadata"]["finalizers"], json!([FINALIZER]));

    // It stays until what it is for has gone.
    engine.order("a", json!({ "noFinalizer": true, "shared": [] })).await;
    engine.wait_ready("a").await;
    assert_eq!(engine.get("a").await.unwrap()["metadata"]["finalizers"], json!([FINALIZER]));
    engine.space.delete::<ConfigMap>("s").await;
    let free =
        |object: &Option<Value>| object.as_ref().unwrap()["metadata"]["finalizers"].is_null();
    eventually("no finalizer", || engine.get("a"), free).await;
}
