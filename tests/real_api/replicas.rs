//! Autoscaling and who owns the number of replicas.

use k8s_openapi::api::{apps::v1::Deployment, autoscaling::v2::HorizontalPodAutoscaler};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass_api::serving::zerfoo_inference_service::ZerfooInferenceService;
use windlass_tests::{Need, Operator, Space, eventually, wait};

use crate::zis;

async fn replicas(space: &Space, name: &str) -> Option<i32> {
    zis::deployment(space, name).await.spec.unwrap().replicas
}

/// As the autoscaler does it.
async fn scale(space: &Space, name: &str, replicas: i32) {
    let params = PatchParams { field_manager: Some("autoscaler".into()), ..Default::default() };
    let patch = json!({ "spec": { "replicas": replicas } });
    space.api::<Deployment>().patch_scale(name, &params, &Patch::Merge(&patch)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_autoscaler_owns_the_replicas_once_it_has_set_them() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("scaling").await;
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "a", json!({ "minReplicas": 3, "maxReplicas": 10 })).await;
    eventually("replicas within the bounds", || replicas(&space, "a-primary"), |n| *n == Some(3))
        .await;
    eventually("the autoscaler", || space.names::<HorizontalPodAutoscaler>(), |n| n == &["a-hpa"])
        .await;

    scale(&space, "a-primary", 7).await;
    // Another change of the same object must not set them back.
    let patch = json!({ "spec": { "podAnnotations": { "x": "y" } } });
    space.edit::<ZerfooInferenceService>("a", patch).await;
    let changed = |deployment: &Deployment| {
        let template = deployment.spec.as_ref().unwrap().template.metadata.as_ref().unwrap();
        template.annotations.as_ref().is_some_and(|annotations| annotations.contains_key("x"))
    };
    eventually("the other change", || zis::deployment(&space, "a-primary"), changed).await;
    assert_eq!(replicas(&space, "a-primary").await, Some(7));

    // Without autoscaling the spec's number counts again.
    let patch = json!({ "spec": { "minReplicas": 0, "maxReplicas": 0 } });
    space.edit::<ZerfooInferenceService>("a", patch).await;
    eventually("no autoscaler", || space.names::<HorizontalPodAutoscaler>(), Vec::is_empty).await;
    eventually("the spec's replicas", || replicas(&space, "a-primary"), |n| *n == Some(2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_can_be_scaled_by_its_own_scale_subresource() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("scale").await;
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "a", json!({})).await;
    zis::deployment(&space, "a-primary").await;
    cluster.kubectl(&["-n", &space.name, "scale", "zis/a", "--replicas=4"], "");
    eventually("four replicas", || replicas(&space, "a-primary"), |n| *n == Some(4)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_an_autoscaling_is_none_and_says_so() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("half").await;
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "a", json!({ "minReplicas": 3 })).await;
    zis::make_ready(&space, "a", 2).await;
    assert!(space.names::<HorizontalPodAutoscaler>().await.is_empty());
    eventually(
        "the event",
        || zis::events(&space, "a"),
        |reasons| reasons.contains(&"AutoscalingIncomplete".to_owned()),
    )
    .await;
    // Said once, not on every pass.
    space.edit::<Deployment>("a-primary", json!({ "metadata": { "labels": { "x": "y" } } })).await;
    wait::pass(std::time::Duration::from_millis(500)).await;
    let said = zis::events(&space, "a").await;
    assert_eq!(said.iter().filter(|reason| *reason == "AutoscalingIncomplete").count(), 1);
}
