//! Objects and fields of others.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::ResourceExt;
use serde_json::json;
use windlass_api::serving::zerfoo_inference_service::ZerfooInferenceService;
use windlass_tests::{Need, Operator, eventually};

use crate::zis;

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_object_of_our_name_is_never_touched() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("foreign").await;
    let foreign: Service = serde_json::from_value(json!({
        "metadata": { "name": "a-svc" },
        "spec": { "ports": [{ "port": 1 }] },
    }))
    .unwrap();
    let before = space.create(&foreign).await;
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "a", json!({})).await;

    let object = zis::wait_condition(&space, "a", "Ready", "False", "InvalidSpec").await;
    let message = &zis::condition(&object, "Ready").unwrap().message;
    assert!(message.contains("a-svc exists and was not made by this controller"), "{message}");
    let after: Service = space.get("a-svc").await.unwrap();
    assert_eq!(before.resource_version(), after.resource_version());

    space.delete::<ZerfooInferenceService>("a").await;
    eventually("the Deployment to go", || space.names::<Deployment>(), Vec::is_empty).await;
    let after: Service = space.get("a-svc").await.unwrap();
    assert_eq!(before.resource_version(), after.resource_version());
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_others_survive() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("fields").await;
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "a", json!({})).await;
    zis::deployment(&space, "a-primary").await;
    cluster.kubectl(&["-n", &space.name, "rollout", "restart", "deployment/a-primary"], "");
    let sidecar = json!([{ "op": "add", "path": "/spec/template/spec/containers/-",
        "value": { "name": "sidecar", "image": "example.com/sidecar:1" } }]);
    let sidecar = sidecar.to_string();
    let patch =
        ["-n", &space.name, "patch", "deployment", "a-primary", "--type=json", "-p", &sidecar];
    cluster.kubectl(&patch, "");
    cluster.kubectl(&["-n", &space.name, "label", "deployment", "a-primary", "team=search"], "");

    // Our next write goes to the same object.
    space.edit::<ZerfooInferenceService>("a", json!({ "spec": { "replicas": 3 } })).await;
    let deployment = eventually(
        "three replicas",
        || zis::deployment(&space, "a-primary"),
        |deployment| deployment.spec.as_ref().unwrap().replicas == Some(3),
    )
    .await;
    let template = deployment.spec.as_ref().unwrap().template.clone();
    let annotations = template.metadata.unwrap().annotations.unwrap();
    assert!(annotations.contains_key("kubectl.kubernetes.io/restartedAt"));
    let names: Vec<_> = template.spec.unwrap().containers.into_iter().map(|c| c.name).collect();
    assert!(names.contains(&"sidecar".to_owned()), "{names:?}");
    assert_eq!(deployment.labels()["team"], "search");
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_with_our_labels_are_taken_back() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("orphans").await;
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "a", json!({})).await;
    let before = zis::deployment(&space, "a-primary").await;
    cluster.kubectl(&["-n", &space.name, "delete", "zis", "a", "--cascade=orphan"], "");
    eventually(
        "no owner",
        || zis::deployment(&space, "a-primary"),
        |d| d.owner_references().is_empty(),
    )
    .await;

    let parent = zis::create(&space, "a", json!({})).await;
    let after = eventually(
        "the new owner",
        || zis::deployment(&space, "a-primary"),
        |d| d.owner_references().iter().any(|owner| owner.uid == zis::uid_of(&parent)),
    )
    .await;
    assert_eq!(zis::uid_of(&before), zis::uid_of(&after), "the pods go on running");
}

#[tokio::test(flavor = "multi_thread")]
async fn children_are_applied_by_the_controllers_own_field_manager() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("manager").await;
    let _operator = Operator::start(&cluster, &space).await;
    let parent = zis::create(&space, "a", json!({})).await;
    let deployment = zis::deployment(&space, "a-primary").await;
    let ours = deployment.managed_fields().iter().find(|entry| {
        entry.manager.as_deref() == Some("zerfoo-inference-service-controller")
            && entry.operation.as_deref() == Some("Apply")
    });
    assert!(ours.is_some(), "{:?}", deployment.managed_fields());
    let owner = &deployment.owner_references()[0];
    assert_eq!(owner.uid, zis::uid_of(&parent));
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
}
