//! Nothing is written where nothing is to be done, and nothing is kept that is not ours.

use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Service},
};
use serde_json::json;
use windlass_api::serving::zerfoo_inference_service::ZerfooInferenceService;
use windlass_engine::compare::difference;
use windlass_tests::{
    Cluster, Operator, Space, audit, eventually, kubelet,
    operator::{METRICS, Setup},
    wait,
};

use crate::zis;

#[tokio::test(flavor = "multi_thread")]
async fn k16_a_pass_over_a_converged_object_writes_nothing() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("quiet").await;
    let setup = Setup::default().with(METRICS);
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    let more = json!({
        "replicas": 1,
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
    let before = operator.passes().await;
    let patch = json!({ "metadata": { "labels": { "team": "search" } } });
    space.edit::<ZerfooInferenceService>("a", patch).await;
    eventually("another pass", || operator.passes(), |passes| *passes > before).await;
    let writes = audit::writes(&cluster.audit_log, &operator.user);
    assert_eq!(writes[settled..], []);

    restart(&mut operator, &space, &setup, 1).await;
    let writes = audit::writes(&cluster.audit_log, &operator.user);
    assert_eq!(writes[settled..], [], "after a restart");
}

/// Returns when the new process has looked at all of so many objects.
async fn restart(operator: &mut Operator, space: &Space, setup: &Setup, objects: usize) {
    operator.kill();
    operator.restart(space, setup);
    operator.wait_for_passes(objects).await;
}

/// Waits until it has written nothing for a while; returns how often it has written.
pub(crate) async fn settle(cluster: &Cluster, operator: &Operator) -> usize {
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
    let Some(cluster) = crate::private(&["gateway-api"], &[]).await else { return };
    let space = cluster.space("many").await;
    let setup = Setup { everywhere: true, ..Setup::default().with(METRICS) };
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

    restart(&mut operator, &space, &setup, 200).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user)[settled..], [], "after a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_object_we_can_make_is_recognised_once_it_was_applied() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("recognised").await;
    let mut seen = 0;
    for manifest in manifests() {
        let file = manifest.to_str().unwrap();
        for mut desired in crate::program::render(&space, file) {
            if ["Job", "PersistentVolumeClaim"].contains(&desired["kind"].as_str().unwrap()) {
                // What one case makes cannot be changed into what another does.
                desired["metadata"]["name"] = json!(format!("once-{seen}"));
            }
            let live = crate::program::apply(&space, &desired).await;
            let found = difference(&desired, &live, crate::program::manager(&desired), "");
            assert_eq!(found, None, "{file}: {desired}\n{live}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

/// The examples, and the first documents of the domain's case folders.
fn manifests() -> Vec<std::path::PathBuf> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let list = |folder: &str| {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let cases =
        list("crates/domains/tests/it/cases").into_iter().map(|case| case.join("given.yaml"));
    list("examples").into_iter().chain(cases).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_does_not_grow_with_the_objects_of_others() {
    let Some(cluster) = crate::private(&["gateway-api"], &[]).await else { return };
    let space = cluster.space("memory").await;
    let setup = Setup { everywhere: true, ..Setup::default() };
    let operator = Operator::start_with(&cluster, &space, &setup).await;
    zis::create(&space, "a", json!({})).await;
    zis::make_ready(&space, "a", 2).await;
    let before = resident_kib(operator.id());
    // 24 MB of Services, Deployments and Pods that carry none of our labels.
    let ballast = "x".repeat(8192);
    stream::iter(0..1000)
        .for_each_concurrent(16, |n| {
            let (space, ballast) = (&space, &ballast);
            async move {
                let meta = json!({ "name": format!("f{n}"), "annotations": { "ballast": ballast } });
                let labels = json!({ "app": "foreign" });
                let containers = json!([{ "name": "c", "image": "i" }]);
                let pod = json!({ "metadata": meta, "spec": { "containers": containers } });
                space.create::<Pod>(&serde_json::from_value(pod).unwrap()).await;
                let service = json!({ "metadata": meta, "spec": { "ports": [{ "port": 1 }] } });
                space.create::<Service>(&serde_json::from_value(service).unwrap()).await;
                let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": containers } });
                let deployment = json!({ "metadata": meta, "spec": {
                    "replicas": 0, "selector": { "matchLabels": labels }, "template": template } });
                space.create::<Deployment>(&serde_json::from_value(deployment).unwrap()).await;
            }
        })
        .await;
    zis::create(&space, "b", json!({})).await;
    zis::make_ready(&space, "b", 2).await;
    let after = resident_kib(operator.id());
    assert!(after < before + 5 * 1024, "{before} KiB before, {after} KiB after");
}

fn resident_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
