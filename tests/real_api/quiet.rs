use std::time::Duration;

use futures::{StreamExt, stream};
use serde_json::json;
use windlass_api::serving::zerfoo_inference_service::ZerfooInferenceService;
use windlass_tests::{Cluster, Operator, audit, eventually, kubelet, operator::Setup, wait};

use crate::zis;

#[tokio::test(flavor = "multi_thread")]
async fn k16_a_pass_over_a_converged_object_writes_nothing() {
    let Some(cluster) = Cluster::shared().await else { return };
    let space = cluster.space("quiet").await;
    let setup = Setup::default();
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    let more = json!({
        "minReplicas": 1, "maxReplicas": 4, "replicas": 1,
        "resources": { "cpu": "1000m", "memory": "16384Mi", "gpuMemory": "24Gi" },
        "canary": { "modelRef": "llama3-8b-q8", "weight": 20, "replicas": 1 },
        "routing": { "parentRefs": [{ "name": "gw" }], "hostnames": ["a.example.com"] },
        "env": [{ "name": "A", "value": "b" }], "extraArgs": ["--rate-limit", "5"],
        "tolerations": [{ "key": "x", "operator": "Exists" }], "podLabels": { "team": "search" },
        "cache": { "emptyDir": { "sizeLimit": "1000Mi" } },
        "auth": { "apiKeySecretRef": { "name": "k", "key": "apiKey" } },
    });
    zis::create(&space, "a", more).await;
    kubelet::run_pods(&space, "app=a", 2).await;
    zis::wait_condition(&space, "a", "PrimaryReady", "True", "DeploymentAvailable").await;
    zis::wait_condition(&space, "a", "CanaryReady", "True", "DeploymentAvailable").await;
    let settled = settle(&cluster, &operator).await;

    // A change that is none of its business makes it look again.
    let patch = json!({ "metadata": { "labels": { "team": "search" } } });
    space.edit::<ZerfooInferenceService>("a", patch).await;
    wait::pass(Duration::from_secs(3)).await;
    let writes = audit::writes(&cluster.audit_log, &operator.user);
    assert_eq!(writes[settled..], []);

    operator.kill();
    operator.restart(&space, &setup);
    eventually(
        "it to run",
        || async { operator.log() },
        |log| log.matches("operator starts").count() == 2,
    )
    .await;
    wait::pass(Duration::from_secs(5)).await;
    let writes = audit::writes(&cluster.audit_log, &operator.user);
    assert_eq!(writes[settled..], [], "after a restart");
}

/// Waits until it has written nothing for a while; returns how often it has written.
async fn settle(cluster: &Cluster, operator: &Operator) -> usize {
    let mut before = usize::MAX;
    eventually(
        "no more writes",
        || async {
            wait::pass(Duration::from_secs(2)).await;
            audit::writes(&cluster.audit_log, &operator.user).len()
        },
        |now| std::mem::replace(&mut before, *now) == *now,
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_converged_services_get_no_write_in_a_minute_nor_after_a_restart() {
    let Some(cluster) = Cluster::private(&["gateway-api"]).await else { return };
    let space = cluster.space("many").await;
    let setup = Setup { everywhere: true, ..Setup::default() };
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    let names: Vec<String> = (0..200).map(|n| format!("s{n}")).collect();
    stream::iter(&names)
        .for_each_concurrent(16, |name| async {
            zis::create(&space, name, json!({ "replicas": 1, "resources": {} })).await;
        })
        .await;
    kubelet::run_all_until(&space, "app.kubernetes.io/name=zerfoo", 200).await;
    for name in &names {
        zis::wait_ready(&space, name).await;
    }
    let settled = settle(&cluster, &operator).await;
    wait::pass(Duration::from_secs(60)).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user)[settled..], [], "at rest");

    operator.kill();
    operator.restart(&space, &setup);
    eventually(
        "it to run",
        || async { operator.log() },
        |log| log.matches("operator starts").count() == 2,
    )
    .await;
    wait::pass(Duration::from_secs(15)).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user)[settled..], [], "after a restart");
}
