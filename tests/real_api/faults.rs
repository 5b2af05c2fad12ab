//! Killed operators, several operators, broken API servers.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;
use windlass_api::serving::zerfoo_inference_service::ZerfooInferenceService;
use windlass_tests::{
    Operator, audit, eventually,
    faults::{Fault, Faults},
    kubelet,
    operator::{METRICS, Setup},
    until, wait,
};

use crate::zis;

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_instant_it_converges_without_duplicates() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("killed").await;
    let setup = Setup::default();
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    let names: Vec<String> = (0..12).map(|n| format!("s{n}")).collect();
    for name in &names {
        zis::create(&space, name, json!({ "canary": { "modelRef": "m", "weight": 10 } })).await;
    }
    for pause in [150, 60, 220, 20, 110, 300] {
        wait::pass(Duration::from_millis(pause)).await;
        operator.kill();
        operator.restart(&space, &setup);
    }
    eventually("all children", || space.names::<Deployment>(), |found| found.len() == 24).await;
    for name in &names {
        zis::wait_condition(&space, name, "Ready", "False", "Progressing").await;
    }
    let deployments = space.api::<Deployment>().list(&ListParams::default()).await.unwrap();
    assert!(deployments.iter().all(|d| d.owner_references().len() == 1));
    assert_eq!(deployments.items.len(), 24);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_operators_only_the_holder_of_the_lease_acts() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("lease").await;
    let setup = Setup::default().with("--leader-elect");
    let mut first = Operator::start_with(&cluster, &space, &setup).await;
    let holder = || async { space.get::<Lease>("windlass").await?.spec?.holder_identity };
    let before = eventually("a leader", holder, Option::is_some).await;
    let mut second = Operator::start_with(&cluster, &space, &setup).await;
    zis::create(&space, "a", json!({})).await;
    zis::make_ready(&space, "a", 2).await;
    assert_eq!(holder().await, before);
    assert!(!second.log().contains("this operator leads"));
    assert!(second.is_running());

    // A leader that stops in good order hands over at once, one that is killed after the lease ends.
    assert!(first.terminate());
    let next = eventually("a new leader", holder, |now| now.is_some() && *now != before).await;
    zis::create(&space, "b", json!({})).await;
    zis::make_ready(&space, "b", 2).await;
    first.restart(&space, &setup);
    second.kill();
    eventually("the first again", holder, |now| now.is_some() && *now != next).await;
    zis::create(&space, "c", json!({})).await;
    zis::make_ready(&space, "c", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_lost_its_lease_stops_acting() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("usurped").await;
    let setup = Setup::default().with("--leader-elect");
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    zis::create(&space, "a", json!({})).await;
    zis::make_ready(&space, "a", 2).await;

    let patch =
        json!({ "spec": { "holderIdentity": "somebody-else", "leaseDurationSeconds": 3600 } });
    space.edit::<Lease>("windlass", patch).await;
    eventually(
        "it to notice",
        || async { operator.log() },
        |log| log.contains("somebody else holds"),
    )
    .await;
    space.edit::<ZerfooInferenceService>("a", json!({ "spec": { "replicas": 5 } })).await;
    let before = audit::writes(&cluster.audit_log, &operator.user).len();
    wait::pass(Duration::from_secs(3)).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user).len(), before);
    assert_eq!(zis::deployment(&space, "a-primary").await.spec.unwrap().replicas, Some(2));
    assert!(operator.is_running());

    space.edit::<Lease>("windlass", json!({ "spec": { "holderIdentity": null } })).await;
    eventually(
        "it to lead again",
        || zis::deployment(&space, "a-primary"),
        |deployment| deployment.spec.as_ref().unwrap().replicas == Some(5),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_api_server_is_found_again() {
    let Some(mut cluster) = crate::private(&["gateway-api"], &[]).await else {
        return;
    };
    let space = cluster.space("restart").await;
    let setup = Setup::default().with(METRICS);
    let mut operator = Operator::start_with(&cluster, &space, &setup).await;
    zis::create(&space, "a", json!({})).await;
    zis::make_ready(&space, "a", 2).await;
    let restarts = async || operator.metric("windlass_watch_restarts_total", &["Deployment"]).await;
    assert_eq!(restarts().await, 0.0);

    cluster.kill_api();
    wait::pass(Duration::from_secs(2)).await;
    cluster.start_api().await;
    // What happened meanwhile and what happens now are both seen.
    let old = zis::uid_of(&zis::deployment(&space, "a-primary").await);
    space.delete::<Deployment>("a-primary").await;
    zis::create(&space, "b", json!({})).await;
    let uid = || async { space.get::<Deployment>("a-primary").await.and_then(|d| d.metadata.uid) };
    eventually("a new Deployment", uid, |uid| uid.as_ref().is_some_and(|uid| *uid != old)).await;
    for name in ["a", "b"] {
        // Pods of the old Deployment may stay for a while: the garbage collector was cut off too.
        until("all pods to run", || async {
            kubelet::run_all(&space, &zis::pods(name, "primary")).await;
            let object = zis::get(&space, name).await;
            let ready = zis::condition(&object, "Ready").is_some_and(|c| c.status == "True");
            if ready { Ok(()) } else { Err(format!("{:?}", object.status)) }
        })
        .await;
    }
    assert!(restarts().await >= 1.0);
    assert!(operator.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_answers_are_retried_until_they_succeed() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("answers").await;
    let faults = Faults::start(&cluster).await;
    for (code, reason) in [(409, "Conflict"), (429, "TooManyRequests"), (500, "InternalError")] {
        for path in ["deployments/", "services/", "zerfooinferenceservices/"] {
            faults.inject(Fault { method: "PATCH", path, code, reason, times: 2 });
        }
        faults.inject(Fault { method: "GET", path: "deployments", code, reason, times: 1 });
    }
    let setup = Setup { server: Some(faults.address.clone()), ..Setup::default() };
    let _operator = Operator::start_with(&cluster, &space, &setup).await;
    zis::create(&space, "a", json!({})).await;
    zis::make_ready(&space, "a", 2).await;
    let injected = faults.injected();
    for code in [409, 429, 500] {
        assert!(injected.contains(&code), "{injected:?}");
    }
    assert_eq!(injected.len(), 21, "each of them was met: {injected:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_keeps_failing_is_shown() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("shown").await;
    let faults = Faults::start(&cluster).await;
    let fault = Fault {
        method: "PATCH",
        path: "deployments/",
        code: 500,
        reason: "InternalError",
        times: 100_000,
    };
    faults.inject(fault);
    let setup = Setup { server: Some(faults.address.clone()), ..Setup::default() };
    let _operator = Operator::start_with(&cluster, &space, &setup).await;
    zis::create(&space, "a", json!({})).await;
    let object =
        zis::wait_condition(&space, "a", "DependenciesReachable", "False", "InfrastructureError")
            .await;
    let message = &zis::condition(&object, "DependenciesReachable").unwrap().message;
    assert!(
        message.contains("Failed to apply") && message.contains("injected by the test"),
        "{message}"
    );
    assert_ne!(zis::status(&object)["ready"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_while_a_predecessor_holds_its_lease() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("predecessor").await;
    let lease = |duration: i32| {
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "model-operator-leader-election" },
            "spec": { "holderIdentity": "the-original", "leaseDurationSeconds": duration } })
    };
    space.create(&serde_json::from_value::<Lease>(lease(3600)).unwrap()).await;
    let setup = Setup::default().with("--leader-elect");
    let operator = Operator::start_with(&cluster, &space, &setup).await;
    zis::create(&space, "a", json!({})).await;
    let holder = |name: &'static str| {
        let space = &space;
        async move { space.get::<Lease>(name).await?.spec?.holder_identity }
    };
    // Their own lease has its turn only after the predecessor's.
    wait::pass(Duration::from_secs(5)).await;
    assert!(!operator.log().contains("this operator leads"));
    assert_eq!(space.names::<Deployment>().await, [""; 0]);

    let given_up = json!({ "spec": { "holderIdentity": "" } });
    space.edit::<Lease>("model-operator-leader-election", given_up).await;
    zis::deployment(&space, "a-primary").await;
    let ours = holder("windlass").await;
    assert!(ours.is_some());
    assert_eq!(holder("model-operator-leader-election").await, ours);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_signal_ends_it_in_good_order() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("signal").await;
    let mut operator = Operator::start(&cluster, &space).await;
    zis::create(&space, "a", json!({})).await;
    zis::deployment(&space, "a-primary").await;
    assert!(operator.terminate());
    assert!(operator.log().contains("operator stops"));
}

#[tokio::test(flavor = "multi_thread")]
async fn g16_w06_a_status_write_that_fails_is_tried_again() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("status-write").await;
    let faults = Faults::start(&cluster).await;
    faults.inject(Fault {
        method: "PATCH",
        path: "/status",
        code: 409,
        reason: "Conflict",
        times: 3,
    });
    let setup = Setup { server: Some(faults.address.clone()), ..Setup::default() };
    let _operator = Operator::start_with(&cluster, &space, &setup).await;
    zis::create(&space, "a", json!({})).await;
    zis::make_ready(&space, "a", 2).await;
    assert_eq!(faults.injected(), [409, 409, 409]);
}

