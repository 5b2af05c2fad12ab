//! Autoscalers over pods that really use the processor.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use windlass_local::{
    controllers::{self, Settings, Usage},
    node::usage::Meter,
};

use super::node::{Node, PODS, api, settings, sh, until};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments";
const AUTOSCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

#[tokio::test(flavor = "multi_thread")]
async fn replicas_follow_what_live_pods_use_of_the_processor() {
    let dir = tempfile::tempdir().unwrap();
    let api = api(dir.path()).await;
    let node = Node::start(api.clone(), dir.path());
    let controlled = tokio::spawn(controllers::run(
        api.server.clone(),
        Settings {
            usage: Some(Arc::new(Meter::new(settings(dir.path()).places))),
            autoscale_every: Some(Duration::from_millis(100)),
            ..Settings::default()
        },
    ));
    let rest = dir.path().join("rest");
    let script = format!("while [ ! -e {} ]; do :; done; exec sleep 4801", rest.display());
    let mut container = sh("c", &script);
    // Little, so that a busy machine lets even one pod use more.
    container["resources"] = json!({"requests": {"cpu": "20m"}});
    let labels = json!({"app": "a"});
    let deployment = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        }},
    }});
    api.post(DEPLOYMENT, deployment).await.is(201);
    let autoscaler = json!({"metadata": {"name": "web"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 50}}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    }});
    api.post(AUTOSCALERS, autoscaler).await.is(201);

    let target = format!("{DEPLOYMENT}/web");
    let up = api.until(&target, |answer| answer.body["status"]["readyReplicas"] == 3).await;
    assert_eq!(up.body["spec"]["replicas"], 3);
    let told = node
        .until_told("web", "SuccessfulRescale New size: 3; reason: cpu resource utilization")
        .await;
    assert!(told.iter().any(|one| one.ends_with("above target")), "{told:#?}");

    std::fs::write(&rest, "").unwrap();
    let down = api.until(&target, |answer| answer.body["spec"]["replicas"] == 1).await;
    node.until_told("web", "SuccessfulRescale New size: 1; reason: All metrics below target").await;
    assert!(down.body["status"]["replicas"].as_i64() <= Some(3));
    api.until(PODS, |pods| pods.body["items"].as_array().map(Vec::len) == Some(1)).await;
    controlled.abort();
    node.stop().await;
}

#[tokio::test]
async fn what_children_in_other_sessions_use_counts_for_their_pod() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(api(dir.path()).await, dir.path());
    let pod = node.run("p", "setsid sh -c 'while :; do :; done' & wait", "Always").await;
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    node.until_phase("p", "Running").await;
    let meter = Meter::new(settings(dir.path()).places);
    until("it is seen at work", || meter.cpu(uid).is_some_and(|sample| sample.milli >= 20)).await;
    let options = json!({"gracePeriodSeconds": 0});
    node.api.delete_with(&format!("{PODS}/p"), options).await.is(200);
    until("nothing of it is left", || meter.cpu(uid).is_none()).await;
    node.stop().await;
}
