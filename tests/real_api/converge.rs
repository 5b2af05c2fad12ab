//! From a manifest to Ready, and what Ready means.

use k8s_openapi::api::{
    apps::v1::Deployment, autoscaling::v2::HorizontalPodAutoscaler, core::v1::Service,
};
use serde_json::json;
use windlass_api::{
    foreign::http_route::HttpRoute, serving::zerfoo_inference_service::ZerfooInferenceService,
};
use windlass_tests::{Cluster, Need, Operator, eventually, kubelet, operator::Setup};

use crate::zis;

#[tokio::test(flavor = "multi_thread")]
async fn a_service_becomes_ready_when_its_pods_do() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("converge").await;
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "my-llama", json!({})).await;

    let waiting = zis::wait_condition(&space, "my-llama", "Ready", "False", "Progressing").await;
    assert_eq!(zis::status(&waiting)["ready"], false);
    assert_eq!(space.names::<Deployment>().await, ["my-llama-primary"]);
    assert_eq!(space.names::<Service>().await, ["my-llama-svc"]);
    assert!(space.names::<HorizontalPodAutoscaler>().await.is_empty());

    let ready = zis::make_ready(&space, "my-llama", 2).await;
    let status = zis::status(&ready);
    assert_eq!(status["ready"], true);
    assert_eq!(status["replicas"], 2);
    assert_eq!(status["status"], "Ready");
    assert_eq!(status["observedGeneration"], 1);
    assert_eq!(status["primary"]["readyReplicas"], 2);
    assert!(zis::events(&space, "my-llama").await.contains(&"UnauthenticatedEndpoint".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_is_false_from_the_moment_the_spec_changes() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("stale").await;
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "a", json!({ "replicas": 1, "resources": {} })).await;
    zis::make_ready(&space, "a", 1).await;

    let patch = json!({ "spec": { "modelRef": "llama3-8b-q8" } });
    space.edit::<ZerfooInferenceService>("a", patch).await;
    // The first status of the new generation must not repeat the old one's success.
    let object = eventually(
        "the new generation to be seen",
        || zis::get(&space, "a"),
        |object| zis::status(object)["observedGeneration"] == 2,
    )
    .await;
    assert_eq!(zis::status(&object)["ready"], false, "{:?}", object.status);
    kubelet::run_pods(&space, "app=a", 2).await;
    zis::wait_ready(&space, "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_cannot_start_is_named_as_the_cause_and_can_be_corrected() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("cause").await;
    let _operator = Operator::start(&cluster, &space).await;
    let more = json!({ "replicas": 1, "image": "example.com/typo:1", "resources": {} });
    zis::create(&space, "a", more).await;
    let text = "manifest for example.com/typo:1 not found";
    kubelet::hold_pods(&space, &zis::pods("a", "primary"), 1, "ImagePullBackOff", text).await;

    let object = zis::wait_condition(&space, "a", "PrimaryReady", "False", "ImageNotFound").await;
    assert_eq!(zis::status(&object)["status"], "Degraded");
    assert!(zis::condition(&object, "PrimaryReady").unwrap().message.contains(text));

    // A wrong image must not stand in the way of the right one.
    let patch = json!({ "spec": { "image": "example.com/right:1" } });
    space.edit::<ZerfooInferenceService>("a", patch).await;
    eventually(
        "the corrected image",
        || zis::deployment(&space, "a-primary"),
        |deployment| {
            let template = &deployment.spec.as_ref().unwrap().template;
            template.spec.as_ref().unwrap().containers[0].image.as_deref()
                == Some("example.com/right:1")
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_spec_leaves_the_children_as_they_were() {
    let Some(cluster) = crate::private(&["gateway-api"], &[Need::Kubectl]).await else {
        return;
    };
    // The schema would refuse it; rules that were added later do not reach stored objects.
    loosen_schema(&cluster);
    let space = cluster.space("invalid").await;
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "a", json!({})).await;
    zis::make_ready(&space, "a", 2).await;
    let before = zis::deployment(&space, "a-primary").await;

    space.edit::<ZerfooInferenceService>("a", json!({ "spec": { "replicas": 0 } })).await;
    let object = zis::wait_condition(&space, "a", "ConfigValid", "False", "InvalidSpec").await;
    let message = &zis::condition(&object, "Ready").unwrap().message;
    assert!(message.contains("operator: invalid spec: replicas must be >= 1"), "{message}");
    assert_eq!(zis::status(&object)["status"], "Degraded");
    let after = zis::deployment(&space, "a-primary").await;
    assert_eq!(before.metadata.generation, after.metadata.generation);

    space.edit::<ZerfooInferenceService>("a", json!({ "spec": { "replicas": 2 } })).await;
    let healed = zis::wait_ready(&space, "a").await;
    assert_eq!(zis::condition(&healed, "ConfigValid").unwrap().reason, "ConfigurationValid");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_object_does_not_disturb_the_others() {
    let Some(cluster) = crate::private(&["gateway-api"], &[Need::Kubectl]).await else {
        return;
    };
    loosen_schema(&cluster);
    let space = cluster.space("unreadable").await;
    let broken = "{apiVersion: serving.zerfoo.com/v1alpha1, kind: ZerfooInferenceService, \
                  metadata: {name: broken}, spec: {modelRef: m, env: none}}";
    cluster.kubectl(&["-n", &space.name, "apply", "-f", "-"], broken);
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "good", json!({})).await;
    zis::make_ready(&space, "good", 2).await;
    eventually(
        "the broken object to say why",
        || async {
            cluster.kubectl(&["-n", &space.name, "get", "zis", "broken", "-o", "json"], "")
        },
        |text| text.contains("ConfigValid") && text.contains("cannot read"),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requiring_auth_refuses_an_open_service() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("auth").await;
    let setup = Setup::default().with("--require-auth");
    let _operator = Operator::start_with(&cluster, &space, &setup).await;
    zis::create(&space, "open", json!({})).await;
    let object = zis::wait_condition(&space, "open", "ConfigValid", "False", "InvalidSpec").await;
    assert_eq!(zis::status(&object)["status"], "Degraded");
    assert!(space.names::<Deployment>().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_object_is_left_alone_and_says_so() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("pause").await;
    let _operator = Operator::start(&cluster, &space).await;
    for annotation in ["aim.eai.amd.com/reconciliation-paused", "windlass.dev/paused"] {
        let mut object = zis::manifest("a", json!({}));
        object.metadata.annotations = Some([(annotation.to_owned(), "true".to_owned())].into());
        space.create(&object).await;
        zis::wait_condition(&space, "a", "ReconciliationPaused", "True", "PausedByAnnotation")
            .await;
        assert!(space.names::<Deployment>().await.is_empty());

        let patch = json!({ "metadata": { "annotations": { annotation: "True" } } });
        space.edit::<ZerfooInferenceService>("a", patch).await;
        let object = zis::make_ready(&space, "a", 2).await;
        assert!(zis::condition(&object, "ReconciliationPaused").is_none());
        space.delete::<ZerfooInferenceService>("a").await;
        eventually("the children to go", || space.names::<Deployment>(), Vec::is_empty).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_leaves_nothing() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("deletion").await;
    let _operator = Operator::start(&cluster, &space).await;
    let more = json!({
        "minReplicas": 2, "maxReplicas": 4,
        "canary": { "modelRef": "llama3-8b-q8", "weight": 20 },
        "routing": { "parentRefs": [{ "name": "gw" }] },
    });
    zis::create(&space, "a", more).await;
    eventually("the route", || space.names::<HttpRoute>(), |names| !names.is_empty()).await;
    eventually("the autoscaler", || space.names::<HorizontalPodAutoscaler>(), |n| !n.is_empty())
        .await;
    assert_eq!(space.names::<Deployment>().await.len(), 2);

    space.delete::<ZerfooInferenceService>("a").await;
    eventually("no Deployments", || space.names::<Deployment>(), Vec::is_empty).await;
    eventually("no Services", || space.names::<Service>(), Vec::is_empty).await;
    eventually("no HPAs", || space.names::<HorizontalPodAutoscaler>(), Vec::is_empty).await;
    eventually("no routes", || space.names::<HttpRoute>(), Vec::is_empty).await;
    assert!(space.names::<ZerfooInferenceService>().await.is_empty());
}

/// As if the CRD were of an older version that did not check yet.
fn loosen_schema(cluster: &Cluster) {
    let schema = json!([{ "op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": { "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                        "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
    }}]);
    let crd = "zerfooinferenceservices.serving.zerfoo.com";
    cluster.kubectl(&["patch", "crd", crd, "--type=json", "-p", &schema.to_string()], "");
}
