//! APIs that come and go.

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;
use windlass_api::foreign::http_route::HttpRoute;
use windlass_tests::{Need, Operator, eventually};

use crate::zis;

#[tokio::test(flavor = "multi_thread")]
async fn k13_gateway_api_may_come_and_go_without_a_restart() {
    let Some(cluster) = crate::private(&[], &[Need::Kubectl]).await else {
        return;
    };
    let space = cluster.space("optional").await;
    let _operator = Operator::start(&cluster, &space).await;
    let more = json!({ "routing": { "parentRefs": [{ "name": "gw" }] } });
    zis::create(&space, "a", more).await;
    let ready = zis::make_ready(&space, "a", 2).await;
    assert_eq!(zis::condition(&ready, "TrafficSplitApplied").unwrap().reason, "GatewayAPIMissing");
    assert_eq!(zis::status(&ready)["trafficMode"], "Replicas");

    cluster.apply_crds(&["gateway-api"]).await;
    eventually("the route", || space.names::<HttpRoute>(), |names| names == &["a-route"]).await;
    eventually(
        "gateway mode",
        || zis::get(&space, "a"),
        |object| zis::status(object)["trafficMode"] == "Gateway",
    )
    .await;

    let crd = "httproutes.gateway.networking.k8s.io";
    cluster.kubectl(&["delete", "crd", crd], "");
    let without =
        zis::wait_condition(&space, "a", "TrafficSplitApplied", "False", "GatewayAPIMissing").await;
    assert_eq!(zis::status(&without)["ready"], true);
    assert!(zis::condition(&without, "RouteReady").is_none());

    cluster.apply_crds(&["gateway-api"]).await;
    eventually("the route again", || space.names::<HttpRoute>(), |names| names == &["a-route"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_may_start_before_its_own_crds_are_there() {
    let Some(cluster) = crate::private(&[], &[Need::Kubectl]).await else { return };
    let crd = "zerfooinferenceservices.serving.zerfoo.com";
    let definition = cluster.kubectl(&["get", "crd", crd, "-o", "json"], "");
    cluster.kubectl(&["delete", "crd", crd], "");
    let space = cluster.space("early").await;
    let _operator = Operator::start(&cluster, &space).await;
    let mut definition: serde_json::Value = serde_json::from_str(&definition).unwrap();
    definition["metadata"] = json!({ "name": crd });
    cluster.kubectl(&["apply", "--server-side", "-f", "-"], &definition.to_string());
    cluster.kubectl(&["wait", "--for=condition=Established", "crd", crd], "");
    zis::create(&space, "a", json!({})).await;
    eventually("its child", || space.names::<Deployment>(), |names| !names.is_empty()).await;
}
