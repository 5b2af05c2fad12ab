use serde_json::{Value, json};
use windlass_api::aim::service::AimService;
use windlass_tests::logs::LogNode;
use windlass_tests::{Operator, Space};

use super::{
    available, child, condition, create_config, create_image, create_service, gone, read,
    run_inference_service, see, set_status, wait_for, wait_service,
};

async fn served(space: &Space, node: &LogNode) {
    create_image(space, "tiny-lm", "tiny").await;
    available(space, node, "tiny").await;
}

/// What the gateway says of the route.
async fn accept(space: &Space, name: &str, accepted: &str) {
    let route = see(space, "HTTPRoute", name, |_| true).await;
    let condition = |type_: &str, status: &str| {
        json!({ "type": type_, "status": status, "reason": "NoMatchingParent", "message": "said",
            "observedGeneration": route["metadata"]["generation"],
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let parent = json!({ "parentRef": route["spec"]["parentRefs"][0],
        "controllerName": "example.com/gateway",
        "conditions": [condition("Accepted", accepted), condition("ResolvedRefs", "True")] });
    set_status(space, "HTTPRoute", name, json!({ "parents": [parent] })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w11_a_service_is_routed_as_its_runtime_config_says() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("route").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    served(&space, &node).await;
    let routing = json!({ "routing": { "enabled": true, "gatewayRef": { "name": "edge" },
        "routeTemplate": "/{.metadata.namespace}/{.spec.aimImageName}" } });
    create_config(&space, "default", routing).await;
    create_service(&space, "chat", json!({})).await;
    let route = see(&space, "HTTPRoute", "chat", |_| true).await;
    let path = format!("/{}/tiny-lm", space.name);
    let rule = &route["spec"]["rules"][0];
    assert_eq!(rule["matches"][0]["path"], json!({ "type": "PathPrefix", "value": path }));
    assert_eq!(rule["filters"][0]["urlRewrite"]["path"]["replacePrefixMatch"], "/");
    assert_eq!(rule["backendRefs"][0]["name"], "chat-predictor");
    run_inference_service(&space, "chat").await;
    let waiting = wait_service(&space, "chat", "RoutingReady", "False", "ConfiguringRoute").await;
    assert_ne!(waiting["status"]["status"], "Running", "w12: nobody has accepted it");
    assert_eq!(waiting["status"]["routing"]["path"], path);
    accept(&space, "chat", "False").await;
    wait_service(&space, "chat", "RoutingReady", "False", "NoMatchingParent").await;
    accept(&space, "chat", "True").await;
    wait_service(&space, "chat", "Ready", "True", "RuntimeReady").await;

    // w13: what is no longer wanted goes.
    space.edit::<AimService>("chat", json!({ "spec": { "routing": { "enabled": false } } })).await;
    gone(&space, "HTTPRoute", "chat").await;
    let quiet = wait_service(&space, "chat", "RoutingReady", "True", "RouteReady").await;
    assert!(quiet["status"].get("routing").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_route_is_told_and_mended() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("wrong").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    served(&space, &node).await;
    create_service(&space, "chat", json!({ "routing": { "enabled": true } })).await;
    let lost = wait_service(&space, "chat", "RoutingReady", "False", "RouteFailed").await;
    assert_eq!(lost["status"]["status"], "Failed");
    let message = condition(&lost, "Failure")["message"].as_str().unwrap();
    assert_eq!(message, "Routing gateway reference is missing");

    let bad = json!({ "gatewayRef": { "name": "edge" }, "routeTemplate": "/{.spec.model}" });
    space.edit::<AimService>("chat", json!({ "spec": { "routing": bad } })).await;
    let wrong = wait_service(&space, "chat", "Ready", "False", "RouteTemplateInvalid").await;
    assert_eq!(wrong["status"]["status"], "Degraded");
    let message = condition(&wrong, "Failure")["message"].as_str().unwrap();
    assert!(message.ends_with("jsonpath evaluation error: model is not found"), "{message}");
    assert!(child(&space, "HTTPRoute", "chat").await.is_null());

    let good = json!({ "spec": { "routing": { "routeTemplate": "/chat" } } });
    space.edit::<AimService>("chat", good).await;
    see(&space, "HTTPRoute", "chat", |_| true).await;
    let mended = |object: &Value| condition(object, "Failure")["status"] == "False";
    wait_for::<AimService>(&space, "chat", "no failure", mended).await;
    let now = read::<AimService>(&space, "chat").await;
    assert_eq!(now["status"]["routing"]["path"], "/chat");

    // w13: a path that no longer makes sense has no route.
    let bad = json!({ "spec": { "routing": { "routeTemplate": "/{.spec.model}" } } });
    space.edit::<AimService>("chat", bad).await;
    gone(&space, "HTTPRoute", "chat").await;
    wait_service(&space, "chat", "RoutingReady", "False", "ConfiguringRoute").await;
}
