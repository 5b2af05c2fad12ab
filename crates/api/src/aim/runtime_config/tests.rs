use serde_json::json;

use super::*;
use crate::aim::tests::{demands, field};

#[test]
fn routing_has_no_default_and_only_the_namespaced_kind_names_account_and_secrets() {
    for (crd, want) in [
        (cluster_crd(), &["defaultStorageClassName", "routing"][..]),
        (crd(), &["defaultStorageClassName", "imagePullSecrets", "routing", "serviceAccountName"]),
    ] {
        let spec = field(&crd, "/spec");
        let members: Vec<_> = spec["properties"].as_object().unwrap().keys().collect();
        assert_eq!(members, want);
        assert_eq!(demands(&crd, "/spec/routing/enabled"), json!({ "type": "boolean" }));
        assert_eq!(demands(&crd, "/spec/routing/routeTemplate"), json!({ "type": "string" }));
    }
}

#[test]
fn both_kinds_are_written_as_they_were_read() {
    let mut config = json!({
        "apiVersion": "aim.silogen.ai/v1alpha1",
        "kind": "AIMClusterRuntimeConfig",
        "metadata": { "name": "default" },
        "spec": {
            "defaultStorageClassName": "fast",
            "routing": { "enabled": false, "gatewayRef": { "name": "edge" }, "routeTemplate": "/x" },
        },
        "status": { "observedGeneration": 1 },
    });
    let cluster: AimClusterRuntimeConfig = serde_json::from_value(config.clone()).unwrap();
    assert_eq!(serde_json::to_value(&cluster).unwrap(), config);
    config["kind"] = "AIMRuntimeConfig".into();
    config["spec"]["serviceAccountName"] = "runner".into();
    config["spec"]["imagePullSecrets"] = json!([{ "name": "s1" }]);
    let namespaced: AimRuntimeConfig = serde_json::from_value(config.clone()).unwrap();
    assert_eq!(serde_json::to_value(&namespaced).unwrap(), config);
    assert_eq!(namespaced.spec.common, cluster.spec.common);
}

#[test]
fn unset_differs_from_false_and_a_config_without_spec_is_an_empty_one() {
    for (routing, want) in [
        (json!({}), None),
        (json!({ "enabled": false }), Some(false)),
        (json!({ "enabled": true }), Some(true)),
    ] {
        let read: Routing = serde_json::from_value(routing).unwrap();
        assert_eq!(read.enabled, want);
    }
    let bare = json!({ "metadata": {} });
    assert_eq!(
        serde_json::from_value::<AimRuntimeConfig>(bare.clone()).unwrap(),
        AimRuntimeConfig::default()
    );
    assert_eq!(
        serde_json::from_value::<AimClusterRuntimeConfig>(bare).unwrap(),
        AimClusterRuntimeConfig::default()
    );
}
