//! Traffic to a second model, its promotion and its withdrawal.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use serde_json::{Value, json};
use windlass_api::{
    foreign::http_route::HttpRoute, serving::zerfoo_inference_service::ZerfooInferenceService,
};
use windlass_tests::{Operator, Space, eventually, kubelet};

use crate::zis;

fn canary(weight: i32) -> Value {
    json!({ "modelRef": "llama3-8b-q8", "weight": weight })
}

async fn routed(space: &Space, weight: i32) {
    let more = json!({ "canary": canary(weight), "routing": { "parentRefs": [{ "name": "gw" }] } });
    zis::create(space, "a", more).await;
}

/// Backends and weights of the route, as `name=weight`.
async fn backends(space: &Space) -> Vec<String> {
    let Some(route) = space.get::<HttpRoute>("a-route").await else { return Vec::new() };
    let route = serde_json::to_value(route).unwrap();
    let refs = route["spec"]["rules"][0]["backendRefs"].as_array().cloned().unwrap_or_default();
    refs.iter().map(|r| format!("{}={}", r["name"].as_str().unwrap(), r["weight"])).collect()
}

async fn wait_backends(space: &Space, want: &[&str]) {
    eventually("the backends", || backends(space), |got| got == want).await;
}

/// What a gateway says of a route it serves.
async fn accept_route(space: &Space) {
    let route: HttpRoute = space.get("a-route").await.unwrap();
    let condition = |type_: &str| {
        json!({ "type": type_, "status": "True", "reason": type_, "message": "",
                "observedGeneration": route.metadata.generation, "lastTransitionTime": "2024-01-01T00:00:00Z" })
    };
    let parent = json!({ "parentRef": { "name": "gw" }, "controllerName": "example.com/test",
        "conditions": [condition("Accepted"), condition("ResolvedRefs")] });
    space.edit_status::<HttpRoute>("a-route", json!({ "parents": [parent] })).await;
}

