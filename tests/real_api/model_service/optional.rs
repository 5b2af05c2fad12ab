use serde_json::json;
use windlass_tests::{Cluster, Operator};

use super::{condition, create, make_ready, see, wait};

#[tokio::test(flavor = "multi_thread")]
async fn m11_what_needs_a_missing_api_is_left_out_until_it_is_there() {
    let Some(cluster) = Cluster::private(&[]).await else { return };
    let space = cluster.space("bare").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", json!({})).await;
    let object = wait(&space, "a", "Ready", "False", "PodsStarting").await;
    for type_ in ["PoolAccepted", "RouteAccepted", "MonitorsReady", "MeshConfigured"] {
        assert_eq!(condition(&object, type_)["reason"], "APIMissing", "{object}");
    }
    see(&space, "Deployment", "a-decode", |_| true).await;
    cluster.apply_crds(&["prometheus-operator"]);
    see(&space, "PodMonitor", "a-decode", |_| true).await;
    wait(&space, "a", "MonitorsReady", "True", "Configured").await;
    wait(&space, "a", "MeshConfigured", "False", "APIMissing").await;

    // Both ways: what goes with its definition comes back with it, and nothing else is disturbed.
    make_ready(&space, "a").await;
    let decode = see(&space, "Deployment", "a-decode", |_| true).await;
    cluster.kubectl(&["delete", "crd", "podmonitors.monitoring.coreos.com"], "");
    wait(&space, "a", "MonitorsReady", "False", "APIMissing").await;
    wait(&space, "a", "Ready", "True", "AllReplicasReady").await;
    cluster.apply_crds(&["prometheus-operator"]);
    see(&space, "PodMonitor", "a-decode", |_| true).await;
    wait(&space, "a", "MonitorsReady", "True", "Configured").await;
    let now = see(&space, "Deployment", "a-decode", |_| true).await;
    assert_eq!(now["metadata"]["generation"], decode["metadata"]["generation"]);
}
