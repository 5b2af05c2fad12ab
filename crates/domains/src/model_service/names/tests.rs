use proptest::prelude::*;

use super::*;
use crate::model_service::fixture::{base, named};

#[test]
fn s02_names_become_labels() {
    for (text, want) in [
        ("qwen3-0.6b-fp8-dynamic", "qwen3-0-6b-fp8-dynamic"),
        ("MyModel_1.0", "mymodel-1-0"),
        ("0.6b", "m-0-6b"),
        ("", "modelservice"),
        ("...", "modelservice"),
        ("a--b..c", "a-b-c"),
        ("-a-", "a"),
        ("ä/b", "b"),
    ] {
        assert_eq!(sanitise(text), want, "{text:?}");
    }
}

#[test]
fn s02_dots_stay_where_they_may() {
    let names = Names::of(&named("qwen3-0.6b-fp8-dynamic", "ml"), "test");
    assert_eq!(names.epp(), "qwen3-0-6b-fp8-dynamic-epp");
    assert_eq!(names.name(), "qwen3-0.6b-fp8-dynamic");
    assert_eq!(names.role(Role::Decode), "qwen3-0.6b-fp8-dynamic-decode");
    assert_eq!(names.config_map(), "qwen3-0-6b-fp8-dynamic-epp-config");
    let rbac = Names::of(&named("my-model", "my-namespace"), "test").cluster_rbac();
    assert_eq!(rbac, "my-namespace-my-model-epp");
}

#[test]
fn selectors_are_what_live_deployments_have() {
    let names = Names::of(&base(), "test");
    let pairs = |labels: BTreeMap<String, String>| -> Vec<String> {
        labels.into_iter().map(|(key, value)| format!("{key}={value}")).collect()
    };
    let common = [
        "app.kubernetes.io/managed-by=model-operator",
        "app.kubernetes.io/name=qwen3-32b",
        "app.kubernetes.io/part-of=otterscale-system",
        "llm-d.ai/inferenceServing=true",
        "llm-d.ai/model=qwen3-32b",
    ];
    assert_eq!(pairs(names.pool_selector(None)), common);
    let mut decode = common.map(str::to_owned).to_vec();
    decode.insert(0, "app.kubernetes.io/component=model-decode".to_owned());
    decode.push("llm-d.ai/role=decode".to_owned());
    assert_eq!(pairs(names.role_selector(Role::Decode)), decode);
    assert_eq!(
        pairs(names.epp_pod_labels()),
        [
            "app.kubernetes.io/component=epp",
            "app.kubernetes.io/managed-by=model-operator",
            "app.kubernetes.io/name=qwen3-32b-epp",
            "app.kubernetes.io/part-of=otterscale-system",
            "inferencepool=qwen3-32b-epp",
        ]
    );
}

#[test]
fn an_empty_version_is_left_out() {
    let labels = Names::of(&base(), "").traffic_metadata().labels.unwrap();
    assert!(!labels.contains_key(VERSION_LABEL));
    assert_eq!(Names::of(&base(), "v1").traffic_metadata().labels.unwrap()[VERSION_LABEL], "v1");
}

#[test]
fn m05_cluster_objects_are_told_apart_by_their_labels() {
    let first = Names::of(&named("c", "a-b"), "test");
    let second = Names::of(&named("b-c", "a"), "test");
    assert_eq!(first.cluster_rbac(), second.cluster_rbac());
    let labels = first.cluster_metadata().labels.unwrap();
    assert!(first.is_of_this_service(&labels));
    assert!(!second.is_of_this_service(&labels));
    // The operator before us wrote no name of a service.
    let mut older = labels;
    older.remove(NAME_LABEL);
    older.remove(NAMESPACE_LABEL);
    assert!(first.is_of_this_service(&older));
    assert!(!second.is_of_this_service(&older));
    assert!(!first.is_of_this_service(&BTreeMap::new()));
}

/// What the API server and the rules let through as a name.
fn valid_name() -> impl Strategy<Value = String> {
    "[a-z0-9]([a-z0-9.-]{0,55}[a-z0-9])?"
}

proptest! {
    #[test]
    fn the_picker_of_any_valid_name_is_a_valid_service(name in valid_name()) {
        let names = Names::of(&named(&name, "ml"), "test");
        let epp = names.epp();
        prop_assert!(epp.len() <= MAX_SERVICE_NAME + 2, "{epp}");
        prop_assert!(epp.starts_with(|c: char| c.is_ascii_lowercase()), "{epp}");
        prop_assert!(epp.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
        prop_assert!(!epp.contains("--"));
    }

    #[test]
    fn cluster_objects_of_two_services_are_never_taken_for_each_other(
        first in (valid_name(), "[a-z]([a-z-]{0,6}[a-z])?"),
        second in (valid_name(), "[a-z]([a-z-]{0,6}[a-z])?"),
    ) {
        prop_assume!(first != second);
        let a = Names::of(&named(&first.0, &first.1), "test");
        let b = Names::of(&named(&second.0, &second.1), "test");
        prop_assert!(!a.is_of_this_service(&b.cluster_metadata().labels.unwrap()));
    }
}
