use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Service, ServiceAccount},
    rbac::v1::{Role, RoleBinding},
};
use serde_json::{Value, json};
use windlass_engine::apply::SPEC_HASH;
use windlass_tests::{eventually, wait};

use super::{
    objects::{
        claim, config_map, deployment, invalid_config_map, job, role, role_binding, service,
        service_account, with,
    },
    run::{Engine, Setup, child, message, wait_child},
    widget::{CONTROLLER, NAME_LABEL, Widget},
};

#[tokio::test(flavor = "multi_thread")]
async fn w08_a_changed_job_is_made_again_exactly_once() {
    let Some(engine) = Engine::start("job").await else { return };
    engine.create("a", json!({ "owned": [job("a", "main:1")] })).await;
    engine.wait_ready("a").await;
    let first = wait_child::<Job>(&engine, "a", |_| true).await;
    let hash = |job: &Value| job["metadata"]["annotations"][SPEC_HASH].clone();
    assert!(hash(&first).is_string());
    engine.look_again("a").await;
    assert_eq!(engine.writes("jobs").len(), 1, "an unchanged one is left alone");

    engine.order("a", json!({ "owned": [job("a", "main:2")] })).await;
    let uid = first["metadata"]["uid"].clone();
    let second = wait_child::<Job>(&engine, "a", |job| job["metadata"]["uid"] != uid).await;
    let image = &second["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "example.com/main:2");
    assert_ne!(hash(&first), hash(&second));
    engine.wait_ready("a").await;
    engine.look_again("a").await;
    let verbs: Vec<_> = engine.writes("jobs").into_iter().map(|write| write.verb).collect();
    assert_eq!(verbs, ["patch", "delete", "patch"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn w08_a_job_of_a_predecessor_is_left_alone() {
    let Some(engine) = Engine::start("predecessor").await else { return };
    let parent = engine.create("a", json!({})).await;
    let labels = json!({ "app.kubernetes.io/managed-by": CONTROLLER, NAME_LABEL: "a" });
    let owner = json!([{ "apiVersion": "test.windlass.dev/v1", "kind": "Widget", "name": "a",
        "uid": parent.metadata.uid, "controller": true }]);
    let old = with(with(job("a", "old:1"), "labels", labels), "ownerReferences", owner);
    engine.apply_as("predecessor", &old).await;
    let before = child::<Job>(&engine, "a").await.unwrap();
    engine.order("a", json!({ "owned": [job("a", "new:1")] })).await;
    engine.wait_ready("a").await;
    engine.look_again("a").await;
    let after = child::<Job>(&engine, "a").await.unwrap();
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(before["spec"], after["spec"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn w08_a_claim_is_made_once() {
    let Some(engine) = Engine::start("claim").await else { return };
    engine.create("a", json!({ "owned": [claim("a", "1Gi")] })).await;
    engine.wait_ready("a").await;
    let before = wait_child::<PersistentVolumeClaim>(&engine, "a", |_| true).await;
    let changed = json!({ "owned": [claim("a", "2Gi"), config_map("a", "x")] });
    engine.order("a", changed).await;
    engine.wait_ready("a").await;
    wait_child::<ConfigMap>(&engine, "a", |_| true).await;
    let after = child::<PersistentVolumeClaim>(&engine, "a").await.unwrap();
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(after["spec"]["resources"]["requests"]["storage"], "1Gi");
    assert_eq!(engine.writes("persistentvolumeclaims").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn w08_a_role_binding_to_another_role_is_replaced() {
    let Some(engine) = Engine::start("binding").await else { return };
    engine.create("a", json!({ "owned": [role_binding("a", "one")] })).await;
    engine.wait_ready("a").await;
    engine.order("a", json!({ "owned": [role_binding("a", "two")] })).await;
    wait_child::<RoleBinding>(&engine, "a", |found| found["roleRef"]["name"] == "two").await;
    engine.wait_ready("a").await;
    engine.look_again("a").await;
    let verbs: Vec<_> = engine.writes("rolebindings").into_iter().map(|w| w.verb).collect();
    assert_eq!(verbs, ["patch", "delete", "patch"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn w09_a_deleted_job_takes_its_pods_along() {
    let setup = Setup { needs: &[], ..Setup::default() };
    let Some(engine) = Engine::start_with::<Widget>("pods", setup).await else { return };
    engine.create("a", json!({ "owned": [job("a", "main:1")] })).await;
    eventually("a pod", || engine.space.names::<Pod>(), |names| names.len() == 1).await;
    engine.order("a", json!({ "owned": [], "deleteAfter": [job("a", "")] })).await;
    eventually("no Job", || engine.space.names::<Job>(), Vec::is_empty).await;
    eventually("no pod", || engine.space.names::<Pod>(), Vec::is_empty).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w11_children_are_made_in_the_order_of_their_dependencies() {
    let Some(engine) = Engine::start("tiers").await else { return };
    // As far from that order as can be.
    let owned = json!([
        deployment("a"),
        claim("a", "1Gi"),
        config_map("a", "x"),
        role("a"),
        service_account("a"),
    ]);
    engine.create("a", json!({ "owned": owned })).await;
    engine.wait_ready("a").await;
    let made: Vec<_> = engine.writes("").into_iter().map(|write| write.resource).collect();
    let tiers = ["serviceaccounts", "roles", "configmaps", "persistentvolumeclaims", "deployments"];
    assert_eq!(made[..5], tiers);
}

#[tokio::test(flavor = "multi_thread")]
async fn w11_a_failure_stops_later_tiers_but_not_its_siblings() {
    let Some(engine) = Engine::start("siblings").await else { return };
    let owned = |first| json!({ "owned": [first, config_map("b", "x"), deployment("c")] });
    engine.create("a", owned(invalid_config_map("a"))).await;
    let object = engine.wait("a", "ConfigValid", "False", "InvalidSpec").await;
    let text = message(&object, "ConfigValid");
    assert!(text.contains("failed to apply ConfigMap a"), "{text}");
    assert!(child::<ConfigMap>(&engine, "b").await.is_some(), "a sibling");
    assert!(child::<Deployment>(&engine, "c").await.is_none(), "of a later tier");
    engine.order("a", owned(config_map("a", "x"))).await;
    engine.wait_ready("a").await;
    assert!(child::<Deployment>(&engine, "c").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_to_children_that_are_as_they_should_be() {
    let Some(engine) = Engine::start("rest").await else { return };
    let owned = json!([
        service_account("a"),
        role("a"),
        role_binding("a", "a"),
        config_map("a", "x"),
        claim("a", "1024Mi"),
        service("a"),
        deployment("a"),
        job("a", "main:1"),
    ]);
    engine.create("a", json!({ "owned": owned, "shared": [config_map("s", "x")] })).await;
    engine.wait_ready("a").await;
    // Controllers of Kubernetes write to some children; that settles.
    wait::pass(Duration::from_secs(2)).await;
    let before = engine.writes("").len();
    engine.look_again("a").await;
    assert_eq!(engine.writes("")[before..], []);
    for made in [
        child::<ServiceAccount>(&engine, "a").await,
        child::<Role>(&engine, "a").await,
        child::<Service>(&engine, "a").await,
    ] {
        assert!(made.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_on_its_way_out_is_waited_for_and_made_again() {
    let Some(engine) = Engine::start("leaving").await else { return };
    let owned = json!({ "owned": [config_map("a", "x"), job("a", "main:1")] });
    engine.create("a", owned).await;
    engine.wait_ready("a").await;
    let hold = json!({ "metadata": { "finalizers": ["test.windlass.dev/held"] } });
    let release = json!({ "metadata": { "finalizers": null } });
    let config_map: ConfigMap = engine.space.edit("a", hold.clone()).await;
    let job_before: Job = engine.space.edit("a", hold).await;
    engine.space.delete::<ConfigMap>("a").await;
    // Its template changes, so we delete it ourselves.
    let owned = json!({ "owned": [super::objects::config_map("a", "y"), job("a", "main:2")] });
    engine.order("a", owned).await;
    wait_child::<Job>(&engine, "a", |job| job["metadata"]["deletionTimestamp"].is_string()).await;
    engine.look_again("a").await;
    engine.wait_ready("a").await;
    let held = child::<ConfigMap>(&engine, "a").await.unwrap();
    assert_eq!(held["data"]["key"], "x", "nothing is written to it");

    engine.space.edit::<ConfigMap>("a", release.clone()).await;
    engine.space.edit::<Job>("a", release).await;
    let another = |uid: Option<String>| move |new: &Value| new["metadata"]["uid"] != json!(uid);
    let made = wait_child::<ConfigMap>(&engine, "a", another(config_map.metadata.uid)).await;
    assert_eq!(made["data"]["key"], "y");
    let made = wait_child::<Job>(&engine, "a", another(job_before.metadata.uid)).await;
    let image = &made["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "example.com/main:2");
}
