//! What kube-apiserver 1.36 answers to the same selectors.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Fields, Labels, Selectable};

fn labels(text: &str) -> String {
    match Labels::parse(text) {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn label_selectors_are_refused_in_the_known_words() {
    const OPERATORS: &str = "expected: in, notin, =, ==, !=, gt, lt";
    for (selector, want) in [
        ("a,,b", "found ',', expected: identifier after ','".to_owned()),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'".to_owned()),
        ("a in b", "unable to parse requirement: found 'b' expected: '('".to_owned()),
        ("a=b=c", "found '=', expected: ',' or 'end of string'".to_owned()),
        ("=b", "found '=', expected: !, identifier, or 'end of string'".to_owned()),
        ("a==", "ok".to_owned()),
        ("a in ()", "ok".to_owned()),
        ("a in (x,,y)", "ok".to_owned()),
        ("in in (in)", "ok".to_owned()),
        ("", "ok".to_owned()),
        ("A b", format!("unable to parse requirement: found 'b', {OPERATORS}")),
        ("a!", format!("unable to parse requirement: found '!', {OPERATORS}")),
        ("a notin (x,y),", "found '', expected: identifier after ','".to_owned()),
        ("!", "unable to parse requirement: found '', expected: identifier".to_owned()),
        ("!a=b", "found '=', expected: ',' or 'end of string'".to_owned()),
        ("a=(b)", "unable to parse requirement: found '(', expected: identifier".to_owned()),
        (
            "a>1.5",
            "unable to parse requirement: values[0]: Invalid value: \"1.5\": for 'Gt', 'Lt' operators, the value must be an integer".to_owned(),
        ),
    ] {
        assert_eq!(labels(selector), want, "{selector}");
    }
    assert!(labels("a/b/c=1").starts_with(
        "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key must consist"
    ));
    assert!(labels("x=_").starts_with(
        "unable to parse requirement: values[0][x]: Invalid value: \"_\": a valid label must be an empty string"
    ));
}

#[test]
fn labels_select() {
    let object = json!({"app": "web", "n": "5", "e": ""});
    for (selector, want) in [
        ("app", true),
        ("!app", false),
        ("app=web", true),
        ("app==db", false),
        ("app!=db", true),
        ("gone!=db", true),
        ("app in (db, web)", true),
        ("app notin (db,web)", false),
        ("gone notin (web)", true),
        ("n>4,n<6", true),
        ("n>5", false),
        ("app>1", false),
        ("e=", true),
        ("gone=", false),
        ("app=web,gone", false),
    ] {
        let selector = (selector, Labels::parse(selector).unwrap());
        assert_eq!(selector.1.matches(object.as_object()), want, "{}", selector.0);
    }
    assert!(Labels::parse("").unwrap().matches(None));
}

#[test]
fn the_object_form_selects_alike() {
    let selector = json!({"matchLabels": {"a": "1"}, "matchExpressions": [
        {"key": "b", "operator": "In", "values": ["x", "y"]},
        {"key": "c", "operator": "DoesNotExist"},
    ]});
    let selector = Labels::of(&selector).unwrap();
    assert!(selector.matches(json!({"a": "1", "b": "y"}).as_object()));
    assert!(!selector.matches(json!({"a": "1", "b": "y", "c": ""}).as_object()));
    assert!(Labels::of(&json!({"matchExpressions": [{"key": "a", "operator": "Like"}]})).is_err());
}

#[test]
fn field_selectors_are_refused_in_the_known_words() {
    let config_maps = Selectable::builtin("", "configmaps");
    for (selector, want) in [
        (
            "a.b=c",
            "\"a.b\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        (
            "metadata.name>1",
            "invalid selector: 'metadata.name>1'; can't understand 'metadata.name>1'",
        ),
        (
            "=x",
            "\"\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        ("metadata.name=a\\x", "invalid field selector: invalid escape sequence: \\x"),
        ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
    ] {
        assert_eq!(Fields::parse(selector, &config_maps).unwrap_err().to_string(), want);
    }
    let of = |allowed: Selectable| Fields::parse("a.b=c", &allowed).unwrap_err().to_string();
    assert_eq!(of(Selectable::builtin("", "pods")), "field label not supported: a.b");
    assert_eq!(of(Selectable::custom([])), "field label not supported: a.b");
    let jobs = Selectable::builtin("batch", "jobs");
    assert_eq!(of(jobs), "field label \"a.b\" not supported for Job");
}

#[test]
fn fields_select() {
    let pod = json!({
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"nodeName": "one"},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]},
    });
    let event =
        json!({"metadata": {"name": "e"}, "regarding": {"name": "p"}, "reportingController": "r"});
    let custom = json!({"metadata": {"name": "w"}, "spec": {"size": 3, "on": true}});
    let pods = Selectable::builtin("", "pods");
    let events = Selectable::builtin("", "events");
    let widgets = Selectable::custom([".spec.size", ".spec.on"]);
    for (object, allowed, selector, want) in [
        (&pod, &pods, "metadata.name=p,metadata.namespace==n,,", true),
        (&pod, &pods, "status.phase!=Running", false),
        (&pod, &pods, "spec.hostNetwork=false,status.podIP=10.0.0.1", true),
        (&pod, &pods, "spec.nodeName=", false),
        (&event, &events, "involvedObject.name=p,reportingComponent=r,source=r", true),
        (&custom, &widgets, "spec.size=3,spec.on=true", true),
        (&custom, &widgets, "spec.size!=3", false),
    ] {
        let fields = Fields::parse(selector, allowed).unwrap();
        assert_eq!(fields.matches(object), want, "{selector}");
    }
    assert_eq!(Fields::parse("metadata.name=p", &pods).unwrap().name(), Some("p"));
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in "[a-z=!(),<> \\\\.é/]{0,24}") {
        let _ = Labels::parse(&text).map(|labels| labels.matches(None));
        let _ = Fields::parse(&text, &Selectable::builtin("", "pods")).map(|f| f.matches(&Value::Null));
    }
}
