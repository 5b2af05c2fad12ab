use axum::body::Bytes;
use serde_json::json;
use windlass_api::aim::image::AimImage;
use windlass_api::aim::template::AimServiceTemplate;
use windlass_tests::logs::{LogNode, Output};
use windlass_tests::operator::Setup;
use windlass_tests::{Operator, eventually, kubelet, wait};

use super::{
    ANSWER, ENDED_BADLY, answer, available, child, condition, create_config, create_image,
    create_template, events, image_spec, jobs, pods_of, see, wait_for, wait_job, wait_template,
};

#[tokio::test(flavor = "multi_thread")]
async fn g18_an_image_is_asked_and_kserve_gets_a_runtime() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("ask").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "").await;
    create_config(&space, "default", json!({ "serviceAccountName": "default" })).await;
    create_template(&space, "tiny", json!({ "metric": "latency", "precision": "fp4" })).await;
    let running = wait_template(&space, "tiny", "Progressing").await;
    assert_eq!(condition(&running, "Progressing")["reason"], "DiscoveryRunning");
    answer(&space, &node, "tiny", ANSWER).await;
    let ready = wait_template(&space, "tiny", "Available").await;
    assert_eq!(ready["status"]["modelSources"][0]["size"], "13475459891");
    assert_eq!(ready["status"]["profile"]["metadata"]["precision"], "fp4", "w20");
    assert_eq!(condition(&ready, "Ready")["reason"], "Available");
    let runtime = see(&space, "ServingRuntime", "tiny", |_| true).await;
    let container = &runtime["spec"]["containers"][0];
    assert_eq!(container["resources"]["limits"], json!({ "amd.com/gpu": "2" }));
    assert_eq!(runtime["metadata"]["ownerReferences"][0]["controller"], true);
    // Events come after the status.
    let is_over = |told: &Vec<String>| told.iter().any(|told| told == "DiscoverySucceeded");
    let told = eventually("the last event", || events(&space, "tiny"), is_over).await;
    for reason in ["RuntimeConfigResolved", "DiscoveryStarted", "DiscoverySucceeded"] {
        assert_eq!(told.iter().filter(|told| *told == reason).count(), 1, "{reason}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn w02_an_image_that_comes_late_is_noticed() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("late").await;
    let _operator = Operator::start(&cluster, &space).await;
    create_template(&space, "tiny", json!({})).await;
    let lost = wait_template(&space, "tiny", "Degraded").await;
    let types: Vec<_> =
        lost["status"]["conditions"].as_array().unwrap().iter().map(|c| &c["type"]).collect();
    assert_eq!(types, ["Failure", "Ready"]);
    create_image(&space, "tiny-lm", "").await;
    wait_job(&space, "tiny").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w04_a_failed_discovery_is_mended_by_another_image() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("mend").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "").await;
    create_template(&space, "tiny", json!({})).await;
    let first = wait_job(&space, "tiny").await;
    // Three more tries are the Job's own.
    for tries in 1..=4 {
        let failed = move |job: &Option<k8s_openapi::api::batch::v1::Job>| {
            let status = job.as_ref().and_then(|job| job.status.as_ref());
            status.and_then(|status| status.failed) == Some(tries)
        };
        fail_one(&space, &pods_of(&first)).await;
        let name = first.metadata.name.clone().unwrap();
        eventually("a failed pod", || space.get(&name), failed).await;
    }
    let failed = wait_template(&space, "tiny", "Failed").await;
    assert_eq!(condition(&failed, "Failure")["reason"], "JobFailed");
    assert_eq!(failed["status"]["discovery"]["failures"], 1);

    let spec = image_spec("registry.example.com/aim/tiny-lm:1.4.1", "");
    space.edit::<AimImage>("tiny-lm", json!({ "spec": spec })).await;
    let other = |jobs: &Vec<k8s_openapi::api::batch::v1::Job>| {
        jobs.len() == 1 && jobs[0].metadata.uid != first.metadata.uid
    };
    eventually("another Job", || jobs(&space, "tiny"), other).await;
    answer(&space, &node, "tiny", ANSWER).await;
    let ready = wait_template(&space, "tiny", "Available").await;
    assert_eq!(condition(&ready, "Failure")["status"], "False");
}

