use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ConfigMap, PersistentVolumeClaim, ServiceAccount},
    rbac::v1::RoleBinding,
};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{
    objects::{claim, config_map, job, role_binding, service_account, with},
    run::{Engine, Setup, child, wait_child},
    widget::{CONTROLLER, ClusterWidget, NAME_LABEL},
};

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

#[tokio::test(flavor = "multi_thread")]
async fn g21_labels_travel_to_children_and_to_the_pods_of_jobs() {
    let Some(engine) = Engine::start("labels").await else { return };
    let metadata = json!({ "labels": {
        "team": "search", "env": "prod", "team-1": "x", "aim.eai.amd.com/model": "m",
    } });
    let plain = with(job("plain", "main:1"), "labels", json!({ "x": "y" }));
    let labels = json!({ "team": "beta", MANAGED_BY: "somebody" });
    let labelled = with(config_map("own", "x"), "labels", labels);
    let orders = json!({
        "owned": [plain, labelled, config_map("map", "x")], "inherit": ["team", "[bad", "team-*"],
    });
    engine.create_with("a", metadata, orders).await;
    let plain = wait_child::<Job>(&engine, "plain", |_| true).await;
    let want = json!({ "x": "y", "team": "search", "team-1": "x", "aim.eai.amd.com/model": "m",
        MANAGED_BY: CONTROLLER, NAME_LABEL: "a" });
    assert_eq!(plain["metadata"]["labels"], want);
    let pods = &plain["spec"]["template"]["metadata"]["labels"];
    assert_eq!((&pods["team"], &pods[NAME_LABEL]), (&json!("search"), &json!("a")));
    assert_eq!(
        (&pods[MANAGED_BY], &pods["env"], &pods["x"]),
        (&json!(null), &json!(null), &json!(null))
    );

    let map = wait_child::<ConfigMap>(&engine, "map", |_| true).await;
    assert_eq!(map["metadata"]["labels"]["team"], "search");
    assert_eq!(map["metadata"]["labels"]["env"], json!(null));
    let own = wait_child::<ConfigMap>(&engine, "own", |_| true).await;
    assert_eq!(own["metadata"]["labels"]["team"], "beta", "what the child has is kept");
    assert_eq!(own["metadata"]["labels"][MANAGED_BY], "somebody");
}

#[tokio::test(flavor = "multi_thread")]
async fn g21_without_rules_only_our_own_labels_travel() {
    let Some(engine) = Engine::start("norules").await else { return };
    let metadata = json!({ "labels": { "team": "search", "aim.eai.amd.com/model": "m" } });
    engine.create_with("a", metadata, json!({ "owned": [config_map("a", "x")] })).await;
    let map = wait_child::<ConfigMap>(&engine, "a", |_| true).await;
    let want = json!({ "aim.eai.amd.com/model": "m", MANAGED_BY: CONTROLLER, NAME_LABEL: "a" });
    assert_eq!(map["metadata"]["labels"], want);
}

