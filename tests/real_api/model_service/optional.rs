use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_tests::{Need, Operator, eventually};

use super::{children, condition, create, find, make_ready, read, see, wait};

/// A definition is noticed when it comes; this allows for a machine that has other things to do.
const SOON: Duration = Duration::from_secs(60);

/// Each of the optional APIs: whose definitions, what speaks of it, and the child it is needed for.
const OPTIONAL: [(&str, &str, &str, &str); 4] = [
    ("istio", "MeshConfigured", "DestinationRule", "a-epp"),
    ("gateway-api", "RouteAccepted", "HTTPRoute", "a"),
    ("inference-extension", "PoolAccepted", "InferencePool", "a"),
    ("prometheus-operator", "MonitorsReady", "PodMonitor", "a-decode"),
];

fn is_missing(object: &Value, type_: &str) -> bool {
    condition(object, type_)["reason"] == "APIMissing"
}

#[tokio::test(flavor = "multi_thread")]
async fn m11_each_optional_api_is_taken_up_when_it_appears() {
    let Some(cluster) = crate::private(&[], &[]).await else { return };
    let space = cluster.space("appear").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", json!({})).await;
    make_ready(&space, "a").await;
    let decode = see(&space, "Deployment", "a-decode", |_| true).await;
    for (index, (definitions, type_, kind, name)) in OPTIONAL.iter().enumerate() {
        let object = read(&space, "a").await;
        for (later, (_, type_, ..)) in OPTIONAL.iter().enumerate() {
            assert_eq!(is_missing(&object, type_), later >= index, "{type_} in {object}");
        }
        cluster.apply_crds(&[definitions]).await;
        let applied = Instant::now();
        see(&space, kind, name, |_| true).await;
        let known = |object: &Value| !is_missing(object, type_);
        eventually(type_, || read(&space, "a"), known).await;
        let took = applied.elapsed();
        assert!(took < SOON, "{definitions} was noticed after {took:?}");
    }
    wait(&space, "a", "MeshConfigured", "True", "Configured").await;
    wait(&space, "a", "MonitorsReady", "True", "Configured").await;
    wait(&space, "a", "PoolAccepted", "False", "AwaitingGateway").await;
    wait(&space, "a", "Ready", "True", "AllReplicasReady").await;
    let now = find(&space, "Deployment", "a-decode").await.unwrap();
    assert_eq!(now["metadata"]["generation"], decode["metadata"]["generation"]);
    assert_eq!(children(&space).await.len(), 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn m11_what_needs_a_missing_api_is_left_out_until_it_is_there() {
    let Some(cluster) = crate::private(&[], &[Need::Kubectl]).await else {
        return;
    };
    let space = cluster.space("bare").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", json!({})).await;
    let object = wait(&space, "a", "Ready", "False", "PodsStarting").await;
    for type_ in ["PoolAccepted", "RouteAccepted", "MonitorsReady", "MeshConfigured"] {
        assert_eq!(condition(&object, type_)["reason"], "APIMissing", "{object}");
    }
    see(&space, "Deployment", "a-decode", |_| true).await;
    cluster.apply_crds(&["prometheus-operator"]).await;
    see(&space, "PodMonitor", "a-decode", |_| true).await;
    wait(&space, "a", "MonitorsReady", "True", "Configured").await;
    wait(&space, "a", "MeshConfigured", "False", "APIMissing").await;

    // Both ways: what goes with its definition comes back with it, and nothing else is disturbed.
    make_ready(&space, "a").await;
    let decode = see(&space, "Deployment", "a-decode", |_| true).await;
    cluster.kubectl(&["delete", "crd", "podmonitors.monitoring.coreos.com"], "");
    wait(&space, "a", "MonitorsReady", "False", "APIMissing").await;
    wait(&space, "a", "Ready", "True", "AllReplicasReady").await;
    cluster.apply_crds(&["prometheus-operator"]).await;
    see(&space, "PodMonitor", "a-decode", |_| true).await;
    wait(&space, "a", "MonitorsReady", "True", "Configured").await;
    let now = see(&space, "Deployment", "a-decode", |_| true).await;
    assert_eq!(now["metadata"]["generation"], decode["metadata"]["generation"]);
}
