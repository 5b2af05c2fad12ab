use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::ResourceExt;
use serde_json::json;
use windlass_api::model::artifact::{Artifact, ArtifactStatus, ModelArtifact};
use windlass_tests::{
    Need, Operator, Space, eventually, kubelet,
    operator::{METRICS, Setup},
};

use super::{
    DIGEST, Kind, PUSHED, REFUSED, claim, create, env, events, jobs, message, pods_of, ready, wait,
    wait_claim, wait_gone, wait_job, wait_phase, wait_reason,
};

/// From nothing to the end of the first run.
async fn run<K: Kind>(space: &Space, name: &str, ending: kubelet::Ending<'_>) -> Job {
    create::<K>(space, name).await;
    let job = wait_job::<K>(space, name).await;
    kubelet::end_pod(space, &pods_of(&job), ending).await;
    let phase = if ending.exit_code == 0 { "Succeeded" } else { "Failed" };
    wait_phase::<K>(space, name, phase).await;
    job
}

async fn reports_success<K: Kind>(space: &Space) {
    create::<K>(space, "phi-4").await;
    let made = wait_job::<K>(space, "phi-4").await;
    let workspace = wait_claim(space, "phi-4").await;
    assert_eq!(workspace.spec.unwrap().access_modes.unwrap(), ["ReadWriteOnce"]);
    assert_eq!(made.spec.as_ref().unwrap().ttl_seconds_after_finished, Some(3600));
    let status = wait_phase::<K>(space, "phi-4", "Running").await;
    assert_eq!(ready(&status).unwrap().reason, "JobRunning");
    assert_eq!((&status.digest, &status.reference), (&None, &None));

    kubelet::end_pod(space, &pods_of(&made), PUSHED).await;
    let status = wait_phase::<K>(space, "phi-4", "Succeeded").await;
    let condition = ready(&status).unwrap();
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "Succeeded"));
    assert_eq!(condition.message, "Model artifact pushed successfully");
    assert_eq!(status.digest.as_deref(), Some(DIGEST));
    assert_eq!(status.reference.as_deref(), Some("ghcr.io/myorg/models/phi-4:v1.0"));
    assert!(status.start_time.is_some() && status.completion_time.is_some());
    assert_eq!(status.conditions.len(), 1, "Ready is the only condition");

    wait_gone::<PersistentVolumeClaim>(space, "phi-4-workspace").await;
    let let_go = |job: &Option<Job>| job.as_ref().is_some_and(|job| job.finalizers().is_empty());
    let name = made.name_any();
    eventually("a Job that may expire", || space.get::<Job>(&name), let_go).await;
    assert_eq!(jobs(space, "phi-4").await.len(), 1);
    let from = ["Reconcile", "artifact-controller"];
    let created = format!("Created pipeline job {}", made.name_any());
    let told = |events: &Vec<[String; 5]>| events.len() >= 2;
    let mut events = eventually("events", || events(space, "phi-4"), told).await;
    events.sort();
    let want = [
        ["Normal", "JobCreated", created.as_str(), from[0], from[1]],
        ["Normal", "Succeeded", "Artifact pushed successfully", from[0], from[1]],
    ];
    assert_eq!(events, want);
}