/// Ends the pod that has not ended yet.
async fn fail_one(space: &windlass_tests::Space, labels: &str) {
    use k8s_openapi::api::core::v1::Pod;
    use kube::ResourceExt;
    let alive = || async {
        let params = kube::api::ListParams::default().labels(labels);
        let pods = space.api::<Pod>().list(&params).await.unwrap().items;
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        pods.into_iter().find(|pod| phase(pod).as_deref() == Some("Pending"))
    };
    let pod = eventually("a pod", alive, Option::is_some).await.unwrap();
    kubelet::end_this(space, &pod.name_any(), ENDED_BADLY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w19_an_output_that_makes_no_sense_is_told_and_hurts_nobody() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("nonsense").await;
    let node = LogNode::start(&space).await;
    let mut operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "").await;
    let nothing = "no valid JSON array found in logs";
    let cases: [(&str, Output, &str); 5] = [
        ("empty", "".into(), nothing),
        ("array", "[]".into(), "empty array"),
        ("cut", (&ANSWER[..200]).into(), nothing),
        ("long", Output([line("["), line("]")].concat()), nothing),
        (
            "binary",
            Output(vec![(Bytes::from_static(b"\xff\xfe[{\"models\": \xc3\x28"), 1)]),
            nothing,
        ),
    ];
    for (name, output, message) in cases {
        create_template(&space, name, json!({})).await;
        answer(&space, &node, name, output).await;
        let failed = wait_template(&space, name, "Failed").await;
        let failure = condition(&failed, "Failure");
        assert_eq!(failure["reason"], "DiscoveryParseFailed", "{name}");
        assert!(failure["message"].as_str().unwrap().contains(message), "{failure}");
    }
    // An answer behind all that is found, and its own bytes are read as well as they can be.
    create_template(&space, "hidden", json!({})).await;
    let noise = [line("["), vec![(Bytes::from_static(b"\xff\xfe\x00\n"), 1)]].concat();
    let parts = [noise, vec![(ANSWER.into(), 1), (Bytes::from_static(b"\xc3\x28"), 1)]].concat();
    answer(&space, &node, "hidden", Output(parts)).await;
    let found = wait_template(&space, "hidden", "Available").await;
    assert_eq!(found["status"]["modelSources"][0]["name"], "acme/tiny-lm-7b");
    available(&space, &node, "good").await;
    assert!(operator.is_running());
}

/// 50 MB of the same, without an end of line.
fn line(text: &str) -> Vec<(Bytes, usize)> {
    vec![(text.repeat(100_000).into(), 500)]
}

#[tokio::test(flavor = "multi_thread")]
async fn w26_a_pod_that_cannot_start_is_told() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("stuck").await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "").await;
    create_template(&space, "tiny", json!({})).await;
    let job = wait_job(&space, "tiny").await;
    kubelet::hold_pods(&space, &pods_of(&job), 1, "ImagePullBackOff", "no such image").await;
    let says = |object: &serde_json::Value| {
        let progress = condition(object, "Progressing");
        progress["message"].as_str().is_some_and(|text| text.contains("no such image"))
    };
    let stuck = wait_for::<AimServiceTemplate>(&space, "tiny", "the cause", says).await;
    assert_eq!(stuck["status"]["status"], "Progressing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_takes_its_children_with_it() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("gone").await;
    let node = LogNode::start(&space).await;
    let _operator = Operator::start(&cluster, &space).await;
    create_image(&space, "tiny-lm", "").await;
    available(&space, &node, "tiny").await;
    see(&space, "ServingRuntime", "tiny", |_| true).await;
    space.delete::<AimServiceTemplate>("tiny").await;
    super::gone(&space, "ServingRuntime", "tiny").await;
    eventually("no Job", || jobs(&space, "tiny"), Vec::is_empty).await;
    assert!(child(&space, "ServingRuntime", "tiny").await.is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn w26_a_job_past_its_deadline_has_failed_and_is_not_repeated_at_once() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("deadline").await;
    let setup = Setup::default().with("--aim-discovery-deadline-seconds=2");
    let _operator = Operator::start_with(&cluster, &space, &setup).await;
    create_image(&space, "tiny-lm", "").await;
    create_template(&space, "tiny", json!({})).await;
    let failed = wait_template(&space, "tiny", "Failed").await;
    assert_eq!(condition(&failed, "Failure")["reason"], "JobFailed");
    eventually("no Job", || jobs(&space, "tiny"), Vec::is_empty).await;
    wait::pass(std::time::Duration::from_secs(5)).await;
    assert!(jobs(&space, "tiny").await.is_empty());
    let still = wait_template(&space, "tiny", "Failed").await;
    assert_eq!(still["status"]["discovery"]["failures"], 1);
}
