use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    fetch::{Documents, Serves},
    kind::Scope,
};

fn config(value: Value) -> RuntimeConfig {
    serde_json::from_value(value).unwrap()
}

fn env(pairs: &[(&str, &str)]) -> Vec<EnvVar> {
    pairs
        .iter()
        .map(|(name, value)| EnvVar {
            name: (*name).into(),
            value: Some((*value).into()),
            value_from: None,
        })
        .collect()
}

fn pairs(env: &[EnvVar]) -> Vec<(&str, &str)> {
    env.iter().map(|e| (e.name.as_str(), e.value.as_deref().unwrap_or_default())).collect()
}

fn merge_args(base: &str, over: &str) -> String {
    let merged = merge_env(&env(&[("ARGS", base)]), &env(&[("ARGS", over)]), &["ARGS"]);
    merged[0].value.clone().unwrap()
}

#[test]
fn g22_env_is_merged_by_name_in_order() {
    let base = env(&[("CLUSTER", "x"), ("SHARED", "c")]);
    let over = env(&[("NAMESPACE", "y"), ("SHARED", "n")]);
    let merged = merge_env(&base, &over, &[]);
    assert_eq!(pairs(&merged), [("CLUSTER", "x"), ("SHARED", "n"), ("NAMESPACE", "y")]);
}