#[tokio::test(flavor = "multi_thread")]
async fn w24_a_name_too_long_for_a_label_is_shortened_there_and_kept_in_an_annotation() {
    let Some(engine) = Engine::start("long").await else { return };
    let name = "a".repeat(75);
    let orders = json!({ "owned": [config_map("owned", "x"), job("job", "main:1")],
        "shared": [config_map("shared", "x")] });
    engine.create(&name, orders).await;
    engine.wait_ready(&name).await;
    let owned = wait_child::<ConfigMap>(&engine, "owned", |_| true).await;
    let label = owned["metadata"]["labels"][NAME_LABEL].as_str().unwrap().to_owned();
    assert!(label.len() <= 63 && label.starts_with("aaaa"), "{label}");
    assert_eq!(owned["metadata"]["annotations"][NAME_LABEL], name.as_str());
    let job = wait_child::<Job>(&engine, "job", |_| true).await;
    assert_eq!(job["spec"]["template"]["metadata"]["labels"][NAME_LABEL], label.as_str());

    // Both by its owner and by its label alone, a child is led back to the object.
    for child in ["owned", "shared"] {
        engine.space.delete::<ConfigMap>(child).await;
        wait_child::<ConfigMap>(&engine, child, |_| true).await;
    }
    // And an orphan is known by that label.
    let lost = json!({ "metadata": { "ownerReferences": null } });
    engine.space.edit::<ConfigMap>("owned", lost).await;
    let back = |found: &Value| found["metadata"]["ownerReferences"][0]["name"] == name.as_str();
    wait_child::<ConfigMap>(&engine, "owned", back).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_without_its_labels_or_its_owner_is_found_again_and_healed() {
    let Some(engine) = Engine::start("stripped").await else { return };
    let owned = json!({ "owned": [service_account("a"), config_map("a", "x"), job("a", "main:1"),
        claim("a", "1Gi"), role_binding("a", "r")] });
    engine.create("a", owned).await;
    engine.wait_ready("a").await;
    let strip = json!({ "metadata": { "labels": null } });
    let labelled = |found: &Value| {
        let labels = &found["metadata"]["labels"];
        labels[MANAGED_BY] == CONTROLLER && labels[NAME_LABEL] == "a"
    };
    let before = child::<Job>(&engine, "a").await.unwrap();
    engine.space.edit::<ServiceAccount>("a", strip.clone()).await;
    wait_child::<ServiceAccount>(&engine, "a", labelled).await;
    engine.space.edit::<ConfigMap>("a", strip.clone()).await;
    wait_child::<ConfigMap>(&engine, "a", labelled).await;
    let hack = json!({ "data": { "key": "hacked" } });
    engine.space.edit::<ConfigMap>("a", hack).await;
    wait_child::<ConfigMap>(&engine, "a", |found| found["data"]["key"] == "x").await;
    engine.space.edit::<Job>("a", strip.clone()).await;
    wait_child::<Job>(&engine, "a", labelled).await;
    engine.space.edit::<PersistentVolumeClaim>("a", strip.clone()).await;
    wait_child::<PersistentVolumeClaim>(&engine, "a", labelled).await;
    engine.space.edit::<RoleBinding>("a", strip).await;
    wait_child::<RoleBinding>(&engine, "a", labelled).await;

    // Orphans are taken back too.
    let orphan = json!({ "metadata": { "ownerReferences": null } });
    let owned = |found: &Value| found["metadata"]["ownerReferences"][0]["name"] == "a";
    engine.space.edit::<Job>("a", orphan.clone()).await;
    wait_child::<Job>(&engine, "a", owned).await;
    engine.space.edit::<PersistentVolumeClaim>("a", orphan.clone()).await;
    wait_child::<PersistentVolumeClaim>(&engine, "a", owned).await;
    engine.space.edit::<RoleBinding>("a", orphan).await;
    wait_child::<RoleBinding>(&engine, "a", owned).await;
    let after = child::<Job>(&engine, "a").await.unwrap();
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"], "it goes on running");
    engine.wait_ready("a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn children_of_a_cluster_scoped_object_may_be_in_any_namespace() {
    let setup = Setup { finalizer: true, ..Setup::default() };
    let Some(engine) = Engine::start_with::<ClusterWidget>("wide", setup).await else { return };
    let mut owned = config_map("owned", "x");
    owned["metadata"]["namespace"] = engine.space.name.as_str().into();
    let mut shared = config_map("shared", "x");
    shared["metadata"]["namespace"] = engine.space.name.as_str().into();
    engine
        .create("wide", json!({ "owned": [owned], "shared": [shared], "cleanUp": [shared] }))
        .await;
    engine.wait_ready("wide").await;
    let made = wait_child::<ConfigMap>(&engine, "owned", |_| true).await;
    assert_eq!(made["metadata"]["ownerReferences"][0]["kind"], "ClusterWidget");
    for child in ["owned", "shared"] {
        engine.space.delete::<ConfigMap>(child).await;
        wait_child::<ConfigMap>(&engine, child, |_| true).await;
    }
    engine.delete("wide", DeleteParams::background()).await;
    assert!(child::<ConfigMap>(&engine, "shared").await.is_none());
}
