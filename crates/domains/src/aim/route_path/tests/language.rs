//! The expressions alone, as far as the golden cases leave them open.

use serde_json::json;

use super::super::evaluate::{Error, Work, single};
use super::*;

fn eval(expression: &str) -> String {
    match single(expression, &chat_bot(), &mut Work::default()) {
        Ok(text) => text,
        Err(error) => format!("! {error}"),
    }
}

fn check(cases: &[(&str, &str)]) {
    for (expression, want) in cases {
        assert_eq!(eval(expression), *want, "{expression}");
    }
}

#[test]
fn unset_fields_speak_by_their_type() {
    check(&[
        (".metadata.generateName", ""),
        (".metadata.generation", "0"),
        (".spec.cacheModel", "false"),
        (".spec.runtimeConfigName", ""),
        (".spec.routing.routeTemplate", ""),
        (".metadata.labels.nope", "! jsonpath evaluation error: nope is not found"),
        (".spec.routing.gatewayRef", "! jsonpath returned nil value"),
        (".spec.routing.gatewayRef.name", "! jsonpath evaluation error: name is not found"),
        (".spec.overrides", "! jsonpath returned nil value"),
        (".spec.overrides.metric", "! jsonpath evaluation error: metric is not found"),
        (".spec.env[0].valueFrom", "! jsonpath returned nil value"),
        (".spec.AimImageName", "! jsonpath evaluation error: AimImageName is not found"),
        (".spec.", "! jsonpath evaluation error:  is not found"),
    ]);
    assert_eq!(
        single(".spec.replicas", &json!({"spec": {"replicas": null}}), &mut Work::default()),
        Err(Error::Nil)
    );
}

#[test]
fn fields_have_the_names_of_the_original_too() {
    let service = json!({
        "apiVersion": "v",
        "kind": "AIMService",
        "metadata": { "name": "chat", "uid": "u", "namespace": "lab", "labels": { "team": "t" },
            "ownerReferences": [{ "uid": "o" }] },
        "spec": { "aimImageName": "tiny",
            "env": [{ "name": "A", "valueFrom": { "secretKeyRef": { "name": "s" } } }],
            "overrides": { "gpuSelector": { "model": "x" }, "metric": "latency" } },
    });
    for (path, value) in [
        (".spec.AIMImageName", "tiny"),
        (".Spec.AIMImageName", "tiny"),
        (".ObjectMeta.UID", "u"),
        (".metadata.Name", "chat"),
        (".APIVersion", "v"),
        (".Spec.Env[0].Name", "A"),
        (".spec.Overrides.GPUSelector.Model", "x"),
        (".Spec.RuntimeConfigName", ""),
        // What is embedded lends its fields.
        (".Name", "chat"),
        (".Namespace", "lab"),
        (".UID", "u"),
        (".Labels.team", "t"),
        (".Labels['team']", "t"),
        (".OwnerReferences[0].UID", "o"),
        (".GenerateName", ""),
        (".Generation", "0"),
        (".TypeMeta.Kind", "AIMService"),
        (".TypeMeta.apiVersion", "v"),
        (".spec.overrides.AIMRuntimeParameters.Metric", "latency"),
        (".spec.env[0].ValueFrom.SecretKeyRef.Name", "s"),
        (".spec.env[0].valueFrom.secretKeyRef.LocalObjectReference.name", "s"),
        (".metadata.selfLink", ""),
    ] {
        assert_eq!(single(path, &service, &mut Work::default()).as_deref(), Ok(value), "{path}");
    }
    // What changes by itself is no better under another name, and keys of maps have one name only.
    for path in [".Status", ".ResourceVersion", ".ManagedFields", ".metadata.labels.Team"] {
        assert!(single(path, &service, &mut Work::default()).is_err(), "{path}");
    }
    // What is lent has the original's own name only, and only the service has something embedded so.
    for path in [".name", ".labels.team", ".spec.Name", ".TypeMeta.Name"] {
        let error = single(path, &service, &mut Work::default()).unwrap_err().to_string();
        assert!(error.ends_with(" is not found"), "{path}: {error}");
    }
}

