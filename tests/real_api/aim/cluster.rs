use kube::{Api, api::PostParams};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use windlass_api::aim::image::AimClusterImage;
use windlass_api::aim::runtime_config::AimClusterRuntimeConfig;
use windlass_api::aim::service::AimService;
use windlass_api::aim::template::AimClusterServiceTemplate;
use windlass_api::foreign::serving_runtime::ClusterServingRuntime;
use windlass_tests::logs::LogNode;
use windlass_tests::operator::Setup;
use windlass_tests::{Operator, Space, eventually, kubelet};

use super::{
    ANSWER, ENDED_WELL, answer, condition, create_config, create_service, create_template,
    image_spec, jobs, object, pods_of, see, wait_for, wait_service, wait_template,
};

async fn create<K>(space: &Space, kind: &str, name: &str, spec: Value)
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + Serialize
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::all(space.client.clone());
    let object = serde_json::from_value(object(kind, name, spec)).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

async fn template(space: &Space, name: &str) -> Value {
    let api: Api<AimClusterServiceTemplate> = Api::all(space.client.clone());
    serde_json::to_value(api.get(name).await.unwrap()).unwrap()
}

/// Everything that belongs to the cluster, and KServe comes last (w30).
#[tokio::test(flavor = "multi_thread")]
async fn templates_of_the_cluster_serve_every_namespace_and_kserve_may_come_late() {
    let Some(cluster) = crate::private(&["gateway-api"], &[]).await else {
        return;
    };
    let space = cluster.space("whole").await;
    let node = LogNode::start(&space).await;
    let setup = Setup { everywhere: true, ..Setup::default() }
        .with(&format!("--aim-operator-namespace={}", space.name))
        .with("--runtime-config-resolution=merge");
    let _operator = Operator::start_with(&cluster, &space, &setup).await;
    let image = image_spec("registry.example.com/aim/tiny-lm:1.4.0", "tiny");
    create::<AimClusterImage>(&space, "AIMClusterImage", "tiny-lm", image).await;
    let routing = json!({ "routing": { "enabled": true, "gatewayRef": { "name": "edge" } } });
    let kind = "AIMClusterRuntimeConfig";
    create::<AimClusterRuntimeConfig>(&space, kind, "default", routing).await;
    let spec = json!({ "aimImageName": "tiny-lm", "runtimeConfigName": "default" });
    let kind = "AIMClusterServiceTemplate";
    create::<AimClusterServiceTemplate>(&space, kind, "tiny", spec).await;
    answer(&space, &node, "tiny", ANSWER).await;
    let is_available = |object: &Value| object["status"]["status"] == "Available";
    eventually("an answer", || template(&space, "tiny"), is_available).await;

    create_config(&space, "default", json!({ "serviceAccountName": "runner" })).await;
    create_service(&space, "chat", json!({})).await;
    let waiting = wait_service(&space, "chat", "RuntimeReady", "False", "CreatingRuntime").await;
    let resolved = &waiting["status"]["resolvedTemplate"];
    assert_eq!((&resolved["kind"], &resolved["scope"]), (&json!(kind), &json!("Cluster")), "w25");
    assert!(resolved.get("namespace").is_none());
    let message = condition(&waiting, "RuntimeReady")["message"].as_str().unwrap();
    assert!(message.contains("InferenceService"), "{message}");

    cluster.apply_crds(&["kserve"]).await;
    let made = see(&space, "InferenceService", "chat", |_| true).await;
    assert_eq!(made["spec"]["predictor"]["serviceAccountName"], "runner");
    // Merged: the account is the namespace's, the gateway the cluster's.
    see(&space, "HTTPRoute", "chat", |_| true).await;
    let runtimes: Api<ClusterServingRuntime> = Api::all(space.client.clone());
    let runtime = || async { runtimes.get_opt("tiny").await.unwrap() };
    eventually("a runtime", runtime, Option::is_some).await;
    let routed = |object: &Value| object["status"]["routing"]["path"].is_string();
    wait_for::<AimService>(&space, "chat", "a path", routed).await;
    namesakes(&space, &node).await;
}

/// One of the cluster and one of the operator's own namespace, of the same name and image: the Jobs
/// of both lie in that namespace, and each has its own.
async fn namesakes(space: &Space, node: &LogNode) {
    create_config(space, "plain", json!({})).await;
    let spec = json!({ "aimImageName": "tiny-lm", "runtimeConfigName": "plain" });
    let kind = "AIMClusterServiceTemplate";
    create::<AimClusterServiceTemplate>(space, kind, "twin", spec.clone()).await;
    create_template(space, "twin", spec).await;
    let both = eventually("a Job each", || jobs(space, "twin"), |jobs| jobs.len() == 2).await;
    for job in both {
        kubelet::end_pod_with_log(space, &pods_of(&job), node, ENDED_WELL, ANSWER).await;
    }
    wait_template(space, "twin", "Available").await;
    let is_available = |object: &Value| object["status"]["status"] == "Available";
    eventually("an answer", || template(space, "twin"), is_available).await;
}
