use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, ServiceAccount},
    rbac::v1::ClusterRole,
};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::json;
use windlass_tests::eventually;

use super::{
    objects::{config_map, deployment, service_account, with},
    run::{Engine, child, condition, message, wait_child},
    widget::{CONTROLLER, NAME_LABEL, PREDECESSOR},
};

#[tokio::test(flavor = "multi_thread")]
async fn w07_a_field_taken_from_an_owned_child_is_forced_back() {
    let Some(engine) = Engine::start("forced").await else { return };
    engine.create("a", json!({ "owned": [config_map("a", "ours")] })).await;
    engine.wait_ready("a").await;
    engine.apply_as("other", &config_map("a", "theirs")).await;
    wait_child::<ConfigMap>(&engine, "a", |found| found["data"]["key"] == "ours").await;
    let told = |events: &Vec<(String, i32)>| events.contains(&("DriftCorrected".to_owned(), 1));
    eventually("the event", || engine.events("a"), told).await;
    let object = engine.wait_ready("a").await;
    assert_eq!(*condition(&object, "ConfigValid"), json!(null), "nothing is wrong with the object");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_in_the_midst_of_the_first_pass_is_told_of() {
    let Some(engine) = Engine::start("midst").await else { return };
    let edited = config_map("a", "edited");
    engine.create("a", json!({ "owned": [config_map("a", "x")], "edited": edited })).await;
    wait_child::<ConfigMap>(&engine, "a", |_| true).await;
    engine.space.edit::<ConfigMap>("a", json!({ "data": edited["data"] })).await;
    let told = |events: &Vec<(String, i32)>| events.contains(&("DriftCorrected".to_owned(), 1));
    eventually("the correction", || engine.events("a"), told).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w07_a_field_taken_from_a_shared_child_is_a_conflict_until_it_is_given_up() {
    let Some(engine) = Engine::start("conflict").await else { return };
    engine.create("a", json!({ "shared": [config_map("a", "ours")] })).await;
    engine.wait_ready("a").await;
    let made = wait_child::<ConfigMap>(&engine, "a", |_| true).await;
    assert_eq!(made["metadata"]["ownerReferences"], json!(null), "it outlives the object");

    engine.apply_as("other", &config_map("a", "theirs")).await;
    let object = engine.wait("a", "Ready", "False", "InvalidSpec").await;
    for type_ in ["Ready", "ConfigValid"] {
        let text = message(&object, type_);
        assert!(text.contains("FieldConflict: failed to apply ConfigMap a"), "{text}");
        assert!(text.contains(r#"conflict with "other": .data.key"#), "{text}");
    }
    assert_eq!(object["status"]["status"], "Degraded");
    let found = child::<ConfigMap>(&engine, "a").await.unwrap();
    assert_eq!(found["data"]["key"], "theirs");

    // Giving it up is a change of the child, which wakes the object.
    let mut without = config_map("a", "");
    without.as_object_mut().unwrap().remove("data");
    engine.apply_as("other", &without).await;
    wait_child::<ConfigMap>(&engine, "a", |found| found["data"]["key"] == "ours").await;
    engine.wait_ready("a").await;
    engine.wait("a", "ConfigValid", "True", "ConfigurationValid").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_child_of_two_objects_rests_and_outlives_both() {
    let Some(engine) = Engine::start("shared").await else { return };
    for name in ["a", "b"] {
        engine.create(name, json!({ "shared": [config_map("s", "ours")] })).await;
        engine.wait_ready(name).await;
    }
    let before = engine.writes("configmaps").len();
    for name in ["a", "b", "a"] {
        engine.look_again(name).await;
    }
    assert_eq!(engine.writes("configmaps")[before..], []);

    // Whichever is left looks after it.
    for left in ["b", "a"] {
        let gone = if left == "a" { "b" } else { "a" };
        engine.delete(gone, DeleteParams::background()).await;
        engine.look_again(left).await;
        engine.space.delete::<ConfigMap>("s").await;
        wait_child::<ConfigMap>(&engine, "s", |found| found["data"]["key"] == "ours").await;
        engine.create(gone, json!({ "shared": [config_map("s", "ours")] })).await;
        engine.wait_ready(gone).await;
    }
    for name in ["a", "b"] {
        engine.delete(name, DeleteParams::background()).await;
    }
    assert!(child::<ConfigMap>(&engine, "s").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn w09_a_delete_hits_only_our_own_object() {
    let Some(engine) = Engine::start("delete").await else { return };
    let ours = json!({ "app.kubernetes.io/managed-by": CONTROLLER, NAME_LABEL: "a" });
    let others = json!({ "app.kubernetes.io/managed-by": CONTROLLER, NAME_LABEL: "b" });
    // An object of another's, one of another parent's, one that has lost its owner.
    engine.apply_as("other", &config_map("plain", "x")).await;
    engine.apply_as("other", &with(config_map("other", "x"), "labels", others)).await;
    engine.apply_as("other", &with(config_map("orphan", "x"), "labels", ours)).await;
    let all = ["plain", "other", "orphan", "made"].map(|name| config_map(name, "x"));
    engine.create("a", json!({ "owned": [config_map("made", "x")] })).await;
    engine.wait_ready("a").await;
    wait_child::<ConfigMap>(&engine, "made", |_| true).await;

    engine.order("a", json!({ "owned": [], "deleteAfter": all })).await;
    engine.wait_ready("a").await;
    let names = || async {
        let mut names = engine.space.names::<ConfigMap>().await;
        names.retain(|name| name != "kube-root-ca.crt");
        names
    };
    eventually("ours to go", names, |names| *names == ["other", "plain"]).await;
    engine.look_again("a").await;
    assert_eq!(names().await, ["other", "plain"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_stand_in_the_order_they_ask_for() {
    let Some(engine) = Engine::start("order").await else { return };
    let [before, after] = ["before", "after"].map(|name| config_map(name, "x"));
    engine.create("a", json!({ "owned": [before, after] })).await;
    engine.wait_ready("a").await;

    // A name in use by others makes the apply fail: what was to follow it waits.
    engine.apply_as("other", &config_map("foreign", "x")).await;
    let orders = json!({ "owned": [config_map("foreign", "y")], "deleteBefore": [before], "deleteAfter": [after] });
    engine.order("a", orders).await;
    let object = engine.wait("a", "Ready", "False", "InvalidSpec").await;
    let text = message(&object, "Ready");
    assert!(text.contains("NotOwned: ConfigMap"), "{text}");
    assert!(child::<ConfigMap>(&engine, "before").await.is_none());
    assert!(child::<ConfigMap>(&engine, "after").await.is_some());
    assert_eq!(child::<ConfigMap>(&engine, "foreign").await.unwrap()["data"]["key"], "x");

    engine.order("a", json!({ "owned": [config_map("new", "y")] })).await;
    engine.wait_ready("a").await;
    assert!(child::<ConfigMap>(&engine, "after").await.is_none());
    assert!(child::<ConfigMap>(&engine, "new").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn w10_an_owner_must_be_in_the_same_namespace() {
    let Some(engine) = Engine::start("owner").await else { return };
    let mut elsewhere = config_map(&format!("w10-{}", engine.space.name), "x");
    elsewhere["metadata"]["namespace"] = "default".into();
    let name = format!("w10-{}", engine.space.name);
    let cluster_wide = json!({ "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole", "metadata": { "name": name }, "rules": [] });
    for (object, child) in [("a", elsewhere.clone()), ("b", cluster_wide)] {
        let kind = child["kind"].as_str().unwrap().to_owned();
        engine.create(object, json!({ "owned": [child] })).await;
        let found = engine.wait(object, "ConfigValid", "False", "InvalidSpec").await;
        let text = message(&found, "ConfigValid");
        assert!(text.contains(&format!("InvalidOwner: {kind} ")), "{text}");
        assert!(text.contains("an owner must be in the same namespace"), "{text}");
        assert_eq!(condition(&found, "Ready")["status"], "False");
    }
    let client = engine.space.client.clone();
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    assert!(config_maps.get_opt(&name).await.unwrap().is_none());
    assert!(Api::<ClusterRole>::all(client).get_opt(&name).await.unwrap().is_none());

    // Shared, it has no owner, so it may be anywhere.
    engine.create("c", json!({ "shared": [elsewhere] })).await;
    engine.wait_ready("c").await;
    assert!(config_maps.get_opt(&name).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn w10_children_name_their_owner_as_controller() {
    let Some(engine) = Engine::start("controller").await else { return };
    let owned = [service_account("a"), config_map("a", "x"), deployment("a")];
    let parent = engine.create("a", json!({ "owned": owned })).await;
    engine.wait_ready("a").await;
    let owner = json!([{ "apiVersion": "test.windlass.dev/v1", "kind": "Widget", "name": "a",
        "uid": parent.metadata.uid, "controller": true, "blockOwnerDeletion": true }]);
    for child in [
        wait_child::<ServiceAccount>(&engine, "a", |_| true).await,
        wait_child::<ConfigMap>(&engine, "a", |_| true).await,
        wait_child::<Deployment>(&engine, "a", |_| true).await,
    ] {
        assert_eq!(child["metadata"]["ownerReferences"], owner);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_predecessor_wrote_and_nobody_wants_any_more_goes() {
    let Some(engine) = Engine::start("inherited").await else { return };
    let parent = engine
        .create_with("a", json!({ "annotations": { "windlass.dev/paused": "true" } }), json!({}))
        .await;
    let mut map = config_map("a", "old");
    map["data"]["forgotten"] = "x".into();
    map["metadata"]["ownerReferences"] = json!([{ "apiVersion": "test.windlass.dev/v1",
        "kind": "Widget", "name": "a", "uid": parent.metadata.uid, "controller": true }]);
    let post = PostParams { field_manager: Some(PREDECESSOR.to_owned()), ..Default::default() };
    let maps = engine.space.api::<ConfigMap>();
    maps.create(&post, &serde_json::from_value(map).unwrap()).await.unwrap();
    let theirs = json!({ "data": { "theirs": "y" } });
    engine.space.edit::<ConfigMap>("a", theirs).await;

    engine.order("a", json!({ "owned": [config_map("a", "new")] })).await;
    engine.edit("a", json!({ "metadata": { "annotations": null } })).await;
    let want = json!({ "key": "new", "theirs": "y" });
    wait_child::<ConfigMap>(&engine, "a", |found| found["data"] == want).await;
}
