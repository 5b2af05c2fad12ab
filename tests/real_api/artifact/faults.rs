use k8s_openapi::api::{batch::v1::Job, core::v1::PersistentVolumeClaim};
use kube::ResourceExt;
use serde_json::json;
use windlass_api::model::artifact::ModelArtifact;
use windlass_tests::{
    Need, Operator, eventually,
    faults::{Fault, Faults},
    kubelet,
    operator::{METRICS, Setup},
};

use super::{PUSHED, claim, create, jobs, pods_of, wait_claim, wait_gone, wait_job, wait_phase};

/// Lets a finished Job expire now.
async fn expire(space: &windlass_tests::Space, job: &Job) {
    let patch = json!({ "spec": { "ttlSecondsAfterFinished": 0 } });
    space.edit::<Job>(&job.name_any(), patch).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_claim_and_job_it_goes_on_with_the_same_claim() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("between").await;
    let faults = Faults::start(&cluster).await;
    let no_job =
        Fault { method: "PATCH", path: "/jobs/", code: 500, reason: "", times: usize::MAX };
    faults.inject(no_job);
    let setup = Setup { server: Some(faults.address.clone()), ..Setup::default() };
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    create::<ModelArtifact>(&space, "a").await;
    let before = wait_claim(&space, "a").await;
    eventually("an attempt", || async { faults.injected().len() }, |count| *count > 0).await;
    operator.kill();
    assert!(jobs(&space, "a").await.is_empty());

    faults.clear();
    operator.restart(&space, &setup);
    let job = wait_job::<ModelArtifact>(&space, "a").await;
    assert_eq!(claim(&space, "a").await.unwrap().uid(), before.uid());
    kubelet::end_pod(&space, &pods_of(&job), PUSHED).await;
    wait_phase::<ModelArtifact>(&space, "a", "Succeeded").await;
    assert_eq!(jobs(&space, "a").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn w03_a_change_is_not_lost_when_clearing_up_fails() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("lost").await;
    let faults = Faults::start(&cluster).await;
    let setup = Setup { server: Some(faults.address.clone()), ..Setup::default() };
    let _operator = Operator::start_with(&cluster, &space, &setup).await;
    create::<ModelArtifact>(&space, "a").await;
    let first = wait_job::<ModelArtifact>(&space, "a").await;
    for path in ["/jobs/", "/persistentvolumeclaims/"] {
        faults.inject(Fault { method: "DELETE", path, code: 500, reason: "", times: 2 });
    }
    space.edit::<ModelArtifact>("a", json!({ "spec": { "target": { "tag": "v2" } } })).await;
    wait_gone::<Job>(&space, &first.name_any()).await;
    let second = wait_job::<ModelArtifact>(&space, "a").await;
    assert_eq!(super::env(&second, "OCI_TARGET").unwrap(), "ghcr.io/myorg/models/phi-4:v2");
    assert_eq!(jobs(&space, "a").await.len(), 1);
    assert_eq!(faults.injected().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_instant_it_makes_one_job_for_each_artifact() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("once").await;
    let setup = Setup::default();
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    let names: Vec<String> = (0..10).map(|n| format!("a{n}")).collect();
    for name in &names {
        create::<ModelArtifact>(&space, name).await;
    }
    for pause in [150, 30, 80, 200, 50] {
        windlass_tests::wait::pass(std::time::Duration::from_millis(pause)).await;
        operator.kill();
        operator.restart(&space, &setup);
    }
    for name in &names {
        wait_job::<ModelArtifact>(&space, name).await;
    }
    assert_eq!(space.names::<Job>().await.len(), names.len());
    assert_eq!(space.names::<PersistentVolumeClaim>().await.len(), names.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a11_w07_a_result_outlives_its_job_to_the_letter() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("expired").await;
    let setup = Setup::default().with(METRICS);
    let operator = Operator::start_with(&cluster, &space, &setup).await;
    for (name, ending, phase) in [("a", PUSHED, "Succeeded"), ("b", super::REFUSED, "Failed")] {
        create::<ModelArtifact>(&space, name).await;
        let job = wait_job::<ModelArtifact>(&space, name).await;
        kubelet::end_pod(&space, &pods_of(&job), ending).await;
        let before = wait_phase::<ModelArtifact>(&space, name, phase).await;
        expire(&space, &job).await;
        wait_gone::<Job>(&space, &job.name_any()).await;
        let passes = operator.passes().await;
        space.edit::<ModelArtifact>(name, json!({ "metadata": { "labels": { "x": "y" } } })).await;
        eventually("another pass", || operator.passes(), |now| *now > passes).await;
        let after = wait_phase::<ModelArtifact>(&space, name, phase).await;
        assert_eq!(before, after);
        assert!(jobs(&space, name).await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn w13_the_outcome_waits_for_an_operator_that_was_away_and_is_not_repeated() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("away").await;
    let setup = Setup::default();
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    create::<ModelArtifact>(&space, "a").await;
    let job = wait_job::<ModelArtifact>(&space, "a").await;
    operator.kill();
    kubelet::end_pod(&space, &pods_of(&job), PUSHED).await;
    expire(&space, &job).await;
    let name = job.name_any();
    let expired = |job: &Option<Job>| job.as_ref().unwrap().metadata.deletion_timestamp.is_some();
    eventually("an expired Job", || space.get::<Job>(&name), expired).await;

    operator.restart(&space, &setup);
    // The digest is gone where the pod was collected before the operator came back.
    wait_phase::<ModelArtifact>(&space, "a", "Succeeded").await;
    wait_gone::<Job>(&space, &name).await;
    assert!(jobs(&space, "a").await.is_empty(), "not run again");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_while_the_operator_was_away_is_let_go_when_it_returns() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("held").await;
    let setup = Setup::default();
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    create::<ModelArtifact>(&space, "a").await;
    let job = wait_job::<ModelArtifact>(&space, "a").await;
    operator.kill();
    space.delete::<ModelArtifact>("a").await;
    wait_gone::<ModelArtifact>(&space, "a").await;
    let name = job.name_any();
    let held = |job: &Option<Job>| job.as_ref().unwrap().metadata.deletion_timestamp.is_some();
    eventually("a Job that is held", || space.get::<Job>(&name), held).await;
    // Another artifact of the same name is none of the old Job's business.
    let again = create::<ModelArtifact>(&space, "a").await;
    operator.restart(&space, &setup);
    wait_gone::<Job>(&space, &name).await;
    let job = wait_job::<ModelArtifact>(&space, "a").await;
    assert_eq!(Some(&job.owner_references()[0].uid), again.metadata.uid.as_ref());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_was_orphaned_is_let_go_when_it_is_deleted() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("orphan").await;
    let _operator = Operator::start(&cluster, &space).await;
    create::<ModelArtifact>(&space, "a").await;
    let job = wait_job::<ModelArtifact>(&space, "a").await;
    let orphan = ["-n", &space.name, "delete", "modelartifact", "a", "--cascade=orphan"];
    cluster.kubectl(&orphan, "");
    wait_gone::<ModelArtifact>(&space, "a").await;
    assert_eq!(jobs(&space, "a").await.len(), 1);
    space.delete::<Job>(&job.name_any()).await;
    wait_gone::<Job>(&space, &job.name_any()).await;
}
