use proptest::prelude::*;
use serde_json::json;

use super::*;

fn is_dns_label(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.len() <= MAX_LABEL
        && edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[test]
fn g17_only_exactly_true_pauses() {
    for (key, value, want) in [
        (PAUSE_ANNOTATIONS[0], "true", true),
        (PAUSE_ANNOTATIONS[1], "true", true),
        (PAUSE_ANNOTATIONS[0], "True", false),
        (PAUSE_ANNOTATIONS[0], "1", false),
        (PAUSE_ANNOTATIONS[0], "", false),
        ("example.com/paused", "true", false),
    ] {
        let annotations = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        assert_eq!(is_paused(Some(&annotations)), want, "{key}={value}");
    }
    assert!(!is_paused(None));
}

#[test]
fn g24_names_are_those_that_existing_objects_have() {
    let long = "a".repeat(70);
    let max_18 = NameOptions { max_len: 18, ..NameOptions::default() };
    let default = NameOptions::default();
    for (parts, inputs, options, want) in [
        (&["my-service"][..], &[json!("default")][..], default, "my-service-1080a608".to_owned()),
        (&["My_Svc.v2", "temp-cache"], &[], default, "my-svc-v2-temp-cache".to_owned()),
        (
            &[&long, "download"],
            &[json!("u1")],
            default,
            format!("{}-download-93926d17", "a".repeat(45)),
        ),
        (&["", "X"], &[json!("a"), json!("b")], default, "part-x-2444e7a2".to_owned()),
        (&["aaaa-bbbb", "cccc"], &[json!("x")], max_18, "aaaa-cccc-ba2df490".to_owned()),
    ] {
        assert_eq!(derived_name(parts, inputs, options).unwrap(), want);
    }
}

#[test]
fn maps_are_hashed_in_key_order_and_lists_in_their_own() {
    let flat = flatten(&json!({"b": {"y": 1, "x": [3, 2]}, "a": null}));
    assert_eq!(flat.to_string(), r#"["a",null,"b",["x",[3,2],"y",1]]"#);
    let name = |input| derived_name(&["n"], &[input], NameOptions::default()).unwrap();
    assert_ne!(name(json!([1, 2])), name(json!([2, 1])));
}

#[test]
fn a_hash_of_no_digits_is_left_out() {
    let options = NameOptions { hash_len: 0, ..NameOptions::default() };
    assert_eq!(derived_name(&["n"], &[json!("x")], options).unwrap(), "n");
}

#[test]
fn names_that_cannot_be_made_are_errors() {
    for (parts, max_len) in [(&[][..], 63), (&["n"], 0), (&["n"], 64), (&["n", "m"], 2)] {
        let options = NameOptions { max_len, ..NameOptions::default() };
        assert!(derived_name(parts, &[], options).is_err(), "{parts:?} {max_len}");
    }
}

#[test]
fn label_values_are_lower_case_with_one_mark_per_foreign_run() {
    for (text, want) in [
        ("Meta Llama / 3.1", Some("meta_llama_3.1")),
        ("a__b", Some("a__b")),
        ("--x--", Some("x")),
        ("org/model:tag", Some("org_model_tag")),
        ("///", None),
        ("", None),
    ] {
        assert_eq!(label_value(text).ok().as_deref(), want, "{text:?}");
    }
    let cut = label_value(&format!("{}.x", "a".repeat(62))).unwrap();
    assert_eq!(cut, "a".repeat(62));
    assert_eq!(cased_label_value("Meta Llama / 3.1").as_deref(), Some("Meta_Llama_3.1"));
    assert_eq!(cased_label_value("///"), None);
}

#[test]
fn labels_that_would_meet_are_kept_apart() {
    assert_eq!(DnsLabel::new("plain-name").as_str(), "plain-name");
    assert_ne!(DnsLabel::new("a.b"), DnsLabel::new("a-b"));
    assert_ne!(DnsLabel::new(&"a".repeat(64)), DnsLabel::new(&"a".repeat(65)));
}

#[test]
fn controllers_are_named_after_their_kind() {
    assert_eq!(full_controller_name("cluster-model"), "aim-cluster-model-controller");
    assert_eq!(owner_name_label("test"), format!("{LABEL_DOMAIN}/test.name"));
}

proptest! {
    #[test]
    fn derived_names_fit_are_labels_and_do_not_change(
        parts in prop::collection::vec(".{0,80}", 1..5),
        input in ".{0,20}",
        max_len in 20_usize..=63,
    ) {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let options = NameOptions { max_len, ..NameOptions::default() };
        let name = derived_name(&parts, &[json!(input)], options).unwrap();
        prop_assert!(is_dns_label(&name) && name.len() <= max_len, "{name}");
        prop_assert_eq!(&name, &derived_name(&parts, &[json!(input)], options).unwrap());
    }

    #[test]
    fn dns_labels_are_labels(text in ".{0,100}") {
        let label = DnsLabel::new(&text);
        prop_assert!(is_dns_label(label.as_str()), "{label}");
    }

    #[test]
    fn label_values_are_accepted_by_kubernetes(text in ".{0,100}") {
        if let Ok(value) = label_value(&text) {
            prop_assert!(value.len() <= MAX_LABEL);
            prop_assert!(value.starts_with(|c: char| c.is_ascii_alphanumeric()));
            prop_assert!(value.ends_with(|c: char| c.is_ascii_alphanumeric()));
        }
    }
}
