use serde_json::{Value, json};
use windlass_api::aim::service::AimService;
use windlass_api::aim::template::AimServiceTemplate;
use windlass_tests::logs::LogNode;
use windlass_tests::{Operator, Space, eventually, kubelet};

use super::{
    ANSWER, answer, available, child, condition, create_config, create_image, create_service,
    create_template, events, gone, read, run_inference_service, see, set_status, wait_for,
    wait_service, wait_template,
};

#[tokio::test(flavor = "multi_thread")]
async fn g19_a_service_becomes_an_inference_service_and_runs() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("serve").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "tiny").await;
    create_config(
        &space,
        "team",
        json!({ "serviceAccountName": "runner", "imagePullSecrets": [{ "name": "s1" }, { "name": "s2" }] }),
    )
    .await;
    let more = json!({ "replicas": 2, "runtimeConfigName": "team",
        "env": [{ "name": "A", "value": "1" }], "imagePullSecrets": [{ "name": "s1" }] });
    create_service(&space, "chat", more).await;
    wait_service(&space, "chat", "Resolved", "False", "TemplateNotFound").await;
    available(&space, &node, "tiny").await;
    let made = see(&space, "InferenceService", "chat", |_| true).await;
    let predictor = &made["spec"]["predictor"];
    assert_eq!((&predictor["minReplicas"], &predictor["maxReplicas"]), (&json!(2), &json!(2)));
    assert_eq!(predictor["serviceAccountName"], "runner");
    assert_eq!(predictor["imagePullSecrets"], json!([{ "name": "s1" }, { "name": "s2" }]));
    assert_eq!(predictor["model"]["storageUri"], "hf://acme/tiny-lm-7b");
    assert_eq!(predictor["model"]["runtime"], "tiny");
    assert_eq!(
        predictor["model"]["resources"],
        json!({ "requests": { "cpu": "4", "memory": "16Gi", "amd.com/gpu": "2" },
            "limits": { "memory": "24Gi", "amd.com/gpu": "2" } })
    );
    wait_service(&space, "chat", "RuntimeReady", "False", "CreatingRuntime").await;
    run_inference_service(&space, "chat").await;
    let ready = wait_service(&space, "chat", "Ready", "True", "RuntimeReady").await;
    assert_eq!(ready["status"]["status"], "Running");
    assert_eq!(ready["status"]["resolvedTemplate"]["kind"], "AIMServiceTemplate", "w25");
    assert_eq!(ready["status"]["resolvedImage"]["kind"], "AIMImage", "w25");

    // What somebody edits comes back.
    let patch = json!({ "spec": { "predictor": { "minReplicas": 7 } } });
    let api: kube::Api<kube::core::DynamicObject> = kube::Api::namespaced_with(
        space.client.clone(),
        &space.name,
        &super::resource("InferenceService"),
    );
    let params = kube::api::PatchParams::default();
    api.patch("chat", &params, &kube::api::Patch::Merge(&patch)).await.unwrap();
    see(&space, "InferenceService", "chat", |now| now["spec"]["predictor"]["minReplicas"] == 2)
        .await;
    space.delete::<AimService>("chat").await;
    gone(&space, "InferenceService", "chat").await;
    assert_eq!(events(&space, "chat").await, [""; 0], "nothing of it is an event");
}

#[tokio::test(flavor = "multi_thread")]
async fn g20_what_kserve_cannot_load_is_told() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("broken").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "tiny").await;
    available(&space, &node, "tiny").await;
    create_service(&space, "chat", json!({})).await;
    see(&space, "InferenceService", "chat", |_| true).await;
    let failure = json!({ "modelStatus": { "lastFailureInfo": { "message": "out of memory" },
        "transitionStatus": "BlockedByFailedLoad" } });
    set_status(&space, "InferenceService", "chat", failure).await;
    let broken = wait_service(&space, "chat", "Ready", "False", "RuntimeFailed").await;
    assert_eq!(broken["status"]["status"], "Degraded");
    assert_eq!(condition(&broken, "Failure")["message"], "out of memory");
    // w08, w09: what is over is over.
    set_status(&space, "InferenceService", "chat", json!({ "modelStatus": null })).await;
    let starting = wait_service(&space, "chat", "Ready", "False", "CreatingRuntime").await;
    assert_eq!(starting["status"]["status"], "Starting");
    assert_eq!(condition(&starting, "Failure")["status"], "False");
}

