use serde_json::{Value, json};
use windlass_local::controllers::Settings;

use crate::{
    api::Answer,
    controlled::{Controlled, PODS, pod},
};

const NODES: &str = "/api/v1/nodes";

fn node(gpus: &str) -> Value {
    let amounts = json!({"cpu": "1", "memory": "1Gi", "pods": "110", "nvidia.com/gpu": gpus});
    json!({"metadata": {"name": "here"}, "status": {"capacity": amounts, "allocatable": amounts}})
}

fn gpu(name: &str) -> Value {
    let resources = json!({"limits": {"nvidia.com/gpu": "1"}});
    pod(name, json!({"containers": [{"name": "c", "image": "i", "resources": resources}]}))
}

fn scheduled(answer: &Answer) -> Value {
    let conditions = answer.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|one| one["type"] == "PodScheduled").unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_get_the_node_when_there_is_one() {
    let cluster = Controlled::new(Settings::default()).await;
    let early = cluster.api.post(PODS, pod("early", json!({}))).await.is(201);
    let mut node = node("0");
    node.as_object_mut().unwrap().remove("status");
    cluster.api.post(NODES, node).await.is(201);
    cluster.api.post(PODS, pod("late", json!({}))).await.is(201);
    for name in ["early", "late"] {
        let path = format!("{PODS}/{name}");
        let bound = cluster.api.until(&path, |a| a.body["spec"]["nodeName"] == "here").await;
        assert_eq!(scheduled(&bound)["status"], "True");
    }
    let event = cluster.event("Scheduled").await;
    assert_eq!(event["source"]["component"], "default-scheduler");
    // Nothing was said while there was no node.
    assert_eq!(scheduled(&early), Value::Null);
    let path = "/api/v1/namespaces/default/events?fieldSelector=reason%3DFailedScheduling";
    assert_eq!(cluster.api.get(path).await.body["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_more_than_there_is_waits_until_somebody_goes() {
    let cluster = Controlled::new(Settings::default()).await;
    cluster.api.post(NODES, node("1")).await.is(201);
    let amounts = json!({"status": {"allocatable": {"nvidia.com/gpu": "1"}}});
    cluster.api.merge(&format!("{NODES}/here/status"), amounts).await.is(200);
    cluster.api.post(PODS, gpu("first")).await.is(201);
    let first = format!("{PODS}/first");
    cluster.api.until(&first, |a| a.body["spec"]["nodeName"] == "here").await;
    cluster.api.post(PODS, gpu("second")).await.is(201);
    let second = format!("{PODS}/second");
    let refused = cluster.api.until(&second, |a| scheduled(a)["status"] == "False").await;
    let condition = scheduled(&refused);
    assert_eq!(condition["reason"], "Unschedulable");
    let message = condition["message"].as_str().unwrap();
    let usual = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.";
    assert!(message.starts_with(usual), "{message}");
    let event = cluster.event("FailedScheduling").await;
    assert_eq!((&event["message"], &event["type"]), (&condition["message"], &json!("Warning")));
    assert_eq!(refused.body["status"]["phase"], "Pending");

    let options = json!({"gracePeriodSeconds": 0});
    cluster.api.delete_with(&first, options).await.is(200);
    let bound = cluster.api.until(&second, |a| a.body["spec"]["nodeName"] == "here").await;
    assert_eq!(scheduled(&bound)["status"], "True");
}

#[tokio::test(flavor = "multi_thread")]
async fn processors_count_only_if_asked_for() {
    for (strict_resources, want) in [(false, "True"), (true, "False")] {
        let settings = Settings { strict_resources, ..Settings::default() };
        let cluster = Controlled::new(settings).await;
        cluster.api.post(NODES, node("0")).await.is(201);
        let amounts = json!({"status": {"allocatable": {"cpu": "1", "pods": "9"}}});
        cluster.api.merge(&format!("{NODES}/here/status"), amounts).await.is(200);
        let resources = json!({"requests": {"cpu": "2"}});
        let large = json!({"containers": [{"name": "c", "image": "i", "resources": resources}]});
        cluster.api.post(PODS, pod("large", large)).await.is(201);
        let path = format!("{PODS}/large");
        cluster.api.until(&path, |answer| scheduled(answer)["status"] == want).await;
    }
}
