//! Small functions, case by case.

use serde_json::{Value, json};

use super::{create, printed_causes, read};
use crate::builtin::{
    Context, Error, RESOURCES, default, on_create, quantity::Quantity, resource, time, validate,
};

#[test]
fn quantities_take_their_canonical_form() {
    for (given, want) in [
        ("1024Mi", "1Gi"),
        ("1000m", "1"),
        ("1", "1"),
        ("0", "0"),
        ("0Gi", "0"),
        ("-0", "0"),
        ("1.5Gi", "1536Mi"),
        ("0.5", "500m"),
        ("0.5Ki", "512"),
        ("1Ki", "1Ki"),
        ("1023", "1023"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("1.5e3", "1500"),
        ("12e-1", "1200e-3"),
        ("100000000", "100M"),
        ("1E", "1E"),
        ("0.0000000001", "1n"),
        ("-1.5", "-1500m"),
        ("+5", "5"),
        (".5", "500m"),
        ("5.", "5"),
        ("1000Ki", "1000Ki"),
        ("1.1Ki", "1126400m"),
        ("9999999999999999999999", "9223372036854775807"),
        ("9999999999999999999999999999999999999999E", "9223372036854775807"),
        ("1e-400", "1e-9"),
    ] {
        let quantity = Quantity::parse(given).unwrap_or_else(|error| panic!("{given}: {error}"));
        assert_eq!(quantity.to_string(), want, "{given}");
    }
    for wrong in ["", "abc", "1.1.1", "1Zi", "1 Gi", "1e", "Gi", "1kk", "--1", "1ee3"] {
        assert!(Quantity::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn times_are_in_utc() {
    for (given, want) in [
        ("2026-01-01T00:00:00Z", Some("2026-01-01T00:00:00Z")),
        ("2026-01-01T01:00:00+01:00", Some("2026-01-01T00:00:00Z")),
        ("2026-01-01T00:00:00.999Z", Some("2026-01-01T00:00:00Z")),
        ("2026-01-01 00:00:00Z", None),
        ("2026-01-01T00:00:00", None),
        ("2026-13-01T00:00:00Z", None),
        ("x", None),
        ("", None),
        ("2026-01-01T00:00:0ö", None),
    ] {
        assert_eq!(time::seconds(given).ok().as_deref(), want, "{given}");
    }
    for (given, want) in [
        ("2026-01-01T00:00:00.000001Z", Some("2026-01-01T00:00:00.000001Z")),
        ("2026-01-01T00:00:00Z", None),
        ("2026-01-01T00:00:00.1Z", None),
        ("2026-01-01T00:00:00.0000001Z", None),
    ] {
        assert_eq!(time::micros(given).ok().as_deref(), want, "{given}");
    }
}

#[test]
fn unknown_fields_are_named_and_dropped() {
    let pods = resource("", "v1", "pods").expect("pods are served");
    let body = json!({
        "metadata": { "name": "p", "foo": 1 },
        "spec": { "containers": [{ "name": "c", "bar": {}, "image": "i" }], "baz": null },
    });
    let decoded = read(pods, body).expect("it can be read");
    assert_eq!(decoded.unknown, ["metadata.foo", "spec.baz", "spec.containers[0].bar"]);
    let container = &decoded.object["spec"]["containers"][0];
    assert_eq!(container, &json!({ "name": "c", "image": "i", "resources": {} }));
}

#[test]
fn pods_need_their_account() {
    let pods = resource("", "v1", "pods").expect("pods are served");
    let mut pod = json!({
        "metadata": { "namespace": "a", "name": "p" }, "spec": { "serviceAccountName": "nosa" },
    });
    let error = on_create(pods, &mut pod, &Context::default()).expect_err("there is no account");
    assert_eq!(error, Error::NoAccount { namespace: "a".into(), name: "nosa".into() });
    assert_eq!(
        error.to_string(),
        "error looking up service account a/nosa: serviceaccount \"nosa\" not found"
    );
}

#[test]
fn volumes_without_effect_are_refused() {
    let pods = resource("", "v1", "pods").expect("pods are served");
    let pod = json!({ "metadata": { "name": "x" }, "spec": {
        "containers": [{ "name": "c", "image": "i" }],
        "volumes": [{ "name": "v", "nfs": { "server": "s", "path": "/" } }],
    } });
    let object = create(pods, &pod, &Value::Null);
    let causes = printed_causes(&validate(pods, &object, None));
    let want = "FieldValueForbidden spec.volumes[0].nfs: Forbidden: not supported on a local node";
    assert_eq!(causes.into_iter().collect::<Vec<_>>(), [want]);
}

#[test]
fn kinds_without_effect_say_so() {
    let warned: Vec<_> = RESOURCES.iter().filter_map(|resource| resource.warning()).collect();
    assert_eq!(
        warned,
        [
            "NetworkPolicy is stored but has no effect on a local node",
            "PodDisruptionBudget is stored but has no effect on a local node",
            "PriorityClass is stored but has no effect on a local node",
        ]
    );
}

#[test]
fn every_kind_is_in_the_table_of_types() {
    for resource in RESOURCES.iter() {
        let version = resource.api_version();
        let typed = crate::types::builtin().kind(&version, &resource.kind);
        assert!(typed.is_some(), "{version} {}", resource.kind);
    }
}

#[test]
fn defaulting_twice_changes_nothing() {
    for case in super::cases(include_str!("accepted.jsonl")) {
        let resource = super::resource_of(&case);
        let mut object = case["answer"].clone();
        default(resource, &mut object);
        assert_eq!(object, case["answer"]);
    }
}

#[test]
fn empty_labels_of_a_template_are_told_from_none() {
    let deployments = resource("apps", "v1", "deployments").expect("deployments are served");
    let words = |labels: Value, selector: Value| {
        let template = json!({ "metadata": { "labels": labels }, "spec": {
            "containers": [{ "name": "c", "image": "i" }],
        } });
        let spec = json!({ "selector": selector, "template": template });
        let given = json!({ "metadata": { "name": "x" }, "spec": spec });
        let object = create(deployments, &given, &Value::Null);
        let template = &object["spec"]["template"]["metadata"];
        (validate(deployments, &object, None), template.get("labels").cloned())
    };
    let app = json!({ "matchLabels": { "app": "a" } });
    for (labels, shown) in [(json!({}), "{}"), (Value::Null, "null")] {
        let (causes, _) = words(labels, app.clone());
        let want = format!("Invalid value: {shown}: `selector` does not match template `labels`");
        assert_eq!(causes[0].message, want);
    }
    let absent = json!({ "matchExpressions": [{ "key": "a", "operator": "DoesNotExist" }] });
    assert_eq!(words(json!({}), absent), (Vec::new(), None));
}