/// What is missing, the condition that says so, and that its coming is enough (w01).
#[tokio::test(flavor = "multi_thread")]
async fn w01_what_is_missing_is_named_and_noticed_when_it_comes() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("missing").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    create_service(&space, "bare", json!({})).await;
    let bare = wait_service(&space, "bare", "Ready", "False", "TemplateNotFound").await;
    assert_eq!(bare["status"]["status"], "Degraded");
    let message = condition(&bare, "Failure")["message"].as_str().unwrap();
    assert!(message.starts_with("No template reference specified"), "{message}");

    let named = json!({ "templateRef": "tiny", "runtimeConfigName": "gold" });
    create_service(&space, "chat", named).await;
    let chat = wait_service(&space, "chat", "Ready", "False", "TemplateNotFound").await;
    let message = condition(&chat, "Failure")["message"].as_str().unwrap();
    assert!(message.starts_with("Template \"tiny\" not found."), "{message}");

    create_template(&space, "tiny", json!({})).await;
    let chat = wait_service(&space, "chat", "Ready", "False", "RuntimeConfigMissing").await;
    assert_eq!(chat["status"]["status"], "Degraded");
    create_config(&space, "gold", json!({})).await;
    let chat = wait_service(&space, "chat", "Ready", "False", "ImageNotFound").await;
    assert_eq!(
        condition(&chat, "Failure")["message"],
        format!("AIMImage \"tiny-lm\" not found in namespace \"{}\"", space.name)
    );
    create_image(&space, "tiny-lm", "tiny").await;
    wait_service(&space, "chat", "Ready", "False", "TemplateNotAvailable").await;
    wait_service(&space, "bare", "Ready", "False", "TemplateNotAvailable").await;
    answer(&space, &node, "tiny", ANSWER).await;
    for name in ["chat", "bare"] {
        see(&space, "InferenceService", name, |_| true).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_models_leaves_nothing_to_serve() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("nothing").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "tiny").await;
    create_template(&space, "tiny", json!({})).await;
    answer(&space, &node, "tiny", r#"[{"filename": "x", "profile": {}, "models": []}]"#).await;
    wait_template(&space, "tiny", "Available").await;
    create_service(&space, "chat", json!({})).await;
    let chat = wait_service(&space, "chat", "Ready", "False", "NoModelSources").await;
    assert_eq!(chat["status"]["status"], "Degraded");
    assert!(child(&space, "InferenceService", "chat").await.is_null());
}

fn derived(name: &Value) -> bool {
    name.as_str().is_some_and(|name| name.starts_with("tiny-ovr-"))
}

#[tokio::test(flavor = "multi_thread")]
async fn w14_overrides_make_a_template_that_goes_with_its_last_service() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("derived").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "tiny").await;
    available(&space, &node, "tiny").await;
    let more = json!({ "overrides": { "metric": "throughput" } });
    for name in ["one", "two"] {
        create_service(&space, name, more.clone()).await;
        let resolved = |object: &Value| derived(&object["status"]["resolvedTemplate"]["name"]);
        wait_for::<AimService>(&space, name, "a template of its own", resolved).await;
    }
    let name = "tiny-ovr-99ad0cdb";
    let template = read::<AimServiceTemplate>(&space, name).await;
    assert_eq!(template["spec"]["metric"], "throughput");
    assert!(template["metadata"].get("ownerReferences").is_none());
    // w03: the service is woken by the template that it made.
    answer(&space, &node, name, ANSWER).await;
    for name in ["one", "two"] {
        let made = see(&space, "InferenceService", name, |_| true).await;
        assert_eq!(made["spec"]["predictor"]["model"]["runtime"], "tiny-ovr-99ad0cdb");
    }
    space.delete::<AimService>("one").await;
    space
        .edit::<AimService>("two", json!({ "spec": { "env": [{ "name": "A", "value": "1" }] } }))
        .await;
    wait_for::<AimService>(&space, "two", "a pass", |_| true).await;
    assert!(!read::<AimServiceTemplate>(&space, name).await.is_null(), "it is still used");
    space.delete::<AimService>("two").await;
    eventually("its end", || read::<AimServiceTemplate>(&space, name), Value::is_null).await;
    assert!(!read::<AimServiceTemplate>(&space, "tiny").await.is_null());
}

/// A derived template whose pod cannot start is made anew as its service would have it by now.
#[tokio::test(flavor = "multi_thread")]
async fn w14_a_service_with_overrides_can_be_mended() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("mended").await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "tiny").await;
    create_template(&space, "tiny", json!({})).await;
    let secret = |name: &str| json!({ "imagePullSecrets": [{ "name": name }] });
    let mut spec = secret("wrong");
    spec["overrides"] = json!({ "metric": "throughput" });
    create_service(&space, "chat", spec).await;
    let name = "tiny-ovr-99ad0cdb";
    let first = template_with_secret(&space, name, "wrong").await;
    let job = super::wait_job(&space, name).await;
    let pods = super::pods_of(&job);
    kubelet::hold_pods(&space, &pods, 1, "ImagePullBackOff", "no right to pull").await;
    space.edit::<AimService>("chat", json!({ "spec": secret("right") })).await;
    let second = template_with_secret(&space, name, "right").await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    let asks_with_it = |jobs: &Vec<k8s_openapi::api::batch::v1::Job>| {
        let pod = |job: &k8s_openapi::api::batch::v1::Job| job.spec.clone()?.template.spec;
        let secrets = jobs.first().and_then(pod).and_then(|pod| pod.image_pull_secrets);
        secrets.is_some_and(|secrets| secrets[0].name == "right")
    };
    eventually("a Job with it", || super::jobs(&space, name), asks_with_it).await;
}

async fn template_with_secret(space: &Space, name: &str, secret: &str) -> Value {
    let has = |now: &Value| now["spec"]["imagePullSecrets"][0]["name"] == secret;
    eventually("the template", || read::<AimServiceTemplate>(space, name), has).await
}

#[tokio::test(flavor = "multi_thread")]
async fn g15_an_equal_template_is_used_again() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("reuse").await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "tiny").await;
    create_template(&space, "tiny", json!({})).await;
    create_template(&space, "handmade", json!({ "metric": "throughput", "precision": "fp16" }))
        .await;
    let more = json!({ "overrides": { "metric": "throughput", "precision": "fp16" } });
    create_service(&space, "chat", more).await;
    let resolved = |object: &Value| object["status"]["resolvedTemplate"]["name"] == "handmade";
    wait_for::<AimService>(&space, "chat", "the equal template", resolved).await;
    assert_eq!(space.names::<AimServiceTemplate>().await.len(), 2);
}
