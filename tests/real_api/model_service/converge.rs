use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    rbac::v1::ClusterRole,
};
use kube::Api;
use serde_json::json;
use windlass_api::model::model_service::ModelService;
use windlass_tests::{
    Operator, audit, eventually,
    operator::{METRICS, Setup},
};

use super::{children, condition, create, everything, make_ready, wait};

#[tokio::test(flavor = "multi_thread")]
async fn s01_a_service_becomes_its_children_and_is_ready_when_its_pods_are() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("serving").await;
    let setup = Setup::default().with(METRICS);
    let operator = Operator::start_with(&cluster, &space, &setup).await;
    create(&space, "qwen3-32b", json!({})).await;
    wait(&space, "qwen3-32b", "Ready", "False", "PodsStarting").await;
    let want = [
        "ConfigMap qwen3-32b-epp-config",
        "Service qwen3-32b-epp",
        "ServiceAccount qwen3-32b-epp",
        "Deployment qwen3-32b-decode",
        "Deployment qwen3-32b-epp",
        "HTTPRoute qwen3-32b",
        "InferencePool qwen3-32b",
        "PodMonitor qwen3-32b-decode",
        "DestinationRule qwen3-32b-epp",
        "Role qwen3-32b-epp",
        "RoleBinding qwen3-32b-epp",
    ];
    assert_eq!(children(&space).await, want);
    make_ready(&space, "qwen3-32b").await;
    let object = wait(&space, "qwen3-32b", "Ready", "True", "AllReplicasReady").await;
    assert_eq!(object["status"]["phase"], "Ready");
    assert_eq!(condition(&object, "Ready")["message"], "All 2 replicas are ready");
    assert_eq!(object["metadata"]["finalizers"], json!(null), "there is nothing to clean up");

    // Another look at it changes nothing.
    let settled = crate::quiet::settle(&cluster, &operator).await;
    let passes = operator.passes().await;
    let label = json!({ "metadata": { "labels": { "x": "y" } } });
    space.edit::<ModelService>("qwen3-32b", label).await;
    eventually("another pass", || operator.passes(), |now| *now > passes).await;
    assert_eq!(audit::writes(&cluster.audit_log, &operator.user)[settled..], []);
}

#[tokio::test(flavor = "multi_thread")]
async fn s04_s08_s15_prefill_comes_and_goes_and_cluster_rights_end_with_the_service() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("paired").await;
    let operator = Operator::start(&cluster, &space).await;
    create(&space, "a", everything()).await;
    let object = wait(&space, "a", "Ready", "False", "PodsStarting").await;
    assert_eq!(object["metadata"]["finalizers"], json!(["model.otterscale.io/epp-cluster-rbac"]));
    // In an order in which each of them is accepted at once: a binding after its role.
    let refused = |write: &audit::Write| write.code >= 300;
    let writes = audit::writes(&cluster.audit_log, &operator.user);
    assert_eq!(writes.into_iter().filter(refused).collect::<Vec<_>>(), []);
    let rbac = format!("ClusterRole {}-a-epp", space.name);
    let there = children(&space).await;
    for want in
        ["Deployment a-prefill", "PodMonitor a-prefill", "ServiceMonitor a-epp", rbac.as_str()]
    {
        assert!(there.contains(&want.to_owned()), "{want} in {there:?}");
    }
    assert!(space.get::<Secret>("a-epp-sa-metrics-reader-secret").await.is_some());
    let config = space.get::<ConfigMap>("a-epp-config").await.unwrap();
    assert_eq!(config.data.unwrap().into_keys().collect::<Vec<_>>(), ["pd-config.yaml"]);

    // Drift of what lies outside of the namespace is healed too.
    let roles: Api<ClusterRole> = Api::all(space.client.clone());
    let name = format!("{}-a-epp", space.name);
    let before = roles.get(&name).await.unwrap().rules;
    roles.delete(&name, &Default::default()).await.unwrap();
    let healed = |role: &Option<ClusterRole>| role.as_ref().is_some_and(|r| r.rules == before);
    eventually("the role again", || async { roles.get_opt(&name).await.unwrap() }, healed).await;

    space.edit::<ModelService>("a", json!({ "spec": { "prefill": null } })).await;
    let gone = |there: &Vec<String>| !there.iter().any(|child| child.ends_with("a-prefill"));
    eventually("no prefill", || children(&space), gone).await;
    let config = space.get::<ConfigMap>("a-epp-config").await.unwrap();
    assert_eq!(config.data.unwrap().into_keys().collect::<Vec<_>>(), ["default-plugins.yaml"]);

    space.delete::<ModelService>("a").await;
    eventually("its end", || space.get::<ModelService>("a"), Option::is_none).await;
    assert!(roles.get_opt(&name).await.unwrap().is_none(), "gone before the service");
    eventually("no children", || children(&space), Vec::is_empty).await;
}
