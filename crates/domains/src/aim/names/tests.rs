use proptest::prelude::*;

use super::*;

const IMAGE: &str = "registry.example.com/aim/tiny-lm:1.4.0";

#[test]
fn g12_overrides_give_the_hash_and_the_derived_name() {
    let base = "tiny-lm-latency";
    for (metric, precision, gpu, want) in [
        (None, None, None, "44136fa3"),
        (Some("throughput"), None, None, "99ad0cdb"),
        (None, Some("fp8"), None, "481268ea"),
        (Some("latency"), Some("bf16"), None, "92d21d06"),
        (Some("throughput"), Some("fp16"), Some((2, "MI325X")), "74a7d070"),
        (None, None, Some((4, "MI300X & co")), "bbc953c1"),
    ] {
        let hash = override_hash(metric, precision, gpu);
        assert_eq!(hash, want, "{metric:?} {precision:?} {gpu:?}");
        assert_eq!(derived_template(base, &hash), format!("{base}-ovr-{want}"));
    }
}

#[test]
fn g12_a_long_base_gives_way_to_the_hash() {
    let stem = "a".repeat(49);
    let name = derived_template(&format!("{stem}-bcdef"), "99ad0cdb");
    assert_eq!(name, format!("{stem}-ovr-99ad0cdb"));
    assert_eq!(name.len(), 62);
}

#[test]
fn derived_names_of_odd_bases() {
    for (base, want) in [
        ("".to_owned(), "".to_owned()),
        ("a".repeat(50), format!("{}-ovr-99ad0cdb", "a".repeat(50))),
        ("-".repeat(60), format!("{}-ovr-99ad0cdb", "-".repeat(50))),
        (format!("{}.bcdef", "a".repeat(49)), format!("{}-ovr-99ad0cdb", "a".repeat(49))),
        (format!("{}üü", "a".repeat(49)), format!("{}-ovr-99ad0cdb", "a".repeat(49))),
    ] {
        assert_eq!(derived_template(&base, "99ad0cdb"), want, "{base}");
    }
}

#[test]
fn strings_are_escaped_as_go_does() {
    for (text, want) in [
        ("plain", r#""plain""#),
        ("<a>&", r#""\u003ca\u003e\u0026""#),
        ("\u{2028}\u{2029}", r#""\u2028\u2029""#),
        ("\"\\/\n\r\t", r#""\"\\/\n\r\t""#),
        ("\u{1}\u{1f}\u{7f}ü", "\"\\u0001\\u001f\u{7f}ü\""),
    ] {
        assert_eq!(go_string(text), want, "{text:?}");
    }
}

#[test]
fn g13_a_job_is_named_after_its_template_and_image() {
    let name = discovery_job("tiny-lm-latency", "tiny-lm", IMAGE);
    assert_eq!(name, "discover-tiny-lm-latency-4b2c0414");
}

#[test]
fn w22_long_template_names_do_not_meet() {
    let long = "tiny-lm-production-throughput-profile-with-a-very-long-name-x1";
    let name = discovery_job(long, "tiny-lm", IMAGE);
    let (stem, hash) = name.rsplit_once('-').unwrap();
    // No dash is left where the name was cut.
    assert_eq!(stem, "discover-tiny-lm-production-throughput-profile-with-a");
    assert_ne!(hash, "4b2c0414");
    let other = discovery_job(&long.replace("x1", "x2"), "tiny-lm", IMAGE);
    assert_ne!(name, other);
    // The longest name that is not cut keeps the old hash.
    let fits = "a".repeat(45);
    assert_eq!(discovery_job(&fits, "tiny-lm", IMAGE), format!("discover-{fits}-4b2c0414"));
    let dotted = discovery_job(&format!("{}.b", "a".repeat(44)), "tiny-lm", IMAGE);
    assert!(dotted.starts_with(&format!("discover-{}-", "a".repeat(44))), "{dotted}");
}

#[test]
fn w22_template_labels_fit() {
    assert_eq!(sanitize("tiny-lm.latency"), "tiny-lm.latency");
    let long = format!("{}.{}", "a".repeat(62), "b".repeat(100));
    assert_eq!(sanitize(&long), "a".repeat(62));
}

#[test]
fn g20_e_label_values_are_sanitized() {
    for (text, want) in [
        ("Acme/Tiny LM:1+2", "Acme_Tiny_LM_1_2"),
        ("///", "unknown"),
        ("", "unknown"),
        ("acme/tiny-lm-7b-fp8", "acme_tiny-lm-7b-fp8"),
        ("-a__b-", "a__b"),
        ("ü ü", "unknown"),
    ] {
        assert_eq!(sanitize(text), want, "{text:?}");
    }
}

#[test]
fn words_that_others_select_by() {
    assert_eq!(
        ["aim-service", "aim-namespace-template", "aim-cluster-template"]
            .map(|controller| format!("{controller}-controller")),
        [SERVICE_FIELD_MANAGER, NAMESPACE_TEMPLATE_FIELD_MANAGER, CLUSTER_TEMPLATE_FIELD_MANAGER]
    );
    let labels = [
        (MANAGER, "aim-controller"),
        (DISCOVERY, "aim-discovery"),
        (DISCOVERY_COMPONENT, "discovery-job"),
        (RUNTIME, "aim-runtime"),
        (RUNTIME_COMPONENT, "serving-runtime"),
        (SERVICE, "aim-service"),
        (SERVICE_COMPONENT, "inference-service"),
        (TEMPLATE_LABEL, "aim.silogen.ai/template"),
        (DERIVED_LABEL, "aim.silogen.ai/derived-template"),
        (MODEL_ID_LABEL, "aim.silogen.ai/model-id"),
        (IMAGE_LABEL, "aim.silogen.ai/aim-image"),
        (METRIC_LABEL, "aim.silogen.ai/template.metric"),
        (PRECISION_LABEL, "aim.silogen.ai/template.precision"),
        (JOB_NAME_LABEL, "job-name"),
    ];
    for (ours, theirs) in labels {
        assert_eq!(ours, theirs);
    }
}

proptest! {
    #[test]
    fn names_of_any_valid_template_are_valid(name in "[a-z0-9]([a-z0-9.-]{0,200}[a-z0-9])?") {
        let part_ends_well = |part: &str| !part.ends_with('-') && !part.ends_with('.');
        let job = discovery_job(&name, "tiny-lm", IMAGE);
        prop_assert!(job.len() <= MAX_LABEL, "{job}");
        prop_assert!(part_ends_well(job.rsplit_once('-').unwrap().0), "{job}");
        let derived = derived_template(&name, "99ad0cdb");
        prop_assert!(derived.len() <= MAX_LABEL, "{derived}");
        prop_assert!(part_ends_well(derived.strip_suffix("-ovr-99ad0cdb").unwrap()), "{derived}");
    }

    #[test]
    fn any_text_gives_a_label_value(text in any::<String>()) {
        let value = sanitize(&text);
        prop_assert!((1..=MAX_LABEL).contains(&value.len()), "{value}");
        let inner = value.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        let first = value.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        let last = value.as_bytes().last().is_some_and(u8::is_ascii_alphanumeric);
        prop_assert!(inner && first && last, "{value}");
        prop_assert_eq!(sanitize(&value), value);
    }
}