#[tokio::test(flavor = "multi_thread")]
async fn a07_a09_a_run_that_succeeds_is_reported_with_its_digest() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("success").await;
    let _operator = Operator::start(&cluster, &space).await;
    reports_success::<ModelArtifact>(&space).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_kind_does_the_same() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("other").await;
    let _operator = Operator::start(&cluster, &space).await;
    reports_success::<Artifact>(&space).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_w06_a_run_that_fails_tells_its_cause_and_is_not_tried_again() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("failure").await;
    let _operator = Operator::start(&cluster, &space).await;
    let job = run::<ModelArtifact>(&space, "a", REFUSED).await;
    let status = wait_reason(&space, "a", "JobFailed").await;
    assert_eq!(message(&status), "kit import: repository not found");
    assert!(status.completion_time.is_some(), "a failure ends too");
    assert_eq!((&status.digest, &status.reference), (&None, &None));
    wait_gone::<PersistentVolumeClaim>(&space, "a-workspace").await;
    let told = |events: &Vec<[String; 5]>| {
        let note = "Artifact pipeline failed: kit import: repository not found";
        events.iter().any(|event| event[..3] == ["Warning", "Failed", note])
    };
    eventually("the event", || events(&space, "a"), told).await;
    let all = jobs(&space, "a").await;
    assert_eq!(all.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), [job.name_any()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a15_w01_w02_a_change_after_success_runs_again_and_claims_nothing_meanwhile() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("again").await;
    let _operator = Operator::start(&cluster, &space).await;
    let first = run::<ModelArtifact>(&space, "a", PUSHED).await;
    space.edit::<ModelArtifact>("a", json!({ "spec": { "target": { "tag": "v2" } } })).await;
    let status = wait::<ModelArtifact>(&space, "a", "a new run", |status| {
        status.job_ref.as_ref().is_some_and(|job| job.name != first.name_any())
    })
    .await;
    assert_eq!((&status.digest, &status.reference), (&None, &None));
    assert!(matches!(status.phase.as_deref(), Some("Pending" | "Running")));
    let second = wait_job::<ModelArtifact>(&space, "a").await;
    assert_eq!(env(&second, "OCI_TARGET").unwrap(), "ghcr.io/myorg/models/phi-4:v2");
    wait_gone::<Job>(&space, &first.name_any()).await;

    let digest = DIGEST.replace("abcdef", "012345");
    let ending = kubelet::Ending { exit_code: 0, message: &digest };
    kubelet::end_pod(&space, &pods_of(&second), ending).await;
    let status = wait_phase::<ModelArtifact>(&space, "a", "Succeeded").await;
    assert_eq!(status.digest, Some(digest));
    assert_eq!(status.reference.as_deref(), Some("ghcr.io/myorg/models/phi-4:v2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn w01_a_change_after_a_failure_runs_again() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("mended").await;
    let _operator = Operator::start(&cluster, &space).await;
    let first = run::<ModelArtifact>(&space, "a", REFUSED).await;
    let mended = json!({ "spec": { "source": { "huggingFace": { "model": "microsoft/phi-5" } } } });
    space.edit::<ModelArtifact>("a", mended).await;
    let second = wait_job::<ModelArtifact>(&space, "a").await;
    assert_ne!(second.name_any(), first.name_any());
    assert_eq!(env(&second, "HF_REPO").unwrap(), "microsoft/phi-5");
    kubelet::end_pod(&space, &pods_of(&second), PUSHED).await;
    wait_phase::<ModelArtifact>(&space, "a", "Succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_tried_again_for_each_new_value_of_the_annotation() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("retry").await;
    let setup = Setup::default().with(METRICS);
    let operator = Operator::start_with(&cluster, &space, &setup).await;
    let retry =
        |value: &str| json!({ "metadata": { "annotations": { "windlass.dev/retry": value } } });
    let mut before = run::<ModelArtifact>(&space, "a", REFUSED).await;
    for (value, ending, phase) in [("1", REFUSED, "Failed"), ("2", PUSHED, "Succeeded")] {
        space.edit::<ModelArtifact>("a", retry(value)).await;
        let is_new = |status: &ArtifactStatus| {
            status.observed_retry.as_deref() == Some(value) && status.job_ref.is_some()
        };
        wait::<ModelArtifact>(&space, "a", "a new run", is_new).await;
        let job = wait_job::<ModelArtifact>(&space, "a").await;
        assert_ne!(job.name_any(), before.name_any());
        kubelet::end_pod(&space, &pods_of(&job), ending).await;
        wait_phase::<ModelArtifact>(&space, "a", phase).await;
        before = job;
    }
    // What has succeeded is not run again by a mere annotation.
    wait_gone::<PersistentVolumeClaim>(&space, "a-workspace").await;
    let passes = operator.passes().await;
    let object = space.edit::<ModelArtifact>("a", retry("3")).await;
    eventually("another pass", || operator.passes(), |now| *now > passes).await;
    let status = wait_phase::<ModelArtifact>(&space, "a", "Succeeded").await;
    assert_eq!(object.status.unwrap(), status);
    assert_eq!(status.observed_retry.as_deref(), Some("2"));
    assert!(claim(&space, "a").await.is_none());
    assert_eq!(jobs(&space, "a").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn w03_w04_a_change_while_running_waits_for_everything_of_the_old_run_to_end() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("change").await;
    let _operator = Operator::start(&cluster, &space).await;
    create::<ModelArtifact>(&space, "a").await;
    let first = wait_job::<ModelArtifact>(&space, "a").await;
    let old = wait_claim(&space, "a").await;
    // On a node, so that the pod, once deleted, waits for its kubelet, and the claim for the pod.
    let pod = kubelet::place_pod(&space, &pods_of(&first)).await;
    wait_phase::<ModelArtifact>(&space, "a", "Running").await;

    space.edit::<ModelArtifact>("a", json!({ "spec": { "target": { "tag": "v2" } } })).await;
    let status = wait_reason(&space, "a", "WaitingForWorkspace").await;
    assert_eq!(status.phase.as_deref(), Some("Pending"));
    assert_eq!((&status.job_ref, &status.start_time), (&None, &None));
    wait_gone::<Job>(&space, &first.name_any()).await;
    let says_pod =
        |status: &ArtifactStatus| message(status).contains(&format!("pod {pod} of an earlier run"));
    wait::<ModelArtifact>(&space, "a", "the pod's name", says_pod).await;
    assert!(space.get::<Pod>(&pod).await.unwrap().metadata.deletion_timestamp.is_some());
    assert!(jobs(&space, "a").await.is_empty(), "nothing new beside the old pod");

    kubelet::remove_pod(&space, &pod).await;
    let second = wait_job::<ModelArtifact>(&space, "a").await;
    assert_eq!(env(&second, "OCI_TARGET").unwrap(), "ghcr.io/myorg/models/phi-4:v2");
    assert_ne!(claim(&space, "a").await.unwrap().uid(), old.uid());
    assert_eq!(jobs(&space, "a").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_deleted_by_hand_is_made_again_after_its_pod_has_ended() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("byhand").await;
    let _operator = Operator::start(&cluster, &space).await;
    create::<ModelArtifact>(&space, "a").await;
    let first = wait_job::<ModelArtifact>(&space, "a").await;
    assert_eq!(first.finalizers(), ["windlass.dev/result"]);
    let pod = kubelet::place_pod(&space, &pods_of(&first)).await;
    space.delete::<Job>(&first.name_any()).await;
    wait_reason(&space, "a", "WaitingForWorkspace").await;
    kubelet::remove_pod(&space, &pod).await;
    let second = wait_job::<ModelArtifact>(&space, "a").await;
    assert_ne!(second.uid(), first.uid());
    kubelet::end_pod(&space, &pods_of(&second), PUSHED).await;
    wait_phase::<ModelArtifact>(&space, "a", "Succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w11_a_deleted_artifact_takes_its_children_along() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("deleted").await;
    let _operator = Operator::start(&cluster, &space).await;
    for (name, cascade) in [("a", "background"), ("b", "foreground")] {
        create::<ModelArtifact>(&space, name).await;
        let job = wait_job::<ModelArtifact>(&space, name).await;
        let flag = format!("--cascade={cascade}");
        cluster.kubectl(&["-n", &space.name, "delete", "modelartifact", name, &flag], "");
        wait_gone::<ModelArtifact>(&space, name).await;
        wait_gone::<Job>(&space, &job.name_any()).await;
        wait_gone::<PersistentVolumeClaim>(&space, &format!("{name}-workspace")).await;
    }
    eventually("no pods", || space.names::<Pod>(), Vec::is_empty).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_deleted_ends_the_run_only_when_it_is_gone() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("drained").await;
    let _operator = Operator::start(&cluster, &space).await;
    create::<ModelArtifact>(&space, "a").await;
    let job = wait_job::<ModelArtifact>(&space, "a").await;
    let pod = kubelet::place_pod(&space, &pods_of(&job)).await;
    wait_phase::<ModelArtifact>(&space, "a", "Running").await;
    // As a drain does it: the Job controller counts the pod as failed while it still runs.
    space.delete::<Pod>(&pod).await;
    let stopped = |status: &ArtifactStatus| message(status).contains("is being stopped");
    let status = wait::<ModelArtifact>(&space, "a", "the stop", stopped).await;
    assert_eq!(status.phase.as_deref(), Some("Running"));
    kubelet::remove_pod(&space, &pod).await;
    let status = wait_phase::<ModelArtifact>(&space, "a", "Failed").await;
    assert!(status.completion_time.is_some());
    assert!(message(&status).contains("backoff limit"), "{}", message(&status));
}

#[tokio::test(flavor = "multi_thread")]
async fn w10_a_run_that_takes_too_long_is_given_up() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("deadline").await;
    let setup = Setup::default().with("--artifact-deadline-seconds=1");
    let _operator = Operator::start_with(&cluster, &space, &setup).await;
    create::<ModelArtifact>(&space, "a").await;
    let status = wait_phase::<ModelArtifact>(&space, "a", "Failed").await;
    assert_eq!(message(&status), "Job was active longer than specified deadline");
}
