use serde_json::{Value, json};
use windlass_local::controllers::Settings;

use crate::{api::Answer, controlled::Controlled};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SERVICES: &str = "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices";
const RUNTIMES: &str = "/apis/serving.kserve.io/v1alpha1/namespaces/default/servingruntimes";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/chat-predictor";

fn definition(kind: &str, plural: &str, version: &str, scope: &str) -> Value {
    json!({"metadata": {"name": format!("{plural}.serving.kserve.io")}, "spec": {
        "group": "serving.kserve.io", "scope": scope,
        "names": {"kind": kind, "plural": plural},
        "versions": [{"name": version, "served": true, "storage": true,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": true}}}],
    }})
}

async fn install(cluster: &Controlled) {
    for (kind, plural, version, scope) in [
        ("InferenceService", "inferenceservices", "v1beta1", "Namespaced"),
        ("ServingRuntime", "servingruntimes", "v1alpha1", "Namespaced"),
        ("ClusterServingRuntime", "clusterservingruntimes", "v1alpha1", "Cluster"),
    ] {
        let definition = definition(kind, plural, version, scope);
        cluster.api.post(DEFINITIONS, definition).await.is(201);
    }
    cluster.api.until(SERVICES, |answer| answer.status == 200).await;
    cluster.api.until(RUNTIMES, |answer| answer.status == 200).await;
}

fn inference_service() -> Value {
    json!({"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
        "metadata": {"name": "chat"}, "spec": {"predictor": {"model": {
            "modelFormat": {"name": "aim", "version": "1"}, "runtime": "tiny",
            "env": [{"name": "A", "value": "1"}]}}}})
}

fn condition(answer: &Answer, kind: &str) -> Value {
    let conditions = answer.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|one| one["type"] == kind).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inference_service_becomes_a_deployment_and_is_ready_with_it() {
    let cluster = Controlled::new(Settings::default()).await;
    install(&cluster).await;
    cluster.api.post(SERVICES, inference_service()).await.is(201);
    let path = format!("{SERVICES}/chat");
    let waits = cluster.api.until(&path, |a| condition(a, "Ready")["status"] == "False").await;
    assert_eq!(condition(&waits, "Ready")["reason"], "RuntimeNotRecognized");

    let runtime = json!({"apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntime",
        "metadata": {"name": "tiny"}, "spec": {
            "supportedModelFormats": [{"name": "aim", "version": "1"}],
            "containers": [{"name": "kserve-container", "image": "aim:1",
                "ports": [{"name": "http", "containerPort": 8000}]}]}});
    cluster.api.post(RUNTIMES, runtime).await.is(201);
    let made = cluster.api.until(DEPLOYMENT, |answer| answer.status == 200).await.body;
    let container = &made["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["env"], json!([{"name": "A", "value": "1"}]));
    assert_eq!(made["metadata"]["ownerReferences"][0]["name"], "chat");
    let service = "/api/v1/namespaces/default/services/chat-predictor";
    let service = cluster.api.until(service, |answer| answer.status == 200).await.body;
    assert_eq!(service["spec"]["ports"][0]["port"], 80);
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 8000);

    // Its pods are ready as soon as somebody says so.
    let pods = "/api/v1/namespaces/default/pods?labelSelector=\
                serving.kserve.io%2Finferenceservice%3Dchat";
    let pods = cluster.list(pods, |pods| pods.len() == 1).await;
    cluster.run_pod(pods[0]["metadata"]["name"].as_str().unwrap(), "127.64.0.1", true).await;
    let ready = cluster.api.until(&path, |a| condition(a, "Ready")["status"] == "True").await;
    assert_eq!(condition(&ready, "PredictorReady")["status"], "True");
    assert_eq!(ready.body["status"]["url"], "http://chat-predictor.default.svc.cluster.local");
    assert_eq!(ready.body["status"]["modelStatus"].get("lastFailureInfo"), None);

    cluster.api.delete(&path).await.is(200);
    cluster.api.until_gone(DEPLOYMENT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_kserve_itself_is_installed_nothing_is_done() {
    let cluster = Controlled::new(Settings::default()).await;
    install(&cluster).await;
    cluster.api.post("/api/v1/namespaces", json!({"metadata": {"name": "kserve"}})).await.is(201);
    let maps = "/api/v1/namespaces/kserve/configmaps";
    let map = json!({"metadata": {"name": "inferenceservice-config"}});
    cluster.api.post(maps, map).await.is(201);
    cluster.api.post(SERVICES, inference_service()).await.is(201);
    // Once the settings are gone, the next change is acted upon.
    let path = format!("{SERVICES}/chat");
    assert_eq!(cluster.api.get(&path).await.body["status"], Value::Null);
    cluster.api.delete(&format!("{maps}/inferenceservice-config")).await.is(200);
    let change = json!({"metadata": {"labels": {"a": "b"}}});
    cluster.api.merge(&path, change).await.is(200);
    cluster.api.until(&path, |answer| answer.body["status"].is_object()).await;
}