async fn phase(space: &Space) -> Value {
    zis::status(&zis::get(space, "a").await)["canary"]["phase"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn k06_and_k07_traffic_follows_the_weight_once_the_canary_is_available() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("weights").await;
    let _operator = Operator::start(&cluster, &space).await;
    routed(&space, 20).await;
    wait_backends(&space, &["a-primary=100", "a-canary=0"]).await;
    zis::wait_condition(&space, "a", "TrafficSplitApplied", "False", "CanaryNotReady").await;

    kubelet::run_pods(&space, &zis::pods("a", "primary"), 2).await;
    kubelet::run_pods(&space, &zis::pods("a", "canary"), 2).await;
    wait_backends(&space, &["a-primary=80", "a-canary=20"]).await;
    accept_route(&space).await;
    zis::wait_ready(&space, "a").await;
    zis::wait_condition(&space, "a", "TrafficSplitApplied", "True", "Applied").await;

    let primary = zis::deployment(&space, "a-primary").await;
    let canary = zis::deployment(&space, "a-canary").await;
    let patch = json!({ "spec": { "canary": { "weight": 50 } } });
    space.edit::<ZerfooInferenceService>("a", patch).await;
    wait_backends(&space, &["a-primary=50", "a-canary=50"]).await;
    assert_eq!(
        primary.metadata.generation,
        zis::deployment(&space, "a-primary").await.metadata.generation
    );
    assert_eq!(
        canary.metadata.generation,
        zis::deployment(&space, "a-canary").await.metadata.generation
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn k10_a_canary_whose_model_becomes_the_primarys_is_promoted() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("promote").await;
    let _operator = Operator::start(&cluster, &space).await;
    routed(&space, 20).await;
    kubelet::run_pods(&space, &zis::pods("a", "primary"), 2).await;
    kubelet::run_pods(&space, &zis::pods("a", "canary"), 2).await;
    wait_backends(&space, &["a-primary=80", "a-canary=20"]).await;
    accept_route(&space).await;
    zis::wait_ready(&space, "a").await;

    let patch = json!({ "spec": { "modelRef": "llama3-8b-q8", "canary": null } });
    space.edit::<ZerfooInferenceService>("a", patch).await;
    wait_backends(&space, &["a-primary=0", "a-canary=100"]).await;
    eventually("promoting", || phase(&space), |phase| phase == "Promoting").await;

    // The primary rolls one pod at a time; each new pod becomes ready in its turn.
    roll_primary(&space, "llama3-8b-q8", 2).await;
    wait_backends(&space, &["a-primary=100", "a-canary=0"]).await;
    accept_route(&space).await;
    eventually("no canary", || space.names::<Deployment>(), |names| names == &["a-primary"]).await;
    eventually("no canary Service", || space.get::<Service>("a-canary"), Option::is_none).await;
    wait_backends(&space, &["a-primary=100"]).await;
    accept_route(&space).await;
    zis::wait_ready(&space, "a").await;
    // It is ready all the while; that there is no canary is told once the pass that removed it ends.
    let told_of = |object: &ZerfooInferenceService| {
        !zis::status(object)["canary"].is_null() || zis::condition(object, "CanaryReady").is_some()
    };
    eventually("no word of the canary", || zis::get(&space, "a"), |object| !told_of(object)).await;
    zis::wait_ready(&space, "a").await;
}

/// Makes new pods of the primary ready until its rollout is complete.
async fn roll_primary(space: &Space, model: &str, replicas: i32) {
    eventually(
        "the rollout",
        || async {
            kubelet::run_all(space, &zis::pods("a", "primary")).await;
            zis::deployment(space, "a-primary").await
        },
        |deployment| {
            let annotations = deployment.metadata.annotations.clone().unwrap_or_default();
            let status = deployment.status.clone().unwrap_or_default();
            annotations.get("serving.zerfoo.com/model-ref").map(String::as_str) == Some(model)
                && status.observed_generation == deployment.metadata.generation
                && status.updated_replicas == Some(replicas)
                && status.available_replicas == Some(replicas)
                && status.replicas == Some(replicas)
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k11_a_canary_that_is_dropped_is_drained_and_deleted() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("drop").await;
    let mut operator = Operator::start(&cluster, &space).await;
    routed(&space, 20).await;
    kubelet::run_pods(&space, &zis::pods("a", "primary"), 2).await;
    kubelet::run_pods(&space, &zis::pods("a", "canary"), 2).await;
    wait_backends(&space, &["a-primary=80", "a-canary=20"]).await;
    accept_route(&space).await;

    space.edit::<ZerfooInferenceService>("a", json!({ "spec": { "canary": null } })).await;
    wait_backends(&space, &["a-primary=100", "a-canary=0"]).await;
    accept_route(&space).await;
    eventually("draining", || phase(&space), |phase| phase == "Draining").await;
    assert!(space.get::<Deployment>("a-canary").await.is_some(), "requests under way go on");

    // The drain goes on where it was, also after the operator was killed.
    operator.kill();
    operator.restart(&space, &Default::default());
    eventually("no canary", || space.names::<Deployment>(), |names| names == &["a-primary"]).await;
    wait_backends(&space, &["a-primary=100"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gateway_the_traffic_is_split_by_the_number_of_pods() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("bypods").await;
    let _operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "a", json!({ "replicas": 10, "resources": {}, "canary": canary(20) }))
        .await;
    // Pods come and go until the split is as wanted.
    let object = eventually(
        "the split",
        || async {
            kubelet::run_all(&space, "app=a").await;
            zis::get(&space, "a").await
        },
        |object| zis::condition(object, "Ready").is_some_and(|ready| ready.status == "True"),
    )
    .await;
    let status = zis::status(&object);
    assert_eq!(status["trafficMode"], "Replicas");
    assert_eq!(status["canary"]["effectiveWeight"], 20);
    let replicas = |deployment: &Deployment| deployment.spec.as_ref().unwrap().replicas;
    assert_eq!(replicas(&zis::deployment(&space, "a-primary").await), Some(8));
    assert_eq!(replicas(&zis::deployment(&space, "a-canary").await), Some(2));
    let service: Service = space.get("a-svc").await.unwrap();
    let selector = service.spec.unwrap().selector.unwrap();
    assert_eq!(selector.into_iter().collect::<Vec<_>>(), [("app".to_owned(), "a".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_autoscaler_does_not_keep_traffic_on_a_canary_that_was_dropped() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("refused").await;
    let _operator = Operator::start(&cluster, &space).await;
    let more = json!({ "minReplicas": 2, "maxReplicas": 4, "canary": canary(50),
                       "routing": { "parentRefs": [{ "name": "gw" }] } });
    zis::create(&space, "a", more).await;
    kubelet::run_pods(&space, &zis::pods("a", "primary"), 2).await;
    kubelet::run_pods(&space, &zis::pods("a", "canary"), 2).await;
    wait_backends(&space, &["a-primary=50", "a-canary=50"]).await;

    let broken = json!({ "metrics": [{ "type": "Resource" }] });
    let patch = json!({ "spec": { "canary": null, "autoscaling": broken } });
    space.edit::<ZerfooInferenceService>("a", patch).await;
    wait_backends(&space, &["a-primary=100", "a-canary=0"]).await;
    let object = zis::wait_condition(&space, "a", "ConfigValid", "False", "InvalidSpec").await;
    let message = &zis::condition(&object, "ConfigValid").unwrap().message;
    assert!(message.contains("HorizontalPodAutoscaler a-hpa"), "{message}");
}
