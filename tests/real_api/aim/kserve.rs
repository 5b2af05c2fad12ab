use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::aim::service::AimService;
use windlass_tests::cluster::{binary, run_with_input};
use windlass_tests::logs::LogNode;
use windlass_tests::{Namespaced, Need, Operator, Space, audit, eventually, kubelet, wait};

use super::{
    available, child, condition, create_image, create_service, gone, read, see, wait_service,
};
use crate::quiet::settle;

/// What KServe has made of the InferenceService `chat`.
const PODS: &str = "serving.kserve.io/inferenceservice=chat";

async fn predictor<K: Namespaced + Serialize>(space: &Space) -> Value {
    let there = |object: &Value| !object.is_null();
    eventually("what KServe makes", || read::<K>(space, "chat-predictor"), there).await
}

#[tokio::test(flavor = "multi_thread")]
async fn kserve_itself_serves_what_a_service_becomes() {
    let Some(mut cluster) = crate::private(&["gateway-api", "kserve"], &[Need::Kserve]).await
    else {
        return;
    };
    let Some(_kserve) = cluster.add_kserve() else { return };
    let space = cluster.space("itself").await;
    let node = LogNode::start(&space).await;
    let operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "tiny").await;
    available(&space, &node, "tiny").await;
    create_service(&space, "chat", json!({ "env": [{ "name": "A", "value": "1" }] })).await;

    // The runtime and the service together, as a Deployment behind the Service that routes lead to.
    let deployment = predictor::<Deployment>(&space).await;
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["name"], "kserve-container");
    assert_eq!(container["image"], "registry.example.com/aim/tiny-lm:1.4.0");
    let env = container["env"].as_array().unwrap();
    for (name, value) in [("A", "1"), ("AIM_MODEL_ID", "acme/tiny-lm-7b")] {
        assert!(env.contains(&json!({ "name": name, "value": value })), "{name}: {env:?}");
    }
    assert_eq!(
        container["resources"],
        json!({ "requests": { "cpu": "4", "memory": "16Gi", "amd.com/gpu": "2" },
            "limits": { "memory": "24Gi", "amd.com/gpu": "2" } })
    );
    let memory = json!({ "medium": "Memory", "sizeLimit": "8Gi" });
    assert_eq!(pod["volumes"][0]["emptyDir"], memory);
    let service = predictor::<Service>(&space).await;
    assert_eq!(service["spec"]["ports"][0]["port"], 80, "where routes lead");

    // There is no node, so KServe says that it is not ready, and so do we.
    let unready = |object: &Value| {
        condition(object, "Ready")["reason"] == "MinimumReplicasUnavailable"
            && condition(object, "PredictorReady")["status"] == "False"
    };
    see(&space, "InferenceService", "chat", unready).await;
    let starting = wait_service(&space, "chat", "Ready", "False", "CreatingRuntime").await;
    assert_eq!(starting["status"]["status"], "Starting");
    let message = "Waiting for InferenceService to become ready";
    assert_eq!(condition(&starting, "RuntimeReady")["message"], message);

    kubelet::run_pods(&space, PODS, 1).await;
    let running = wait_service(&space, "chat", "Ready", "True", "RuntimeReady").await;
    assert_eq!(running["status"]["status"], "Running");

    // What KServe adds to it is left to KServe, and nobody writes over the other.
    let made = child(&space, "InferenceService", "chat").await;
    let settled = settle(&cluster, &operator).await;
    wait::pass(Duration::from_secs(10)).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user)[settled..], [], "at rest");
    let now = child(&space, "InferenceService", "chat").await;
    assert_eq!(now["metadata"]["generation"], made["metadata"]["generation"]);

    // More of it is a change of ours that KServe follows.
    space.edit::<AimService>("chat", json!({ "spec": { "replicas": 2 } })).await;
    kubelet::run_all_until(&space, PODS, 2).await;
    space.delete::<AimService>("chat").await;
    gone(&space, "InferenceService", "chat").await;
}

/// Its webhook has rules of its own, such as for names.
#[tokio::test(flavor = "multi_thread")]
async fn what_kserve_itself_refuses_is_told() {
    let Some(mut cluster) = crate::private(&["gateway-api", "kserve"], &[Need::Kserve]).await
    else {
        return;
    };
    let Some(_kserve) = cluster.add_kserve() else { return };
    let space = cluster.space("refused").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "tiny").await;
    available(&space, &node, "tiny").await;
    create_service(&space, "7-chats", json!({})).await;
    let refused = wait_service(&space, "7-chats", "Ready", "False", "RuntimeFailed").await;
    assert_eq!(refused["status"]["status"], "Failed");
    let message = condition(&refused, "Failure")["message"].as_str().unwrap();
    assert!(message.starts_with("Apply failed: "), "{message}");
    assert!(message.contains("7-chats"), "{message}");
    assert!(child(&space, "InferenceService", "7-chats").await.is_null());
}

/// Strictly: a field that the definitions do not know would be an error, not just be dropped.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_rendered_fits_the_definitions_of_others() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("strict").await;
    let given =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/windlass/tests/cmd/aim-answered.yaml");
    let answered = std::fs::read_to_string(given).unwrap();
    for template in ["AIMServiceTemplate", "AIMClusterServiceTemplate"] {
        let given = answered.replace("kind: AIMServiceTemplate", &format!("kind: {template}"));
        let mut render = std::process::Command::new(binary());
        render.args(["render", "-n", &space.name, "-f", "-"]);
        let rendered = run_with_input(&mut render, &given).unwrap();
        for kind in ["ServingRuntime\n", "kind: InferenceService\n", "kind: HTTPRoute\n"] {
            assert!(rendered.contains(kind), "{kind} in {rendered}");
        }
        let strictly =
            ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"];
        cluster.kubectl(&strictly, &rendered);
    }
}
