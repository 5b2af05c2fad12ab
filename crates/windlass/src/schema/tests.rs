use serde_json::json;

use super::*;

fn problem(spec: Value) -> Option<String> {
    let definition = windlass_api::crds().remove(0);
    let object = json!({ "apiVersion": "x", "kind": "y", "metadata": {}, "spec": spec });
    check(&definition, &object).err()
}

#[test]
fn what_is_wrong_is_named_by_its_path() {
    for (spec, want) in [
        (json!({ "modelRef": "m", "replica": 1 }), "unknown field spec.replica; allowed: "),
        (json!({ "modelRef": 1 }), "spec.modelRef must be a text, got 1"),
        (json!({ "modelRef": "m", "replicas": "2" }), "spec.replicas must be a whole number"),
        (json!({ "modelRef": "m", "canary": { "wait": 1 } }), "unknown field spec.canary.wait"),
        (json!({ "modelRef": "m", "env": {} }), "spec.env must be a list"),
        (json!([]), "spec must be a map of fields"),
    ] {
        let got = problem(spec.clone()).unwrap_or_default();
        assert!(got.starts_with(want), "{spec}: {got}");
    }
}

#[test]
fn a_right_object_passes() {
    assert_eq!(problem(json!({ "modelRef": "m", "healthCheck": { "interval": 5 } })), None);
    assert_eq!(problem(json!({ "modelRef": "m", "healthCheck": { "interval": "5s" } })), None);
}

#[test]
fn an_object_without_a_spec_is_refused() {
    let definition = windlass_api::crds().remove(0);
    assert!(check(&definition, &json!({ "metadata": {} })).is_err());
}

#[test]
fn values_are_checked_by_bound_length_count_and_pattern() {
    let number = |extra: Value| {
        let mut schema = json!({ "type": "number", "minimum": 1, "maximum": 5 });
        schema.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        schema
    };
    let plain = || number(json!({}));
    let strict = || number(json!({ "exclusiveMinimum": true, "exclusiveMaximum": true }));
    let text = || json!({ "type": "string", "minLength": 2, "maxLength": 3 });
    let list = || json!({ "type": "array", "minItems": 1, "maxItems": 2 });
    let word = || json!({ "type": "string", "pattern": "^[a-z]+$" });
    for (schema, value, want) in [
        (plain(), json!(1), None),
        (plain(), json!(5), None),
        (plain(), json!(0.5), Some("x must be at least 1, got 0.5")),
        (plain(), json!(6), Some("x must be at most 5, got 6")),
        (strict(), json!(2), None),
        (strict(), json!(1), Some("x must be more than 1, got 1")),
        (strict(), json!(5), Some("x must be less than 5, got 5")),
        (text(), json!("äöü"), None),
        (text(), json!("a"), Some("x must have at least 2 characters, got 1")),
        (text(), json!("abcd"), Some("x must have at most 3 characters, got 4")),
        (list(), json!([1]), None),
        (list(), json!([]), Some("x must have at least 1 entries, got 0")),
        (list(), json!([1, 2, 3]), Some("x must have at most 2 entries, got 3")),
        (word(), json!("abc"), None),
        (word(), json!("a-b"), Some("x must match ^[a-z]+$, got \"a-b\"")),
        // Not an expression that we understand.
        (json!({ "type": "string", "pattern": "(?=a)" }), json!("b"), None),
    ] {
        let parsed: JSONSchemaProps = serde_json::from_value(schema.clone()).unwrap();
        let got = walk(&parsed, &value, "x").err();
        assert_eq!(got.as_deref(), want, "{schema} {value}");
    }
}

#[test]
fn the_limits_of_our_own_schema_hold() {
    for (spec, want) in [
        (json!({ "modelRef": "m", "image": "" }), "spec.image must have at least 1 characters"),
        (json!({ "modelRef": "m", "image": "a b" }), "spec.image must match"),
        (json!({ "modelRef": "m".repeat(513) }), "spec.modelRef must have at most 512 characters"),
        (
            json!({ "modelRef": "m", "cache": { "prefetch": { "quant": "-q" } } }),
            "spec.cache.prefetch.quant must match",
        ),
        (
            json!({ "modelRef": "m", "routing": { "hostnames": vec!["h"; 17] } }),
            "spec.routing.hostnames must have at most 16 entries",
        ),
        (json!({ "modelRef": "m", "port": 0 }), "spec.port must be at least 1"),
    ] {
        let got = problem(spec.clone()).unwrap_or_default();
        assert!(got.starts_with(want), "{spec}: {got}");
    }
}

#[test]
fn defaults_are_put_in_where_their_parent_is() {
    let definition =
        windlass_api::crds().into_iter().find(|crd| crd.spec.names.kind == "AIMService").unwrap();
    let mut object = json!({ "spec": { "aimImageName": "a", "routing": {} } });
    fill(&definition, &mut object);
    assert_eq!(object["spec"]["replicas"], 1);
    assert_eq!(object["spec"]["routing"]["enabled"], false);
    assert_eq!(object["spec"].get("overrides"), None);
    assert_eq!(object.get("status"), None);
}
