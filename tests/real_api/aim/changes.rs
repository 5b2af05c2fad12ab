use k8s_openapi::api::batch::v1::Job;
use serde_json::json;
use windlass_api::aim::image::AimImage;
use windlass_api::aim::runtime_config::AimRuntimeConfig;
use windlass_tests::logs::LogNode;
use windlass_tests::{Operator, eventually};

use super::{
    ANSWER, available, create_config, create_image, create_service, image_spec, see, wait_for,
    wait_template,
};

#[tokio::test(flavor = "multi_thread")]
async fn w01_a_config_that_changes_later_changes_what_it_is_for() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("config").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "tiny").await;
    // Pods of Jobs need an account that exists.
    create_config(&space, "default", json!({ "serviceAccountName": "default" })).await;
    available(&space, &node, "tiny").await;
    create_service(&space, "chat", json!({})).await;
    let account = |name: &'static str| {
        move |now: &serde_json::Value| now["spec"]["predictor"]["serviceAccountName"] == name
    };
    see(&space, "InferenceService", "chat", account("default")).await;
    let other = json!({ "spec": { "serviceAccountName": "second",
        "imagePullSecrets": [{ "name": "s" }] } });
    space.edit::<AimRuntimeConfig>("default", other).await;
    see(&space, "InferenceService", "chat", account("second")).await;
    see(&space, "ServingRuntime", "tiny", |now| now["spec"]["imagePullSecrets"][0]["name"] == "s")
        .await;
    space.delete::<AimRuntimeConfig>("default").await;
    let none =
        |now: &serde_json::Value| now["spec"]["predictor"].get("serviceAccountName").is_none();
    see(&space, "InferenceService", "chat", none).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w05_an_image_that_changes_later_is_asked_again_while_its_answer_stands() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("image").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "tiny").await;
    available(&space, &node, "tiny").await;
    create_service(&space, "chat", json!({})).await;
    see(&space, "InferenceService", "chat", |_| true).await;
    let spec = image_spec("registry.example.com/aim/tiny-lm:2.0.0", "tiny");
    space.edit::<AimImage>("tiny-lm", json!({ "spec": spec })).await;
    let newer = |now: &serde_json::Value| {
        now["spec"]["containers"][0]["image"] == "registry.example.com/aim/tiny-lm:2.0.0"
    };
    see(&space, "ServingRuntime", "tiny", newer).await;
    assert_eq!(wait_template(&space, "tiny", "Available").await["status"]["status"], "Available");
    let second = ANSWER.replace("\"gpu_count\": 2", "\"gpu_count\": 4");
    let asked = |job: &Job| {
        let pod = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        pod.and_then(|pod| pod.containers[0].image.as_deref())
            == Some("registry.example.com/aim/tiny-lm:2.0.0")
    };
    let found = |jobs: &Vec<Job>| jobs.iter().any(asked);
    let jobs = eventually("a Job for it", || super::jobs(&space, "tiny"), found).await;
    let last = jobs.iter().find(|job| asked(job)).unwrap();
    windlass_tests::kubelet::end_pod_with_log(
        &space,
        &super::pods_of(last),
        &node,
        super::ENDED_WELL,
        second,
    )
    .await;
    let four =
        |object: &serde_json::Value| object["status"]["profile"]["metadata"]["gpu_count"] == 4;
    wait_for::<windlass_api::aim::template::AimServiceTemplate>(&space, "tiny", "four", four).await;
    let more = |now: &serde_json::Value| {
        now["spec"]["predictor"]["model"]["resources"]["limits"]["amd.com/gpu"] == "4"
    };
    see(&space, "InferenceService", "chat", more).await;
}
