use std::time::Duration;

use futures::{StreamExt, stream};
use serde_json::json;
use windlass_tests::{
    Operator, audit, kubelet,
    operator::{METRICS, Setup},
    wait,
};

use super::{OURS, create, make_ready};
use crate::quiet::settle;

#[tokio::test(flavor = "multi_thread")]
async fn m21_twenty_services_get_no_write_in_half_a_minute_nor_after_a_restart() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("twenty").await;
    let setup = Setup::default().with(METRICS);
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    let names: Vec<String> = (0..20).map(|n| format!("a{n}")).collect();
    let more = json!({
        "decode": { "replicas": 1 }, "prefill": { "replicas": 1 }, "routingProxy": {},
        "inferencePool": { "endpointPicker": {} },
        "monitoring": { "podMonitor": { "enabled": true } },
    });
    stream::iter(&names)
        .for_each_concurrent(8, |name| async {
            create(&space, name, more.clone()).await;
        })
        .await;
    kubelet::run_all_until(&space, OURS, 60).await;
    for name in &names {
        make_ready(&space, name).await;
        super::wait(&space, name, "EPPReady", "True", "DeploymentAvailable").await;
    }
    let settled = settle(&cluster, &operator).await;
    wait::pass(Duration::from_secs(30)).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user)[settled..], [], "at rest");

    operator.kill();
    operator.restart(&space, &setup);
    operator.wait_for_passes(20).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user)[settled..], [], "after a restart");
}