#[tokio::test(flavor = "multi_thread")]
async fn g15_a_delete_that_must_come_first_and_fails_holds_up_the_apply() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("delete-first").await;
    let faults = Faults::start(&cluster).await;
    let setup = Setup { server: Some(faults.address.clone()), ..Setup::default() };
    let _operator = Operator::start_with(&cluster, &space, &setup).await;
    zis::create(&space, "a", json!({ "minReplicas": 3, "maxReplicas": 10 })).await;
    let replicas = || async { zis::deployment(&space, "a-primary").await.spec.unwrap().replicas };
    eventually("three replicas", replicas, |replicas| *replicas == Some(3)).await;

    faults.inject(Fault {
        method: "DELETE",
        path: "horizontalpodautoscalers/",
        code: 500,
        reason: "InternalError",
        times: 100_000,
    });
    let patch = json!({ "spec": { "minReplicas": 0, "maxReplicas": 0 } });
    space.edit::<ZerfooInferenceService>("a", patch).await;
    let reason = "InfrastructureError";
    let object = zis::wait_condition(&space, "a", "DependenciesReachable", "False", reason).await;
    let message = &zis::condition(&object, "DependenciesReachable").unwrap().message;
    assert!(message.starts_with("Failed to delete resources: "), "{message}");
    assert_eq!(replicas().await, Some(3), "the autoscaler is still there and would fight");
}
