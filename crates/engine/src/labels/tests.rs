use serde_json::json;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn rules(enabled: bool, patterns: &[&str]) -> LabelRules {
    let patterns = patterns.iter().map(|&pattern| pattern.into()).collect();
    LabelRules { enabled, patterns, ..LabelRules::default() }
}

fn job(labels: Value) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "labels": labels},
        "spec": {"template": {"spec": {}}},
    })
}

fn test_controller(owner: &str) -> ControllerLabels {
    ControllerLabels {
        managed_by: "test-controller".into(),
        name_key: "example.com/test.name".into(),
        owner_name: owner.into(),
    }
}

#[test]
fn g21_jobs_pass_inherited_labels_and_the_owners_name_to_their_pods() {
    let parent = labels(&[("team", "alpha"), ("env", "prod")]);
    let mut child = job(json!({"x": "y"}));
    propagate(&parent, &mut child, &rules(true, &["team"]));
    add_controller_labels(&mut child, &test_controller("owner"));
    assert_eq!(
        child["metadata"]["labels"],
        json!({"x": "y", "team": "alpha", MANAGED_BY: "test-controller",
               "example.com/test.name": "owner"})
    );
    assert_eq!(
        child["spec"]["template"]["metadata"]["labels"],
        json!({"team": "alpha", "example.com/test.name": "owner"})
    );
}

#[test]
fn g21_what_a_child_already_has_is_kept() {
    let mut child = job(json!({"team": "beta", MANAGED_BY: "someone"}));
    propagate(&labels(&[("team", "alpha")]), &mut child, &rules(true, &["team"]));
    add_controller_labels(&mut child, &test_controller("owner"));
    assert_eq!(child["metadata"]["labels"]["team"], "beta");
    assert_eq!(child["metadata"]["labels"][MANAGED_BY], "someone");
    // Not copied to the Job, so not to its pods either.
    assert_eq!(child["spec"]["template"]["metadata"]["labels"].get("team"), None);
}

#[test]
fn g21_malformed_patterns_are_skipped_and_without_patterns_only_system_labels_travel() {
    let system = format!("{LABEL_DOMAIN}/origin");
    let parent = labels(&[("team-1", "alpha"), (&system, "manual")]);
    for (rules, want) in [
        (rules(true, &["[bad", "team-*"]), json!({"team-1": "alpha", &system: "manual"})),
        (rules(true, &[]), json!({&system: "manual"})),
        (rules(false, &["team-*"]), json!({&system: "manual"})),
        (LabelRules::default(), json!({&system: "manual"})),
    ] {
        let mut child = json!({"kind": "Service", "metadata": {"name": "s"}});
        propagate(&parent, &mut child, &rules);
        assert_eq!(child["metadata"]["labels"], want, "{rules:?}");
    }
}

#[test]
fn nothing_to_add_leaves_the_object_as_it_is() {
    let bare = json!({"kind": "Service"});
    let mut child = bare.clone();
    propagate(&labels(&[("team", "alpha")]), &mut child, &LabelRules::default());
    let none = ControllerLabels {
        managed_by: String::new(),
        name_key: String::new(),
        owner_name: String::new(),
    };
    add_controller_labels(&mut child, &none);
    assert_eq!(child, bare);
}

#[test]
fn w24_a_long_owner_name_is_derived_and_kept_in_full_in_an_annotation() {
    let long = "a".repeat(80);
    let mut child = json!({"kind": "Service", "metadata": {"name": "s"}});
    add_controller_labels(&mut child, &test_controller(&long));
    let value = child["metadata"]["labels"]["example.com/test.name"].as_str().unwrap();
    assert_eq!(value, owner_label(&long));
    assert!(value.len() <= MAX_LABEL);
    assert_eq!(child["metadata"]["annotations"]["example.com/test.name"], long);
    assert_ne!(owner_label(&long), owner_label(&"a".repeat(81)));
}

#[test]
fn a_name_that_is_a_label_value_stands_for_itself() {
    for name in ["owner", "v1.2-owner", &"a".repeat(63)] {
        assert_eq!(owner_label(name), name);
    }
}

#[test]
fn patterns_match_whole_keys_as_paths() {
    for (pattern, key, want) in [
        ("*", "team", true),
        ("*", "org.my/team", false),
        ("org.my/*", "org.my/team", true),
        ("*/*", "org.my/team", true),
        ("te?m", "team", true),
        ("org?my", "org/my", false),
        ("team", "team-1", false),
        ("team-[0-9]", "team-7", true),
        ("team-[^0-9]", "team-7", false),
        ("team-[^0-9]", "team-x", true),
        ("a[/]b", "a/b", true),
        ("a\\*b", "a*b", true),
        ("a\\*b", "axb", false),
        ("*-*-x", "a-b-c-x", true),
        ("a*b*c", "aXbYbZc", true),
        ("[a\\]]", "]", true),
        ("a]", "a]", true),
        ("", "", true),
        ("", "a", false),
        ("**", "abc", true),
    ] {
        let matched = Pattern::parse(pattern).unwrap().matches(key);
        assert_eq!(matched, want, "{pattern} {key}");
    }
    for malformed in ["[", "[bad", "[]", "[]a]", "[-x]", "[x-]", "[^]", "a\\", "[a\\", "[a-"] {
        assert_eq!(Pattern::parse(malformed), None, "{malformed}");
    }
}

#[test]
fn children_are_selected_by_controller_and_component() {
    assert_eq!(selector("c", &[]), "app.kubernetes.io/managed-by=c");
    let want = "app.kubernetes.io/managed-by=c,app.kubernetes.io/component in (a,b)";
    assert_eq!(selector("c", &["a", "b"]), want);
}
