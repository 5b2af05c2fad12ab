//! What the API server itself refuses.

use serde_json::{Value, json};
use windlass_tests::Need;

use crate::zis;

fn yaml(name: &str, spec: Value) -> String {
    let mut object = serde_json::to_value(zis::manifest(name, json!({}))).unwrap();
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn s10_and_k15_the_api_server_refuses_what_the_rules_forbid_in_their_words() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("rules").await;
    let health = |field: &str, value: Value| {
        let mut health = json!({ "path": "/healthz", "interval": "10s", "timeout": "5s" });
        health[field] = value;
        json!({ "healthCheck": health })
    };
    let canary =
        |model: &str, weight: i32| json!({ "canary": { "modelRef": model, "weight": weight } });
    for (spec, want) in [
        (json!({ "modelRef": "" }), "modelRef is required"),
        (json!({ "replicas": 0 }), "replicas must be >= 1"),
        (json!({ "replicas": -1 }), "replicas must be >= 1"),
        (
            json!({ "minReplicas": 10, "maxReplicas": 5 }),
            "minReplicas (10) must be <= maxReplicas (5)",
        ),
        (canary("", 5), "canary modelRef is required"),
        (canary("m", 101), "canary weight must be 0-100, got 101"),
        (canary("m", -1), "canary weight must be 0-100, got -1"),
        (health("path", json!("")), "healthCheck path is required"),
        (health("interval", json!(0)), "healthCheck interval must be > 0"),
        (health("interval", json!("0s")), "healthCheck interval must be > 0"),
        (health("timeout", json!("-5s")), "healthCheck timeout must be > 0"),
        (json!({ "modelRef": "--port" }), "modelRef must match ^[A-Za-z0-9][A-Za-z0-9._/-]*$"),
        (json!({ "modelRef": "a/../x" }), "modelRef must not contain .."),
        (
            json!({ "resources": { "cpu": "lots" } }),
            "resources cpu must be a positive quantity or empty",
        ),
    ] {
        let object = yaml("a", spec.clone());
        let answer = cluster.try_kubectl(&["-n", &space.name, "apply", "-f", "-"], &object);
        let error = answer.expect_err(&format!("{spec} is refused"));
        assert!(error.contains(want), "{spec}: {error}");
    }
    let long = "a".repeat(56);
    let answer =
        cluster.try_kubectl(&["-n", &space.name, "apply", "-f", "-"], &yaml(&long, json!({})));
    let error = answer.expect_err("a name of 56 characters is refused");
    let want = "metadata.name must be a DNS-1035 label of at most 55 characters";
    assert!(error.contains(want), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s11_and_k03_what_the_rules_allow_is_accepted() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("allowed").await;
    for (name, spec) in [
        ("half", json!({ "canary": { "modelRef": "m", "weight": 50 } })),
        ("scaled", json!({ "minReplicas": 2, "maxReplicas": 10 })),
        ("min-only", json!({ "minReplicas": 3, "maxReplicas": 0 })),
        (
            "nanos",
            json!({ "healthCheck": { "path": "/h", "interval": 30_000_000_000_i64, "timeout": "500ms" } }),
        ),
        (
            "fraction",
            json!({ "healthCheck": { "path": "/h", "interval": "1.5s", "timeout": "1m30s" } }),
        ),
        (&"b".repeat(55), json!({})),
    ] {
        cluster.kubectl(&["-n", &space.name, "apply", "-f", "-"], &yaml(name, spec));
    }
    // Only what is required: everything else has a default.
    let minimal = "{apiVersion: serving.zerfoo.com/v1alpha1, kind: ZerfooInferenceService, \
                   metadata: {name: minimal}, spec: {modelRef: org/model}}";
    cluster.kubectl(&["-n", &space.name, "apply", "-f", "-"], minimal);
    let object = serde_json::to_value(zis::get(&space, "minimal").await).unwrap();
    assert_eq!(object["spec"]["replicas"], 1);
    assert_eq!(
        object["spec"]["healthCheck"],
        json!({ "path": "/readyz", "interval": "10s", "timeout": "5s" })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_the_columns_and_knows_the_short_name() {
    let Some(cluster) = crate::shared(&[Need::Kubectl]).await else { return };
    let space = cluster.space("columns").await;
    zis::create(&space, "a", json!({})).await;
    let table = cluster.kubectl(&["-n", &space.name, "get", "zis"], "");
    let head: Vec<&str> = table
        .lines()
        .next()
        .unwrap()
        .split("  ")
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .collect();
    assert_eq!(head, ["NAME", "MODEL", "READY", "REPLICAS", "CANARY WEIGHT", "AGE"]);
    let help = cluster.kubectl(&["explain", "zis.spec.canary.weight"], "");
    assert!(help.contains("FIELD: weight <integer>"), "{help}");
}
