use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_tests::{Operator, Space, eventually, operator::Setup};

use super::{children, condition, create, gone, read, see, wait};

/// What there is for a service of which nothing special is asked.
const PLAIN: [&str; 11] = [
    "ConfigMap a-epp-config",
    "Service a-epp",
    "ServiceAccount a-epp",
    "Deployment a-decode",
    "Deployment a-epp",
    "HTTPRoute a",
    "InferencePool a",
    "PodMonitor a-decode",
    "DestinationRule a-epp",
    "Role a-epp",
    "RoleBinding a-epp",
];

const TOKEN: &str = "a-epp-sa-metrics-reader-secret";

async fn change(space: &Space, spec: Value) {
    space.edit::<ModelService>("a", json!({ "spec": spec })).await;
}

/// The picker's parts as they speak of its port and its number.
async fn wait_picker(space: &Space, port: i32, replicas: i32) {
    let flags = |object: &Value| {
        let args = object["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
        args.contains(&format!("--grpc-port={port}"))
            && args.contains("--ha-enable-leader-election") == (replicas > 1)
    };
    see(space, "Deployment", "a-epp", |now| now["spec"]["replicas"] == replicas && flags(now))
        .await;
    see(space, "Service", "a-epp", |now| now["spec"]["ports"][0]["port"] == port).await;
    let reference = "/spec/endpointPickerRef/port/number";
    see(space, "InferencePool", "a", |now| now.pointer(reference) == Some(&json!(port))).await;
    let setting = "/spec/trafficPolicy/portLevelSettings/0/port/number";
    see(space, "DestinationRule", "a-epp", |now| now.pointer(setting) == Some(&json!(port))).await;
    let rules = if replicas > 1 { 5 } else { 3 };
    let count = |role: &Value| role["rules"].as_array().map(Vec::len);
    see(space, "Role", "a-epp", |now| count(now) == Some(rules)).await;
}

async fn wait_failure_mode(space: &Space, want: &str) {
    let mode = "/spec/endpointPickerRef/failureMode";
    see(space, "InferencePool", "a", |pool| pool.pointer(mode) == Some(&json!(want))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s08_s09_a_pool_block_comes_changes_and_goes_and_leaves_nothing_behind() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("pool").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", json!({})).await;
    wait(&space, "a", "Ready", "False", "PodsStarting").await;
    assert_eq!(children(&space).await, PLAIN);
    wait_failure_mode(&space, "FailClose").await;
    wait_picker(&space, 9002, 1).await;
    let rbac = format!("{}-a-epp", space.name);

    change(&space, json!({ "inferencePool": { "endpointPicker": {} } })).await;
    wait_failure_mode(&space, "FailOpen").await;
    wait(&space, "a", "MetricsAuthReady", "True", "Configured").await;
    see(&space, "ClusterRoleBinding", &rbac, |now| now["roleRef"]["name"] == rbac).await;
    eventually("the token", || space.get::<Secret>(TOKEN), Option::is_some).await;
    assert!(read(&space, "a").await["metadata"]["finalizers"].is_array());

    let picker = json!({ "replicas": 3, "port": 9999, "failureMode": "FailClose" });
    change(&space, json!({ "inferencePool": { "endpointPicker": picker } })).await;
    wait_picker(&space, 9999, 3).await;
    wait_failure_mode(&space, "FailClose").await;

    change(&space, json!({ "inferencePool": { "endpointPicker": { "replicas": 1 } } })).await;
    wait_picker(&space, 9999, 1).await;

    change(&space, json!({ "inferencePool": null })).await;
    wait_picker(&space, 9002, 1).await;
    gone(&space, "ClusterRole", &rbac).await;
    gone(&space, "ClusterRoleBinding", &rbac).await;
    eventually("no token", || space.get::<Secret>(TOKEN), Option::is_none).await;
    let free = |object: &Value| object["metadata"]["finalizers"].is_null();
    eventually("no finalizer", || read(&space, "a"), free).await;
    assert_eq!(children(&space).await, PLAIN);
}

/// The gateway that the route names, and for which hosts.
fn leads_through(route: &Value, name: &str, namespace: Option<&str>, hosts: &Value) -> bool {
    let parents = route["spec"]["parentRefs"].as_array().unwrap();
    parents.len() == 1
        && parents[0]["name"] == name
        && parents[0]["namespace"].as_str() == namespace
        && &route["spec"]["hostnames"] == hosts
}

#[tokio::test(flavor = "multi_thread")]
async fn s10_the_route_goes_through_the_gateway_of_the_spec_or_the_operators_or_none() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("route").await;
    let mut operator = Operator::start(&cluster, &space).await;
    let through = async |name, namespace, hosts: Value| {
        see(&space, "HTTPRoute", "a", |now| leads_through(now, name, namespace, &hosts)).await
    };
    let default = "otterscale-llm-d-infra-inference-gateway";
    create(&space, "a", json!({})).await;
    let first = through(default, Some("llm-d"), json!(null)).await;

    let own = json!({ "gatewayRef": { "name": "gw" }, "hostnames": ["models.example.com"] });
    change(&space, json!({ "httpRoute": own })).await;
    through("gw", None, json!(["models.example.com"])).await;
    change(&space, json!({ "httpRoute": { "gatewayRef": { "namespace": "infra" } } })).await;
    through("gw", Some("infra"), json!(["models.example.com"])).await;
    change(&space, json!({ "httpRoute": null })).await;
    let last = through(default, Some("llm-d"), json!(null)).await;
    assert_eq!(last["metadata"]["uid"], first["metadata"]["uid"], "one route throughout");

    operator.kill();
    operator.restart(&space, &Setup::default().with("--default-gateway-name="));
    gone(&space, "HTTPRoute", "a").await;
    let silent = |object: &Value| condition(object, "RouteAccepted").is_null();
    eventually("no word of a route", || read(&space, "a"), silent).await;
    change(&space, json!({ "httpRoute": { "gatewayRef": { "name": "gw" } } })).await;
    through("gw", None, json!(null)).await;
    change(&space, json!({ "httpRoute": null })).await;
    gone(&space, "HTTPRoute", "a").await;

    let elsewhere = ["--default-gateway-name=other", "--default-gateway-namespace=edge"];
    operator.kill();
    operator.restart(&space, &elsewhere.iter().fold(Setup::default(), |s, flag| s.with(flag)));
    through("other", Some("edge"), json!(null)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s14_the_rule_of_the_mesh_goes_and_comes_with_the_provider() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("provider").await;
    let mut operator = Operator::start(&cluster, &space).await;
    create(&space, "a", super::everything()).await;
    wait(&space, "a", "MeshConfigured", "True", "Configured").await;
    let rule = see(&space, "DestinationRule", "a-epp", |_| true).await;
    let host = format!("a-epp.{}.svc.cluster.local", space.name);
    assert_eq!(rule["spec"]["host"], host);
    wait(&space, "a", "Ready", "False", "PodsStarting").await;
    let before = children(&space).await;

    operator.kill();
    operator.restart(&space, &Setup::default().with("--provider=none"));
    gone(&space, "DestinationRule", "a-epp").await;
    let silent = |object: &Value| condition(object, "MeshConfigured").is_null();
    eventually("no word of a mesh", || read(&space, "a"), silent).await;
    let without: Vec<_> =
        before.iter().filter(|child| !child.starts_with("DestinationRule")).collect();
    assert_eq!(children(&space).await.iter().collect::<Vec<_>>(), without);

    operator.kill();
    operator.restart(&space, &Setup::default());
    wait(&space, "a", "MeshConfigured", "True", "Configured").await;
    assert_eq!(children(&space).await, before);

    // On GKE nobody makes the token, and no monitor may ask for it.
    operator.kill();
    operator.restart(&space, &Setup::default().with("--provider=gke"));
    gone(&space, "DestinationRule", "a-epp").await;
    gone(&space, "ServiceMonitor", "a-epp").await;
    eventually("no token", || space.get::<Secret>(TOKEN), Option::is_none).await;
}