#[test]
fn g22_json_values_are_merged_key_by_key() {
    for (base, over, want) in [
        (
            r#"{"outer":{"inner1":"a"}}"#,
            r#"{"outer":{"inner2":"b"}}"#,
            r#"{"outer":{"inner1":"a","inner2":"b"}}"#,
        ),
        (
            r#"{"b":1,"a":{"y":1}}"#,
            r#"{ "a" : { "x" : [1, 2] } }"#,
            r#"{"a":{"x":[1,2],"y":1},"b":1}"#,
        ),
        (r#"{"a":{"x":1}}"#, r#"{"a":2}"#, r#"{"a":2}"#),
        (r#"{"a":1}"#, "not json", "not json"),
        ("not json", r#"{"a": 1}"#, r#"{"a": 1}"#),
        (r#"{"a":1}"#, "", r#"{"a":1}"#),
        ("", r#"{"a": 1}"#, r#"{"a": 1}"#),
    ] {
        assert_eq!(merge_args(base, over), want, "{base} {over}");
    }
}

#[test]
fn w17_null_as_a_json_value_is_used_as_it_is() {
    assert_eq!(merge_args(r#"{"a":1}"#, "null"), "null");
    assert_eq!(merge_args("null", r#"{"a":1}"#), r#"{"a":1}"#);
    assert_eq!(merge_args(r#"{"a":{"b":1}}"#, r#"{"a":null}"#), r#"{"a":null}"#);
}

#[test]
fn w24_numbers_and_strings_keep_their_text() {
    let over = r#"{"big":123456789012345678901234567890,"f":1.10,"s":"<a&b>"}"#;
    let want = r#"{"a":1,"big":123456789012345678901234567890,"f":1.10,"s":"<a&b>"}"#;
    assert_eq!(merge_args(r#"{"a":1}"#, over), want);
}

#[test]
fn a_value_too_deep_to_parse_is_used_as_it_is() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    assert_eq!(merge_args(r#"{"b":1}"#, &deep), deep);
}

#[test]
fn an_override_from_elsewhere_replaces_even_a_json_value() {
    let over: Vec<EnvVar> = serde_json::from_value(
        json!([{"name": "ARGS", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]),
    )
    .unwrap();
    let merged = merge_env(&env(&[("ARGS", r#"{"a":1}"#)]), &over, &["ARGS"]);
    assert_eq!(merged, over);
}

#[test]
fn g23_w22_false_zero_and_empty_override_and_references_are_whole() {
    let cluster = config(json!({
        "storage": {"pvcHeadroomPercent": 20, "defaultStorageClassName": "fast"},
        "routing": {"enabled": true, "pathTemplate": "/x",
                    "gatewayRef": {"name": "a", "namespace": "infra", "port": 80},
                    "annotations": {"k": "c", "only": "c"}},
        "model": {"autoDiscovery": true},
        "labelPropagation": {"enabled": true, "match": ["team"]},
    }));
    let namespaced = config(json!({
        "storage": {"pvcHeadroomPercent": 0, "defaultStorageClassName": ""},
        "routing": {"enabled": false, "gatewayRef": {"name": "b"}, "annotations": {"k": ""}},
        "model": {"autoDiscovery": false},
        "labelPropagation": {"enabled": false, "match": []},
    }));
    let want = json!({
        "storage": {"pvcHeadroomPercent": 0, "defaultStorageClassName": ""},
        "routing": {"enabled": false, "pathTemplate": "/x", "gatewayRef": {"name": "b"},
                    "annotations": {"k": "", "only": "c"}},
        "model": {"autoDiscovery": false},
        "labelPropagation": {"enabled": false, "match": []},
    });
    assert_eq!(serde_json::to_value(merge(cluster, namespaced)).unwrap(), want);
}

#[test]
fn what_a_namespace_leaves_open_comes_from_the_cluster() {
    let cluster = config(json!({"routing": {"enabled": true}, "env": [{"name": "A"}]}));
    let merged = merge(cluster.clone(), RuntimeConfig::default());
    assert_eq!(merged, cluster);
}

#[test]
fn deprecated_fields_fill_what_storage_leaves_open() {
    for (given, class, percent) in [
        (json!({"defaultStorageClassName": "old", "pvcHeadroomPercent": 5}), Some("old"), 5),
        (
            json!({"defaultStorageClassName": "old", "pvcHeadroomPercent": 5,
                   "storage": {"defaultStorageClassName": "new", "pvcHeadroomPercent": 7}}),
            Some("new"),
            7,
        ),
        (json!({"defaultStorageClassName": ""}), None, 10),
        (
            json!({"storage": {"defaultStorageClassName": ""}, "defaultStorageClassName": "old"}),
            None,
            10,
        ),
        (json!({}), None, 10),
    ] {
        for config in [config(given.clone()), migrate(config(given.clone()))] {
            assert_eq!(storage_class(None, Some(&config)).as_deref(), class, "{given}");
            assert_eq!(headroom_percent(Some(&config)), percent, "{given}");
        }
    }
    assert_eq!(storage_class(Some("mine"), None).as_deref(), Some("mine"));
    assert_eq!(storage_class(Some(""), None), None);
    assert_eq!(headroom_percent(None), 10);
}

#[test]
fn a_deprecated_override_still_wins_over_the_cluster() {
    let cluster = config(json!({"storage": {"pvcHeadroomPercent": 20}}));
    let namespaced = config(json!({"pvcHeadroomPercent": 5}));
    let resolved = resolve("x", Ok(Some(namespaced)), Ok(Some(cluster))).unwrap();
    assert_eq!(headroom_percent(resolved.as_ref()), 5);
}

#[test]
fn only_a_config_that_was_asked_for_has_to_exist() {
    assert_eq!(resolve("default", Ok(None), Ok(None)).unwrap(), None);
    let error = resolve("mine", Ok(None), Ok(None)).unwrap_err();
    assert_eq!(error.to_string(), "ConfigNotFound: RuntimeConfig mine not found");
    assert!(is_not_found(&error));

    let absent = || Err(Error::missing_downstream("NotFound", "Resource not found"));
    assert_eq!(resolve("default", absent(), absent()).unwrap(), None);
    let one = config(json!({"model": {}}));
    assert_eq!(resolve("mine", absent(), Ok(Some(one.clone()))).unwrap(), Some(one));
    let forbidden = Err(Error::auth("Forbidden", "no"));
    assert_eq!(resolve("mine", forbidden, Ok(None)).unwrap_err().reason, "Forbidden");
}

#[test]
fn the_settings_are_healthy_whether_or_not_there_are_any() {
    let found = RuntimeConfig::default();
    for (config, reason) in [(Some(&found), "ConfigFound"), (None, "DefaultConfigNotFound")] {
        let inspection = inspect(config);
        assert!(inspection.state().is_ready());
        assert_eq!(inspection.reason.as_deref(), Some(reason));
    }
}

#[test]
fn label_rules_follow_the_settings() {
    let on = config(json!({"labelPropagation": {"enabled": true, "match": ["team"]}}));
    let rules = label_rules(Some(&on));
    assert!(rules.enabled && rules.patterns == ["team"] && !rules.always_prefixes.is_empty());
    assert_eq!(label_rules(None), LabelRules::default());
}

#[test]
fn pull_secrets_keep_their_order_and_are_not_repeated() {
    let secrets = |names: &[&str]| -> Vec<LocalObjectReference> {
        names.iter().map(|&name| LocalObjectReference { name: name.into() }).collect()
    };
    let merged = merge_pull_secrets(&secrets(&["b", "a", "b"]), &secrets(&["c", "a", "c"]));
    assert_eq!(merged, secrets(&["b", "a", "c"]));
}

prop_compose! {
    fn any_config()(
        class in prop::option::of("[a-z]{0,3}"),
        percent in prop::option::of(0_u32..30),
        enabled in prop::option::of(any::<bool>()),
        patterns in prop::option::of(prop::collection::vec("[a-z]{1,3}", 0..3)),
        names in prop::collection::btree_set("[A-C]", 0..3),
    ) -> RuntimeConfig {
        let env: Vec<EnvVar> =
            names.into_iter().map(|name| EnvVar { name, ..EnvVar::default() }).collect();
        RuntimeConfig {
            storage: Some(Storage {
                default_storage_class_name: class,
                pvc_headroom_percent: percent,
            }),
            routing: enabled.map(|on| Routing { enabled: Some(on), ..Routing::default() }),
            env: Some(env).filter(|env| !env.is_empty()),
            label_propagation: Some(LabelPropagation { enabled, patterns }),
            ..RuntimeConfig::default()
        }
    }
}

proptest! {
    #[test]
    fn merging_twice_changes_nothing(base in any_config(), over in any_config()) {
        let once = merge(base, over.clone());
        prop_assert_eq!(merge(once.clone(), over), once.clone());
        prop_assert_eq!(merge(once.clone(), once.clone()), once);
    }
}

fn shelf(namespaced: Option<Value>, cluster: Option<Value>) -> Documents {
    let document = |metadata: Value, spec: Value| json!({ "apiVersion": "example.com/v1", "kind": "Config", "metadata": metadata, "spec": spec });
    let namespaced =
        namespaced.map(|spec| document(json!({ "name": "default", "namespace": "ns" }), spec));
    let cluster = cluster.map(|spec| document(json!({ "name": "default" }), spec));
    Documents {
        objects: namespaced.into_iter().chain(cluster).collect(),
        serves: Serves::Everything,
    }
}

fn kinds() -> Kinds {
    let kind = |scope| Kind {
        group: "example.com".into(),
        version: "v1".into(),
        kind: "Config".into(),
        plural: "configs".into(),
        scope,
    };
    Kinds { namespaced: kind(Scope::Namespaced), cluster: kind(Scope::Cluster) }
}

#[tokio::test]
async fn both_scopes_are_read_and_the_namespace_wins() {
    let shelf = shelf(
        Some(json!({ "storage": { "pvcHeadroomPercent": 5 } })),
        Some(json!({ "storage": { "pvcHeadroomPercent": 20, "defaultStorageClassName": "fast" } })),
    );
    let storage = |config: Option<RuntimeConfig>| config.and_then(|config| config.storage).unwrap();
    let merged = storage(fetch(&shelf, &kinds(), Some("ns"), None).await.unwrap());
    assert_eq!(merged.pvc_headroom_percent, Some(5));
    assert_eq!(merged.default_storage_class_name.as_deref(), Some("fast"));
    let cluster = storage(fetch(&shelf, &kinds(), None, Some("")).await.unwrap());
    assert_eq!(cluster.pvc_headroom_percent, Some(20));
}

#[tokio::test]
async fn only_a_named_configuration_must_exist() {
    let shelf = shelf(None, None);
    assert_eq!(fetch(&shelf, &kinds(), Some("ns"), None).await.unwrap(), None);
    let error = fetch(&shelf, &kinds(), Some("ns"), Some("named")).await.unwrap_err();
    assert_eq!(error.reason, "ConfigNotFound");
}

#[tokio::test]
async fn an_unreadable_configuration_is_named() {
    let shelf = shelf(Some(json!({ "env": "none" })), None);
    let error = fetch(&shelf, &kinds(), Some("ns"), None).await.unwrap_err();
    assert!(error.message.contains("Config ns/default"), "{error}");
}
