use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    autoscaling::v2::HorizontalPodAutoscaler,
};
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_tests::{
    Need, Operator, Space, eventually,
    operator::{METRICS, Setup},
};

use super::{create, make_ready, see, wait};
use crate::quiet::settle;

async fn size(space: &Space, name: &str) -> Option<i32> {
    space.get::<Deployment>(name).await.unwrap().spec.unwrap().replicas
}

async fn wait_size(space: &Space, name: &str, want: i32) {
    let what = format!("{want} replicas of {name}");
    eventually(&what, || size(space, name), |now| *now == Some(want)).await;
}

async fn ask_for(space: &Space, replicas: i32) {
    let patch = json!({ "spec": { "decode": { "replicas": replicas } } });
    space.edit::<ModelService>("a", patch).await;
}

fn template(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]
}

#[tokio::test(flavor = "multi_thread")]
async fn another_number_of_pods_replaces_none() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("number").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", json!({})).await;
    make_ready(&space, "a").await;
    let before = see(&space, "Deployment", "a-decode", |_| true).await;

    ask_for(&space, 4).await;
    let after = see(&space, "Deployment", "a-decode", |now| now["spec"]["replicas"] == 4).await;
    assert_eq!(template(&after), template(&before));
    let object = make_ready(&space, "a").await;
    assert_eq!(object["status"]["decodeReady"], 4);
    let sets = space.names::<ReplicaSet>().await;
    assert_eq!(sets.iter().filter(|name| name.starts_with("a-decode")).count(), 1, "{sets:?}");

    ask_for(&space, 0).await;
    wait_size(&space, "a-decode", 0).await;
    let object = wait(&space, "a", "Ready", "False", "ScaledToZero").await;
    assert_eq!(object["status"]["phase"], "Pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn m17_the_way_in_which_pods_are_replaced_may_change_and_return() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("way").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", json!({})).await;
    wait(&space, "a", "Ready", "False", "PodsStarting").await;
    let strategy = || async {
        let decode = space.get::<Deployment>("a-decode").await.unwrap();
        serde_json::to_value(decode.spec.unwrap().strategy).unwrap()
    };
    let before = strategy().await;
    // Two decode pods of so many devices each may never fit beside the old ones.
    let recreate = json!({ "type": "Recreate" });
    for (wanted, want) in [(recreate.clone(), recreate), (Value::Null, before)] {
        let change = json!({ "spec": { "decode": { "strategy": wanted } } });
        space.edit::<ModelService>("a", change).await;
        eventually("the way", strategy, |now| *now == want).await;
        wait(&space, "a", "Ready", "False", "PodsStarting").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn m07_whoever_scales_the_deployment_decides_until_the_spec_asks_for_another_number() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("scaled").await;
    let setup = Setup::default().with(METRICS);
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    create(&space, "a", json!({})).await;
    make_ready(&space, "a").await;

    // With no pass under way, which would not know of it.
    let scale = async |operator: &Operator, to: &str| {
        settle(&cluster, operator).await;
        let replicas = format!("--replicas={to}");
        cluster.kubectl(&["-n", &space.name, "scale", "deployment/a-decode", &replicas], "");
    };
    scale(&operator, "3").await;
    let counted = |object: &Value| object["status"]["decodeReplicas"] == 3;
    eventually("three in the status", || super::read(&space, "a"), counted).await;
    // Neither another change of the service nor another process sets it back.
    let hosts = json!({ "gatewayRef": { "name": "gw" }, "hostnames": ["a.example.com"] });
    space.edit::<ModelService>("a", json!({ "spec": { "httpRoute": hosts } })).await;
    see(&space, "HTTPRoute", "a", |route| route["spec"]["hostnames"][0] == "a.example.com").await;
    operator.kill();
    operator.restart(&space, &setup);
    operator.wait_for_passes(1).await;
    assert_eq!(size(&space, "a-decode").await, Some(3));

    ask_for(&space, 5).await;
    wait_size(&space, "a-decode", 5).await;
    scale(&operator, "0").await;
    wait(&space, "a", "Ready", "False", "ScaledToZero").await;
    assert_eq!(size(&space, "a-decode").await, Some(0));
    ask_for(&space, 1).await;
    wait_size(&space, "a-decode", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m07_an_autoscaler_is_left_to_do_its_work() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("autoscaled").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", json!({})).await;
    make_ready(&space, "a").await;
    // Below its least number it needs no metrics to know what to do.
    let autoscaler = json!({ "metadata": { "name": "a" }, "spec": {
        "minReplicas": 3, "maxReplicas": 6,
        "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "a-decode" },
    }});
    space.create::<HorizontalPodAutoscaler>(&serde_json::from_value(autoscaler).unwrap()).await;
    wait_size(&space, "a-decode", 3).await;
    let object = eventually(
        "readiness with three pods",
        || make_ready(&space, "a"),
        |object| object["status"]["decodeReady"] == 3,
    )
    .await;
    assert_eq!(super::condition(&object, "Ready")["message"], "All 3 replicas are ready");
    assert_eq!(size(&space, "a-decode").await, Some(3));
}
