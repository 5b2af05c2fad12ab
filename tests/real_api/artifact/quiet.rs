use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::batch::v1::Job;
use kube::{ResourceExt, api::ListParams};
use windlass_api::model::artifact::ModelArtifact;
use windlass_tests::{
    Operator, audit, eventually, kubelet,
    operator::{METRICS, Setup},
    wait,
};

use super::{PUSHED, create, pods_of, wait_job, wait_phase};
use crate::quiet::settle;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_finished_artifacts_get_no_write_in_a_minute_nor_after_a_restart() {
    let Some(cluster) = crate::private(&[], &[]).await else { return };
    let space = cluster.space("hundred").await;
    let setup = Setup { everywhere: true, ..Setup::default().with(METRICS) };
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    let names: Vec<String> = (0..100).map(|n| format!("a{n}")).collect();
    stream::iter(&names)
        .for_each_concurrent(8, |name| async {
            create::<ModelArtifact>(&space, name).await;
            let job = wait_job::<ModelArtifact>(&space, name).await;
            kubelet::end_pod(&space, &pods_of(&job), PUSHED).await;
            wait_phase::<ModelArtifact>(&space, name, "Succeeded").await;
        })
        .await;
    let held = || async {
        let jobs = space.api::<Job>().list(&ListParams::default()).await.unwrap();
        jobs.iter().filter(|job| !job.finalizers().is_empty()).count()
    };
    eventually("Jobs that may expire", held, |held| *held == 0).await;
    let settled = settle(&cluster, &operator).await;
    wait::pass(Duration::from_secs(60)).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user)[settled..], [], "at rest");

    operator.kill();
    operator.restart(&space, &setup);
    operator.wait_for_passes(100).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user)[settled..], [], "after a restart");
}
