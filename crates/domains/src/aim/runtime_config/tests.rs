use serde_json::{Value, json};
use windlass_engine::error::Error;

use super::*;

fn own(spec: Value) -> Fetched<AimRuntimeConfig> {
    let object = json!({ "apiVersion": "aim.silogen.ai/v1alpha1", "kind": "AIMRuntimeConfig",
        "metadata": { "name": "team", "namespace": "research", "uid": "own" }, "spec": spec });
    Fetched::Found(serde_json::from_value(object).unwrap())
}

fn cluster(spec: Value) -> Fetched<AimClusterRuntimeConfig> {
    let object = json!({ "apiVersion": "aim.silogen.ai/v1alpha1",
        "kind": "AIMClusterRuntimeConfig", "metadata": { "name": "team", "uid": "cluster" },
        "spec": spec });
    Fetched::Found(serde_json::from_value(object).unwrap())
}

fn named(
    name: &str,
    namespaced: Fetched<AimRuntimeConfig>,
    cluster: Fetched<AimClusterRuntimeConfig>,
) -> Configs {
    Configs { name: name.to_owned(), namespaced, cluster }
}

fn spec_of(configs: &Configs, resolution: Resolution) -> Value {
    let Resolved::Found(config) = configs.resolve(resolution) else { panic!() };
    serde_json::to_value(config.spec).unwrap()
}

const CLUSTER: fn() -> Value = || {
    json!({ "defaultStorageClassName": "fast",
        "routing": { "enabled": true, "gatewayRef": { "name": "edge", "port": 80 } } })
};

#[test]
fn a_blank_name_means_the_default() {
    for name in [None, Some(""), Some("  "), Some("default")] {
        assert_eq!(effective_name(name), "default");
    }
    assert_eq!(effective_name(Some(" team ")), "team");
}

#[test]
fn the_namespace_replaces_the_cluster_as_a_whole() {
    let own = own(json!({ "serviceAccountName": "runner", "imagePullSecrets": [{ "name": "s" }] }));
    let configs = named("team", own, cluster(CLUSTER()));
    let alone = json!({ "serviceAccountName": "runner", "imagePullSecrets": [{ "name": "s" }] });
    assert_eq!(spec_of(&configs, Resolution::Override), alone);
    let resolved = configs.resolve(Resolution::Override);
    let reference = &resolved.config().unwrap().reference;
    let expected = json!({ "name": "team", "namespace": "research", "scope": "Namespace",
        "kind": "AIMRuntimeConfig", "uid": "own" });
    assert_eq!(serde_json::to_value(reference).unwrap(), expected);
}

#[test]
fn the_cluster_config_counts_where_the_namespace_has_none() {
    let configs = named("team", Fetched::Missing, cluster(CLUSTER()));
    for resolution in [Resolution::Override, Resolution::Merge] {
        assert_eq!(spec_of(&configs, resolution), CLUSTER());
        let Resolved::Found(config) = configs.resolve(resolution) else { panic!() };
        let expected = json!({ "name": "team", "scope": "Cluster",
            "kind": "AIMClusterRuntimeConfig", "uid": "cluster" });
        assert_eq!(serde_json::to_value(config.reference).unwrap(), expected);
    }
}

/// Own, cluster, and what comes of both.
#[test]
fn merged_the_cluster_fills_what_the_namespace_leaves_open() {
    let table = [
        (json!({}), json!({}), json!({})),
        (json!({}), CLUSTER(), CLUSTER()),
        (
            json!({ "defaultStorageClassName": "slow", "serviceAccountName": "runner" }),
            CLUSTER(),
            json!({ "defaultStorageClassName": "slow", "serviceAccountName": "runner",
                "routing": { "enabled": true, "gatewayRef": { "name": "edge", "port": 80 } } }),
        ),
        (
            json!({ "routing": { "enabled": false } }),
            CLUSTER(),
            json!({ "defaultStorageClassName": "fast",
                "routing": { "enabled": false, "gatewayRef": { "name": "edge", "port": 80 } } }),
        ),
        (
            json!({ "routing": { "gatewayRef": { "name": "own" }, "routeTemplate": "/a" } }),
            CLUSTER(),
            json!({ "defaultStorageClassName": "fast",
                "routing": { "enabled": true, "gatewayRef": { "name": "own" },
                    "routeTemplate": "/a" } }),
        ),
    ];
    for (of_namespace, of_cluster, expected) in table {
        let configs = named("team", own(of_namespace.clone()), cluster(of_cluster));
        assert_eq!(spec_of(&configs, Resolution::Merge), expected, "{of_namespace}");
        assert_eq!(spec_of(&configs, Resolution::Override), of_namespace);
    }
}

#[test]
fn only_the_default_may_be_missing() {
    let none = |name| named(name, Fetched::Missing, Fetched::Missing);
    assert!(matches!(none("default").resolve(Resolution::Override), Resolved::Nothing));
    let missing = none("gold").resolve(Resolution::Override).missing().unwrap();
    assert_eq!(missing, "runtime config \"gold\" not found: runtime config not found");
}

#[test]
fn what_could_not_be_read_is_not_missing() {
    let error = || Error::infrastructure("Timeout", "no answer");
    let own_failed = named("team", Fetched::Failed(error()), cluster(json!({})));
    let cluster_failed = named("team", own(json!({})), Fetched::Failed(error()));
    for configs in [own_failed, cluster_failed] {
        assert!(matches!(configs.resolve(Resolution::Override), Resolved::Failed(_)));
    }
}
