use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_local::controllers::{Sample, Settings, Usage};

use crate::controlled::{Controlled, PODS, pod};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const AUTOSCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

/// Every pod uses the same.
#[derive(Debug, Default)]
struct Fixed(AtomicI64);

impl Usage for Fixed {
    fn cpu(&self, _: &str) -> Option<Sample> {
        let (milli, window) = (self.0.load(Ordering::Relaxed), SignedDuration::from_millis(1));
        Some(Sample { milli, at: Timestamp::now() + SignedDuration::from_secs(60), window })
    }
}

fn settings(usage: Option<Arc<dyn Usage>>) -> Settings {
    let autoscale_every = Some(Duration::from_millis(20));
    Settings { usage, autoscale_every, ..Settings::default() }
}

/// Paused, so that it has no pods but those that a test makes.
fn deployment(replicas: i32) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {
        "replicas": replicas,
        "paused": true,
        "selector": {"matchLabels": {"app": "none"}},
        "template": {"metadata": {"labels": {"app": "none"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }})
}

fn autoscaler(spec: Value) -> Value {
    let mut spec = spec;
    spec["scaleTargetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    json!({"metadata": {"name": "web"}, "spec": spec})
}

fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|one| one["type"] == kind).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_below_the_minimum_is_raised_without_any_metrics() {
    let cluster = Controlled::new(settings(None)).await;
    cluster.api.post(DEPLOYMENTS, deployment(1)).await.is(201);
    let spec = json!({"minReplicas": 2, "maxReplicas": 5});
    cluster.api.post(AUTOSCALERS, autoscaler(spec)).await.is(201);
    let path = format!("{DEPLOYMENTS}/web");
    let scaled = cluster.api.until(&path, |answer| answer.body["spec"]["replicas"] == 2).await;
    let entries = scaled.body["metadata"]["managedFields"].as_array().unwrap();
    let owner = entries.iter().find(|entry| entry["subresource"] == "scale").unwrap();
    assert_eq!(owner["manager"], "kube-controller-manager");
    assert!(owner["fieldsV1"]["f:spec"]["f:replicas"].is_object(), "{owner}");
    let event = cluster.event("SuccessfulRescale").await;
    let message = "New size: 2; reason: Current number of replicas below Spec.MinReplicas";
    assert_eq!(event["message"], message);
    assert_eq!(event["source"]["component"], "horizontal-pod-autoscaler-controller");

    // Afterwards the metrics are asked for, and there are none.
    let path = format!("{AUTOSCALERS}/web");
    let told = cluster
        .api
        .until(&path, |answer| condition(&answer.body, "ScalingActive")["status"] == "False")
        .await;
    assert_eq!(condition(&told.body, "ScalingActive")["reason"], "FailedGetResourceMetric");
    assert_eq!(condition(&told.body, "AbleToScale")["reason"], "SucceededGetScale");
    assert_eq!(told.body["status"]["currentReplicas"], 2);
    assert!(told.body["status"]["lastScaleTime"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn at_rest_nothing_is_written_though_the_metrics_fail() {
    let cluster = Controlled::new(settings(None)).await;
    cluster.api.post(DEPLOYMENTS, deployment(2)).await.is(201);
    cluster.api.post(AUTOSCALERS, autoscaler(json!({"maxReplicas": 5}))).await.is(201);
    let event = cluster.event("FailedComputeMetricsReplicas").await;
    let path = format!("{AUTOSCALERS}/web");
    let told = |body: &Value| condition(body, "ScalingActive")["status"] == "False";
    cluster.api.until(&path, |answer| told(&answer.body)).await;
    let event = event["metadata"]["name"].as_str().unwrap().to_owned();
    let event = format!("/api/v1/namespaces/default/events/{event}");
    let mut other = autoscaler(json!({"maxReplicas": 5}));
    other["metadata"]["name"] = json!("other");
    // Long enough for a look and more: another autoscaler has been looked at meanwhile.
    let while_another_comes_and_goes = async || {
        cluster.api.post(AUTOSCALERS, other.clone()).await.is(201);
        let path = format!("{AUTOSCALERS}/other");
        cluster.api.until(&path, |answer| told(&answer.body)).await;
        cluster.api.delete(&path).await.is(200);
    };
    // What the first look has said may change once more, when the target's controller has acted.
    while_another_comes_and_goes().await;
    let (first, count) = (cluster.api.get(&path).await, cluster.api.get(&event).await);
    for _ in 0..2 {
        while_another_comes_and_goes().await;
    }
    assert_eq!(cluster.api.get(&path).await.version(), first.version());
    assert_eq!(cluster.api.get(&event).await.body["count"], count.body["count"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn use_of_the_processor_decides_between_the_bounds() {
    let usage = Arc::new(Fixed::default());
    usage.0.store(900, Ordering::Relaxed);
    let cluster = Controlled::new(settings(Some(usage))).await;
    let mut target = deployment(1);
    target["spec"]["selector"] = json!({"matchLabels": {"app": "a"}});
    target["spec"]["template"]["metadata"]["labels"] = json!({"app": "a"});
    let requests = json!({"requests": {"cpu": "1"}});
    cluster
        .api
        .post(
            PODS,
            pod(
                "a",
                json!({"containers": [
            {"name": "c", "image": "i", "resources": requests}]}),
            ),
        )
        .await
        .is(201);
    cluster.run_pod("a", "127.64.0.1", true).await;
    let start = json!({"status": {"startTime": "2026-01-01T00:00:00Z"}});
    cluster.api.merge(&format!("{PODS}/a/status"), start).await.is(200);
    cluster.api.post(DEPLOYMENTS, target).await.is(201);
    let metrics = json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 45}}}]);
    let spec = json!({"maxReplicas": 5, "metrics": metrics});
    cluster.api.post(AUTOSCALERS, autoscaler(spec)).await.is(201);
    let path = format!("{DEPLOYMENTS}/web");
    cluster.api.until(&path, |answer| answer.body["spec"]["replicas"] == 2).await;
    let path = format!("{AUTOSCALERS}/web");
    let told = cluster.api.until(&path, |a| a.body["status"]["currentMetrics"].is_array()).await;
    let current = &told.body["status"]["currentMetrics"][0]["resource"]["current"];
    assert_eq!(*current, json!({"averageUtilization": 90, "averageValue": "900m"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_is_not_there_is_told() {
    let cluster = Controlled::new(settings(None)).await;
    cluster.api.post(AUTOSCALERS, autoscaler(json!({"maxReplicas": 5}))).await.is(201);
    let path = format!("{AUTOSCALERS}/web");
    let able = |answer: &crate::api::Answer| condition(&answer.body, "AbleToScale");
    let told = cluster.api.until(&path, |answer| able(answer)["status"] == "False").await;
    assert_eq!(able(&told)["reason"], "FailedGetScale");
    cluster.api.post(DEPLOYMENTS, deployment(1)).await.is(201);
    cluster.api.until(&path, |answer| able(answer)["status"] == "True").await;
}
