use k8s_openapi::api::{batch::v1::Job, core::v1::PersistentVolumeClaim};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use windlass_api::model::artifact::ModelArtifact;
use windlass_tests::{Operator, Space, kubelet};

use super::{
    DIGEST, PUSHED, create, jobs, manifest, pods_of, ready, spec, wait, wait_job, wait_phase,
};

/// A merge patch under the predecessor's field manager, as it writes its status.
async fn write_status(space: &Space, status: Value) {
    let params = PatchParams { field_manager: Some("manager".into()), ..Default::default() };
    let patch = Patch::Merge(json!({ "status": status }));
    space.api::<ModelArtifact>().patch_status("a", &params, &patch).await.unwrap();
}

fn metadata(artifact: &ModelArtifact, name: &str) -> Value {
    json!({
        "name": name,
        "labels": {
            "app.kubernetes.io/name": "a", "app.kubernetes.io/component": "model-artifact",
            "app.kubernetes.io/part-of": "otterscale-system", "app.kubernetes.io/version": "v1.0.1",
            "app.kubernetes.io/managed-by": "model-operator",
        },
        "ownerReferences": [{
            "apiVersion": "model.otterscale.io/v1alpha1", "kind": "ModelArtifact", "name": "a",
            "uid": artifact.metadata.uid, "controller": true, "blockOwnerDeletion": true,
        }],
    })
}

/// Workspace and Job as the predecessor leaves them: no annotations, no hold.
async fn children(space: &Space, artifact: &ModelArtifact) -> Job {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata(artifact, "a-workspace"),
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    space.create(&serde_json::from_value::<PersistentVolumeClaim>(claim).unwrap()).await;
    let template = json!({
        "metadata": { "labels": metadata(artifact, "")["labels"] },
        "spec": { "restartPolicy": "Never", "containers": [{
            "name": "kit", "image": "kit",
            "env": [{ "name": "OCI_TARGET", "value": "ghcr.io/myorg/models/phi-4:v1.0" }],
        }] },
    });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(artifact, "a-x7k2p"),
        "spec": { "backoffLimit": 0, "template": template },
    });
    space.create(&serde_json::from_value::<Job>(job).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_the_predecessor_is_taken_over_and_not_repeated() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("taken").await;
    let object = manifest("ModelArtifact", "a", &spec());
    let artifact: ModelArtifact = space.create(&serde_json::from_value(object).unwrap()).await;
    let job = children(&space, &artifact).await;
    write_status(&space, json!({ "phase": "Running", "observedGeneration": 1 })).await;
    let _operator = Operator::start(&cluster, &space).await;
    kubelet::end_pod(&space, &pods_of(&job), PUSHED).await;
    let status = wait_phase::<ModelArtifact>(&space, "a", "Succeeded").await;
    assert_eq!(status.digest.as_deref(), Some(DIGEST));
    assert_eq!(status.job_ref.unwrap().name, "a-x7k2p");
    let all = jobs(&space, "a").await;
    assert_eq!(all.iter().map(|job| job.uid()).collect::<Vec<_>>(), [job.uid()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn w02_w16_what_the_predecessor_reported_goes_with_the_next_change() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("reported").await;
    create::<ModelArtifact>(&space, "a").await;
    let time = "2026-01-01T00:00:00Z";
    let status = json!({
        "phase": "Succeeded", "observedGeneration": 1, "digest": DIGEST, "startTime": time,
        "completionTime": time, "reference": "ghcr.io/myorg/models/phi-4:v1.0",
        "jobRef": { "name": "a-x7k2p", "namespace": space.name },
        "conditions": [{ "type": "Ready", "status": "True", "reason": "Completed",
            "message": "Pipeline completed; Job was cleaned up", "observedGeneration": 1,
            "lastTransitionTime": time }],
    });
    write_status(&space, status).await;
    let before = space.get::<ModelArtifact>("a").await.unwrap().status.unwrap();
    let _operator = Operator::start(&cluster, &space).await;
    // Written again under our name, and the same to the letter.
    let ours = |object: &Option<ModelArtifact>| {
        let managers = object.as_ref().unwrap().managed_fields();
        managers.iter().any(|entry| entry.manager.as_deref() == Some("model-operator"))
    };
    let read = || space.get::<ModelArtifact>("a");
    let taken = windlass_tests::eventually("the take-over", read, ours).await;
    assert_eq!(taken.unwrap().status.unwrap(), before);
    assert!(jobs(&space, "a").await.is_empty(), "what is done is not done again");

    space.edit::<ModelArtifact>("a", json!({ "spec": { "target": { "tag": "v2" } } })).await;
    let cleared = |status: &windlass_api::model::artifact::ArtifactStatus| {
        status.digest.is_none() && status.reference.is_none() && status.completion_time.is_none()
    };
    let status = wait::<ModelArtifact>(&space, "a", "a status of the new run", cleared).await;
    assert_ne!(ready(&status).unwrap().status, "True");
    wait_job::<ModelArtifact>(&space, "a").await;
}
