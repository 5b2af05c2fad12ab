use serde_json::{Value, json};
use windlass_api::aim::template::AimServiceTemplate;
use windlass_tests::Operator;
use windlass_tests::faults::{Fault, Faults};
use windlass_tests::logs::LogNode;
use windlass_tests::operator::Setup;

use super::predecessor::{report, reported, serve, update_image};
use super::{
    ANSWER, answer, available, child, condition, create_config, create_image, create_service,
    create_template, jobs, see, wait_for, wait_service,
};

/// Neither lists nor objects of this resource can be read.
fn unread(path: &'static str) -> Fault {
    Fault { method: "GET", path, code: 500, reason: "InternalError", times: usize::MAX }
}

#[tokio::test(flavor = "multi_thread")]
async fn w13_a_route_stays_while_nobody_knows_whether_a_config_wants_it() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("unlisted").await;
    let node = LogNode::start(&space).await;
    let faults = Faults::start(&cluster).await;
    let setup = Setup { server: Some(faults.address.clone()), ..Setup::default() };
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    create_image(&space, "tiny-lm", "tiny").await;
    available(&space, &node, "tiny").await;
    let routing = json!({ "routing": { "enabled": true, "gatewayRef": { "name": "edge" } } });
    create_config(&space, "default", routing).await;
    create_service(&space, "chat", json!({})).await;
    let route = see(&space, "HTTPRoute", "chat", |_| true).await;
    wait_service(&space, "chat", "RoutingReady", "False", "ConfiguringRoute").await;

    operator.kill();
    faults.inject(unread("/aimruntimeconfigs"));
    operator.restart(&space, &setup);
    let halted = wait_service(&space, "chat", "Failure", "True", "ValidationFailed").await;
    let message = condition(&halted, "Failure")["message"].as_str().unwrap();
    assert!(message.starts_with("Observation failed: "), "{message}");
    let uid = async || child(&space, "HTTPRoute", "chat").await["metadata"]["uid"].clone();
    assert_eq!(uid().await, route["metadata"]["uid"]);

    faults.clear();
    let mended = |now: &Value| condition(now, "Failure")["status"] == "False";
    wait_for::<windlass_api::aim::service::AimService>(&space, "chat", "no failure", mended).await;
    assert_eq!(uid().await, route["metadata"]["uid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn w05_an_old_answer_is_not_the_new_images_because_what_runs_cannot_be_read() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("unseen").await;
    let node = LogNode::start(&space).await;
    create_image(&space, "tiny-lm", "").await;
    create_template(&space, "tiny", json!({})).await;
    report(&space, "tiny", reported()).await;
    serve(&space, "tiny").await;
    update_image(&space).await;
    let faults = Faults::start(&cluster).await;
    faults.inject(unread("/servingruntimes"));
    let setup = Setup { server: Some(faults.address.clone()), ..Setup::default() };
    let _operator = Operator::start_with(&cluster, &space, &setup).await;

    let is_looked_at = |now: &Value| now["status"]["resolvedImage"]["scope"] == "Namespace";
    let looked_at = wait_for::<AimServiceTemplate>(&space, "tiny", "a pass", is_looked_at).await;
    assert!(looked_at["status"].get("discovery").is_none(), "{looked_at}");
    assert_eq!(condition(&looked_at, "Failure")["reason"], "Failed");
    assert_eq!(looked_at["status"]["status"], "Available", "the answer stands");
    assert!(jobs(&space, "tiny").await.is_empty());

    faults.clear();
    answer(&space, &node, "tiny", ANSWER).await;
    let is_new = |now: &Value| now["status"]["modelSources"][0]["sourceUri"] != "hf://m";
    wait_for::<AimServiceTemplate>(&space, "tiny", "the new answer", is_new).await;
}
