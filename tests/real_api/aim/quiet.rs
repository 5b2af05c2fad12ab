use std::time::Duration;

use futures::{StreamExt, stream};
use serde_json::json;
use windlass_api::aim::service::AimService;
use windlass_tests::{
    Operator, audit,
    logs::LogNode,
    operator::{METRICS, Setup},
    wait,
};

use super::{available, create_image, create_service, run_inference_service, wait_service};
use crate::quiet::settle;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_services_share_ten_templates_and_then_there_is_rest() {
    let Some(cluster) = crate::private(&["kserve", "gateway-api"], &[]).await else {
        return;
    };
    let space = cluster.space("hundred").await;
    let node = LogNode::start(&space).await;
    let setup = Setup { everywhere: true, ..Setup::default().with(METRICS) };
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    create_image(&space, "tiny-lm", "").await;
    let templates: Vec<String> = (0..10).map(|n| format!("t{n}")).collect();
    stream::iter(&templates)
        .for_each_concurrent(4, |template| available(&space, &node, template))
        .await;
    let space_ref = &space;
    stream::iter(0..100)
        .for_each_concurrent(8, |n| async move {
            let more = json!({ "templateRef": format!("t{}", n % 10) });
            create_service(space_ref, &format!("s{n}"), more).await;
        })
        .await;
    stream::iter(0..100)
        .for_each_concurrent(8, |n| async move {
            let name = format!("s{n}");
            run_inference_service(space_ref, &name).await;
            wait_service(space_ref, &name, "Ready", "True", "RuntimeReady").await;
        })
        .await;
    assert_eq!(space.names::<AimService>().await.len(), 100);
    let made = audit::writes(&cluster.audit_log, &operator.user);
    let jobs = made.iter().filter(|write| write.resource == "jobs" && write.code == 201).count();
    assert_eq!(jobs, 10, "one for each template");

    let settled = settle(&cluster, &operator).await;
    wait::pass(Duration::from_secs(30)).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user)[settled..], [], "at rest");
    operator.kill();
    operator.restart(&space, &setup);
    operator.wait_for_passes(110).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user)[settled..], [], "after a restart");
}
