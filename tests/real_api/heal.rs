//! What somebody edits or deletes comes back; what is not ours stays as it is.

use k8s_openapi::api::{
    apps::v1::Deployment, autoscaling::v2::HorizontalPodAutoscaler, core::v1::Service,
};
use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::foreign::http_route::HttpRoute;
use windlass_tests::{Namespaced, Need, Operator, Space, eventually, until};

use crate::zis;

/// A service that has every kind of child.
async fn everything(space: &Space) {
    let more = json!({
        "minReplicas": 2, "maxReplicas": 4,
        "canary": { "modelRef": "llama3-8b-q8", "weight": 20 },
        "routing": { "parentRefs": [{ "name": "gw" }] },
    });
    zis::create(space, "a", more).await;
    eventually("all children", || space.names::<HttpRoute>(), |names| !names.is_empty()).await;
    eventually("all children", || space.names::<HorizontalPodAutoscaler>(), |n| !n.is_empty())
        .await;
}

async fn heals<K: Namespaced + Serialize>(space: &Space, name: &str, edit: Value) {
    let kind = K::kind(&()).into_owned();
    let spec = |object: &K| serde_json::to_value(object).unwrap()["spec"].clone();
    let before: K = until(&kind, || async { space.get(name).await.ok_or(String::new()) }).await;

    let edited: K = space.edit(name, edit).await;
    assert_ne!(spec(&edited), spec(&before), "the edit of {kind} changes something");
    let read = || async { space.get::<K>(name).await.map(|object| spec(&object)) };
    eventually(&format!("{kind} as it was"), read, |now| *now == Some(spec(&before))).await;

    space.delete::<K>(name).await;
    let uid = zis::uid_of(&before);
    eventually(
        &format!("a new {kind}"),
        || space.get::<K>(name),
        |now| now.as_ref().is_some_and(|now| zis::uid_of(now) != uid),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_child_is_healed_when_edited_or_deleted() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("heal").await;
    let _operator = Operator::start(&cluster, &space).await;
    everything(&space).await;
    for track in ["primary", "canary"] {
        let containers = json!([{ "name": "zerfoo", "image": "example.com/hacked:1" }]);
        let edit = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
        heals::<Deployment>(&space, &format!("a-{track}"), edit).await;
        let edit = json!({ "spec": { "selector": { "app": "b" } } });
        heals_service(&space, &format!("a-{track}"), edit).await;
    }
    heals_service(&space, "a-svc", json!({ "spec": { "selector": { "app": "b" } } })).await;
    heals::<HorizontalPodAutoscaler>(&space, "a-hpa", json!({ "spec": { "maxReplicas": 40 } }))
        .await;
    let edit = json!({ "spec": { "parentRefs": [{ "name": "other" }] } });
    heals::<HttpRoute>(&space, "a-route", edit).await;
}

/// A new Service gets a new address, so only what we set is compared.
async fn heals_service(space: &Space, name: &str, edit: Value) {
    let selector = |service: &Service| service.spec.as_ref().unwrap().selector.clone().unwrap();
    let before: Service =
        until("Service", || async { space.get(name).await.ok_or(String::new()) }).await;
    space.edit::<Service>(name, edit).await;
    let healed =
        |now: &Option<Service>| now.as_ref().is_some_and(|now| selector(now) == selector(&before));
    eventually("the selector as it was", || space.get::<Service>(name), healed).await;
    space.delete::<Service>(name).await;
    eventually("a new Service", || space.get::<Service>(name), healed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_is_told_with_the_name_of_who_made_the_change() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("told").await;
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "a", json!({})).await;
    zis::deployment(&space, "a-primary").await;
    space.edit::<Deployment>("a-primary", json!({ "spec": { "replicas": 9 } })).await;
    eventually(
        "the event",
        || zis::events(&space, "a"),
        |reasons| reasons.contains(&"DriftCorrected".to_owned()),
    )
    .await;
    let text = cluster.kubectl(&["-n", &space.name, "get", "events", "-o", "json"], "");
    assert!(text.contains("spec.replicas was changed by somebody"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_is_healed_too() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("status").await;
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "a", json!({})).await;
    zis::make_ready(&space, "a", 2).await;
    let lie = json!({ "ready": false, "message": "hacked" });
    space
        .edit_status::<windlass_api::serving::zerfoo_inference_service::ZerfooInferenceService>(
            "a", lie,
        )
        .await;
    eventually(
        "the truth",
        || zis::get(&space, "a"),
        |object| zis::status(object)["ready"] == true && zis::status(object)["message"] != "hacked",
    )
    .await;
}