#[test]
fn w21_pointees_are_printed_and_nothing_else_than_scalars() {
    check(&[
        (".spec.replicas", "3"),
        (".spec.routing.enabled", "true"),
        (".spec", "! jsonpath returned an object"),
        (".metadata.labels", "! jsonpath returned an object"),
        (".spec.env", "! jsonpath returned a list"),
        (".spec.imagePullSecrets", "! jsonpath returned a list"),
        ("@", "! jsonpath returned an object"),
    ]);
    let service =
        json!({"spec": {"overrides": {"metric": "latency", "gpuSelector": {"count": 2}}}});
    let eval = |text: &str| single(text, &service, &mut Work::default());
    assert_eq!(eval(".spec.overrides.metric").as_deref(), Ok("latency"));
    assert_eq!(eval(".spec.overrides.gpuSelector.count").as_deref(), Ok("2"));
    assert_eq!(eval(".spec.overrides.precision"), Err(Error::Nil));
}

#[test]
fn w21_keys_in_brackets_work_everywhere() {
    check(&[
        ("['metadata']['name']", "Chat.Bot"),
        (".spec['aimImageName']", "Acme/Tiny-LM_v2"),
        (r#".metadata["labels"]['org.io/unit']"#, "R&D  East"),
        (r".metadata['labels']['org\.io/unit']", "R&D  East"),
        (r".metadata.labels.org\.io/unit", "R&D  East"),
        (".spec.env[0]['value']", "v1"),
        (".metadata[ 'name' ]", "Chat.Bot"),
        (".metadata['a]b,c']", "! jsonpath evaluation error: a]b,c is not found"),
        (".metadata['a]", "! invalid jsonpath expression: unterminated array"),
        (".metadata['a'b]", "! invalid jsonpath expression: invalid array index 'a'b"),
    ]);
}

#[test]
fn indices_and_slices() {
    check(&[
        (".spec.env[0].name", "A"),
        (".spec.env[].name", "A"),
        (".spec.env[-1].name", "B"),
        (".spec.env[-2].name", "A"),
        (".spec.env[1:].name", "B"),
        (".spec.env[:1].name", "A"),
        (".spec.env[-1:].name", "B"),
        (".spec.env[0:2:2].name", "A"),
        (".spec.env[::2].name", "A"),
        (".spec.env[:].name", "! jsonpath returned multiple results"),
        (".spec.env[1:1:0].name", "! jsonpath returned no results"),
        (".spec.env[1:1].name", "! jsonpath returned no results"),
        (".spec.imagePullSecrets[*].name", "! jsonpath returned no results"),
        (".spec.routing.gatewayRef[0]", "! jsonpath returned no results"),
        (
            ".spec.env[5]",
            "! jsonpath evaluation error: array index out of bounds: index 5, length 2",
        ),
        (
            ".spec.env[-3]",
            "! jsonpath evaluation error: array index out of bounds: index -1, length 2",
        ),
        (
            ".spec.env[0:5]",
            "! jsonpath evaluation error: array index out of bounds: index 4, length 2",
        ),
        (
            ".spec.env[2:0]",
            "! jsonpath evaluation error: array index out of bounds: index 2, length 2",
        ),
        (
            ".spec.env[1:0]",
            "! jsonpath evaluation error: starting index 1 is greater than ending index 0",
        ),
        (".spec.env[0:2:0]", "! jsonpath evaluation error: step must be > 0"),
        (".spec.env[0:2:-1]", "! jsonpath evaluation error: step must be > 0"),
        (".spec.env[a]", "! invalid jsonpath expression: invalid array index a"),
        (".spec.env[0:1:2:3]", "! invalid jsonpath expression: invalid array index 0:1:2:3"),
        (".spec.env[-]", "! invalid jsonpath expression: array index - is not a number"),
        (".spec[0]", "! jsonpath evaluation error: object is not array or slice"),
        (".metadata.name[0]", "! jsonpath evaluation error: string is not array or slice"),
        (".metadata.labels[0]", "! jsonpath evaluation error: map is not array or slice"),
    ]);
    for edge in [i64::MAX.to_string(), i64::MIN.to_string()] {
        assert!(eval(&format!(".spec.env[{edge}]")).contains("out of bounds"), "{edge}");
        assert!(eval(&format!(".spec.env[{edge}:{edge}:{edge}]")).starts_with('!'), "{edge}");
        assert!(eval(&format!(".spec.env[0:{edge}]")).contains("out of bounds"), "{edge}");
    }
}

#[test]
fn unions_wildcards_and_descents() {
    check(&[
        (".spec.env[0,1].name", "! jsonpath returned multiple results"),
        (
            ".spec.env[0, 1][?(@.x)]",
            "! jsonpath evaluation error: object is not array or slice and cannot be filtered",
        ),
        (".metadata['name', 'uid']", "! jsonpath returned multiple results"),
        ("..aimImageName", "Acme/Tiny-LM_v2"),
        ("..templateRef", ""),
        ("..name", "! jsonpath returned multiple results"),
        ("..nope", "! jsonpath evaluation error: nope is not found"),
        (".metadata..team", "Vision_Team"),
        ("....name", "! invalid jsonpath expression: invalid multiple recursive descent"),
        (".spec.env[0].*", "! jsonpath returned multiple results"),
        (".spec.env[?(@.name=='A')]['value']", "v1"),
    ]);
    let service = json!({"metadata": {"labels": {"only": "One"}}});
    let got = single(".metadata.labels.*", &service, &mut Work::default());
    assert_eq!(got.as_deref(), Ok("One"));
}

#[test]
fn filters_compare() {
    check(&[
        (".spec.env[?(@.name == \"B\")].value", "v2"),
        (".spec.env[?(@.name!='A')].value", "v2"),
        (".spec.env[?(@.name>'A')].value", "v2"),
        (".spec.env[?(@.name<'B')].value", "v1"),
        (".spec.env[?(@.name>='B')].value", "v2"),
        (".spec.env[?(@.name<='A')].value", "v1"),
        (".spec.env[?('B'==@.name)].value", "v2"),
        (".spec.env[?(@['name']=='B')].value", "v2"),
        (".spec.env[?(@.name==')')].value", "! jsonpath returned no results"),
        (".spec.env[?(@.value)].name", "! jsonpath returned multiple results"),
        (".spec.env[?(@.nope)].name", "! jsonpath returned no results"),
        (".spec.env[?(@.nope=='x')]", "! jsonpath evaluation error: nope is not found"),
        (
            ".spec.env[?(@.name==1)]",
            "! jsonpath evaluation error: incompatible types for comparison",
        ),
        (".spec.env[?(@=='A')]", "! jsonpath evaluation error: invalid type for comparison"),
        (".spec.env[?(@.name='A')]", "! jsonpath evaluation error: unrecognized filter operator ="),
        (".spec.env[?(true<false)]", "! jsonpath evaluation error: invalid type for comparison"),
        (
            ".spec.env[?(@..name==@..*)]",
            "! invalid jsonpath expression: unrecognized character in action: U+002A '*'",
        ),
        (
            ".spec.env[?(@.*==1)]",
            "! jsonpath evaluation error: can only compare one element at a time",
        ),
        (
            ".spec[?(@.x)]",
            "! jsonpath evaluation error: object is not array or slice and cannot be filtered",
        ),
        (".spec.env[?(@.name=='A'", "! invalid jsonpath expression: unterminated filter"),
        (".spec.env[?(@.name=='A')", "! invalid jsonpath expression: unclosed array expect ]"),
        (
            ".spec.env[?(@.name==)]",
            "! invalid jsonpath expression: unrecognized character in action: U+003D '='",
        ),
        (
            ".spec.env[?(=='A')]",
            "! invalid jsonpath expression: unrecognized character in action: U+003D '='",
        ),
        (
            ".spec.env[?(@.name==1==2)]",
            "! invalid jsonpath expression: unrecognized character in action: U+003D '='",
        ),
    ]);
    let service = json!({"spec": {"resources": {"limits": {"any": [
        {"name": "a", "number": 1}, {"name": "b", "number": 2}]}}}});
    for (filter, want) in [("@.number>1", "b"), ("@.number<1.5", "a")] {
        let expression = format!(".spec.resources.limits.any[?({filter})].name");
        let got = single(&expression, &service, &mut Work::default());
        assert_eq!(got.as_deref(), Ok(want), "{filter}");
    }
    let nested =
        |depth: usize| format!(".spec.env{}{}", "[?(@.x".repeat(depth), ")]".repeat(depth));
    assert_eq!(eval(&nested(4)), "! jsonpath returned no results");
    assert_eq!(eval(&nested(5)), "! invalid jsonpath expression: filters nested deeper than 4");
}

#[test]
fn literals_and_strays() {
    check(&[
        (r#""Literal""#, "Literal"),
        (r"'it\'s'", "it's"),
        (r#""a\tb""#, "a\tb"),
        ("42", "42"),
        ("-1.5", "-1.5"),
        ("true", "true"),
        ("end", "! jsonpath evaluation error: not in range, nothing to end"),
        ("1.2.3", "! invalid jsonpath expression: cannot parse number 1.2.3"),
        ("+", "! invalid jsonpath expression: cannot parse number +"),
        (r"'\q'", "! invalid jsonpath expression: unquote string \\q error invalid syntax"),
        ("'a", "! invalid jsonpath expression: unterminated quoted string"),
        ("'a\\", "! invalid jsonpath expression: unterminated quoted string"),
        (".a\n.b", "! invalid jsonpath expression: unclosed action"),
        (".a,", "! invalid jsonpath expression: unrecognized character in action: U+002C ','"),
        (".a\t", "! invalid jsonpath expression: unrecognized character in action: U+0009"),
        ("", "! jsonpath expression is empty"),
    ]);
}

#[test]
fn repeated_descents_and_unions_end_within_the_limit() {
    let names: serde_json::Map<String, Value> =
        (0..500).map(|n| (format!("l{n}"), Value::from("x"))).collect();
    let deep = (0..100).fold(json!(1), |inner, _| json!({"a": inner}));
    let service = json!({
        "metadata": {"labels": names},
        "spec": {"env": (0..50).map(|n| json!({"name": n.to_string()})).collect::<Vec<_>>(),
            "resources": {"limits": {"any": [deep]}}},
    });
    let union = "[0,0,0,0,0,0,0,0]";
    let bombs = [
        "..a".repeat(300),
        "..a".repeat(8),
        format!("..a{}", ".*..".repeat(100)),
        format!(".spec.env[*]{}", "['name','name']".repeat(60)),
        format!(".spec.env{}", "[?(@..name)]".repeat(2)),
        format!(".spec.resources.limits.any{union}"),
        ".metadata.labels..a".to_owned(),
    ];
    for bomb in &bombs {
        let mut work = Work::default();
        assert!(single(bomb, &service, &mut work).is_err(), "{bomb}");
        assert!(work.done() <= Work::LIMIT, "{bomb}");
    }
    let mut work = Work::default();
    assert_eq!(single(&bombs[1], &service, &mut work), Err(Error::TooMuchWork));
    // The limit is for a template as a whole, not for each placeholder.
    let many = format!("/{}", "{..templateRef}".repeat(10_000));
    assert!(path(&many, &service).contains("more than 100000 values to visit"));
    assert_eq!(path("/{..templateRef}x", &service), "/x");
}
