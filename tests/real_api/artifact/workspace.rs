use k8s_openapi::api::{batch::v1::Job, core::v1::PersistentVolumeClaim};
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass_api::model::artifact::{Artifact, ArtifactStatus, ModelArtifact};
use windlass_tests::{Operator, Space, kubelet};

use super::{
    PUSHED, claim, create, jobs, message, pods_of, ready, wait, wait_claim, wait_gone, wait_job,
    wait_phase, wait_reason,
};

/// A claim that somebody else made under our name.
async fn foreign_claim(space: &Space, name: &str) -> PersistentVolumeClaim {
    let object = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    space.create(&serde_json::from_value::<PersistentVolumeClaim>(object).unwrap()).await
}

async fn set_finalizers(space: &Space, name: &str, finalizers: Value) {
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    space.edit::<PersistentVolumeClaim>(name, patch).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w18_a_claim_of_our_name_that_is_not_ours_is_left_alone() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("foreign").await;
    let foreign = foreign_claim(&space, "a-workspace").await;
    let _operator = Operator::start(&cluster, &space).await;
    create::<ModelArtifact>(&space, "a").await;
    let status = wait_reason(&space, "a", "InvalidSpec").await;
    let text = message(&status);
    assert!(text.contains("/a-workspace exists and was not made by this controller"), "{text}");
    assert!(text.contains("NotOwned"), "{text}");
    assert_eq!(status.phase.as_deref(), Some("Pending"));
    assert!(jobs(&space, "a").await.is_empty());
    let now = claim(&space, "a").await.unwrap();
    assert_eq!((now.uid(), now.labels().len()), (foreign.uid(), 0));

    space.delete::<ModelArtifact>("a").await;
    wait_gone::<ModelArtifact>(&space, "a").await;
    assert_eq!(claim(&space, "a").await.unwrap().uid(), foreign.uid());
}

#[tokio::test(flavor = "multi_thread")]
async fn both_kinds_of_one_name_run_one_after_the_other() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("both").await;
    let _operator = Operator::start(&cluster, &space).await;
    create::<ModelArtifact>(&space, "a").await;
    let first = wait_job::<ModelArtifact>(&space, "a").await;
    // On a node, as on a real cluster: there the pod keeps the claim for as long as its Job exists.
    kubelet::place_pod(&space, &pods_of(&first)).await;
    create::<Artifact>(&space, "a").await;
    let waits = |status: &ArtifactStatus| {
        ready(status).is_some_and(|ready| ready.reason == "WaitingForWorkspace")
    };
    let status = wait::<Artifact>(&space, "a", "the reason", waits).await;
    let text = "PersistentVolumeClaim a-workspace of the artifact of this name and the other kind";
    assert!(message(&status).contains(text), "{}", message(&status));

    kubelet::end_pod(&space, &pods_of(&first), PUSHED).await;
    wait_phase::<ModelArtifact>(&space, "a", "Succeeded").await;
    space.delete::<Job>(&first.name_any()).await;
    let second = wait_job::<Artifact>(&space, "a").await;
    assert_ne!(second.name_any(), first.name_any());
    kubelet::end_pod(&space, &pods_of(&second), PUSHED).await;
    wait_phase::<Artifact>(&space, "a", "Succeeded").await;
    wait_phase::<ModelArtifact>(&space, "a", "Succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_kinds_work_side_by_side() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("beside").await;
    let _operator = Operator::start(&cluster, &space).await;
    create::<ModelArtifact>(&space, "a").await;
    create::<Artifact>(&space, "b").await;
    let of_a = wait_job::<ModelArtifact>(&space, "a").await;
    let of_b = wait_job::<Artifact>(&space, "b").await;
    kubelet::end_pod(&space, &pods_of(&of_b), PUSHED).await;
    kubelet::end_pod(&space, &pods_of(&of_a), PUSHED).await;
    wait_phase::<ModelArtifact>(&space, "a", "Succeeded").await;
    wait_phase::<Artifact>(&space, "b", "Succeeded").await;
    for (artifact, kind) in [("a", "ModelArtifact"), ("b", "Artifact")] {
        let [job] = &jobs(&space, artifact).await[..] else { panic!("one Job each") };
        assert_eq!(job.owner_references()[0].kind, kind);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn w04_a_workspace_that_does_not_go_holds_up_the_next_run() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("stuck").await;
    let _operator = Operator::start(&cluster, &space).await;
    create::<ModelArtifact>(&space, "a").await;
    let first = wait_job::<ModelArtifact>(&space, "a").await;
    let old = wait_claim(&space, "a").await;
    set_finalizers(&space, "a-workspace", json!(["test.windlass.dev/stuck"])).await;

    space.edit::<ModelArtifact>("a", json!({ "spec": { "target": { "tag": "v2" } } })).await;
    wait_gone::<Job>(&space, &first.name_any()).await;
    let stuck = |status: &ArtifactStatus| {
        ready(status).is_some_and(|ready| {
            ready.reason == "WaitingForWorkspace"
                && ready.message.contains("PersistentVolumeClaim a-workspace")
        })
    };
    let status = wait::<ModelArtifact>(&space, "a", "the wait", stuck).await;
    assert_eq!(status.phase.as_deref(), Some("Pending"));
    assert!(jobs(&space, "a").await.is_empty(), "no Job on a dying claim");

    set_finalizers(&space, "a-workspace", json!([])).await;
    wait_job::<ModelArtifact>(&space, "a").await;
    assert_ne!(claim(&space, "a").await.unwrap().uid(), old.uid());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_deleted_before_its_pod_starts_is_made_again() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("healed").await;
    let _operator = Operator::start(&cluster, &space).await;
    create::<ModelArtifact>(&space, "a").await;
    wait_job::<ModelArtifact>(&space, "a").await;
    let old = wait_claim(&space, "a").await;
    space.delete::<PersistentVolumeClaim>("a-workspace").await;
    windlass_tests::eventually(
        "another workspace",
        || claim(&space, "a"),
        |now| now.as_ref().is_some_and(|now| now.uid() != old.uid()),
    )
    .await;
    assert_eq!(jobs(&space, "a").await.len(), 1);
}
