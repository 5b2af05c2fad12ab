mod language;
mod properties;

use serde_json::json;

use super::*;

/// The service of the path table.
fn chat_bot() -> Value {
    json!({
        "metadata": {
            "name": "Chat.Bot",
            "namespace": "research",
            "labels": {"team": "Vision_Team", "org.io/unit": "R&D  East"},
            "annotations": {"route": "Tier One/Blue//x", "plain": "A/B", "blank": "  "},
        },
        "spec": {
            "aimImageName": "Acme/Tiny-LM_v2",
            "replicas": 3,
            "env": [{"name": "A", "value": "v1"}, {"name": "B", "value": "v2"}],
            "routing": {"enabled": true},
        },
    })
}

/// The path, or the text of the error.
fn path(template: &str, service: &Value) -> String {
    match render(template, service) {
        Ok(path) => path.to_string(),
        Err(error) => error.to_string(),
    }
}

/// What is wrong with the expression, without the wrapping.
fn cause(expression: &str, service: &Value) -> String {
    match render(&format!("/{{{expression}}}"), service) {
        Err(Error::Expression { expression: shown, cause }) => {
            assert_eq!(shown, expression);
            cause.to_string()
        }
        other => panic!("{expression}: {other:?}"),
    }
}

#[test]
fn g04_a_label_in_the_path() {
    let service =
        json!({"metadata": {"namespace": "Lab", "labels": {"example.org/run-id": "Run-7"}}});
    let template = "/{.metadata.namespace}/{.metadata.labels['example.org/run-id']}/";
    assert_eq!(path(template, &service), "/lab/run-7");
}

#[test]
fn g05_namespace_and_image() {
    let service =
        json!({"metadata": {"namespace": "Lab"}, "spec": {"aimImageName": "Acme/Tiny-LM-7B"}});
    let got = path("/{.metadata.namespace}/{.spec.aimImageName}", &service);
    assert_eq!(got, "/lab/acme-tiny-lm-7b");
}

#[test]
fn g06_a_bracketed_annotation_keeps_its_segments() {
    let service = chat_bot();
    for (template, want) in [
        ("/{.metadata.annotations['route']}", "/tier-one/blue/x"),
        (r#"/{.metadata.annotations["route"]}"#, "/tier-one/blue/x"),
        ("/{.metadata.annotations.plain}", "/a-b"),
        ("/{$.metadata.annotations['plain']}", "/a-b"),
        ("/x{.metadata.annotations['blank']}y", "/xy"),
    ] {
        assert_eq!(path(template, &service), want, "{template}");
    }
}

#[test]
fn g07_the_default_path() {
    assert_eq!(default_path("Lab", "0F8FAD5B-d9cb").as_str(), "/lab/0f8fad5b-d9cb");
    assert_eq!(default_path("", "").as_str(), "/");
    assert_eq!(String::from(default_path(&"n".repeat(300), "u")), "/");
}

#[test]
fn g08_a_missing_label_is_named() {
    assert_eq!(
        path("/{.metadata.labels['nope']}", &chat_bot()),
        r#"failed to evaluate route template ".metadata.labels['nope']": jsonpath evaluation error: label "nope" not found"#
    );
    assert_eq!(
        cause(".metadata.annotations['nope']", &json!({})),
        r#"jsonpath evaluation error: annotation "nope" not found"#
    );
}

#[test]
fn g09_a_path_has_at_most_200_bytes() {
    let service = json!({"metadata": {"name": "n".repeat(63)}});
    let error =
        path("/{.metadata.name}/{.metadata.name}/{.metadata.name}/{.metadata.name}", &service);
    let long = ["n"; 4].map(|n| n.repeat(63)).join("/");
    assert_eq!(error, format!("route path \"/{long}\" exceeds 200 characters"));
    let fits = format!("/{}", "abc/".repeat(50).trim_end_matches('/'));
    assert_eq!(fits.len(), 200);
    assert_eq!(path(&fits, &service), fits);
    assert_eq!(path(&format!("{fits}////  "), &service), fits);
    assert!(path(&format!("{fits}d"), &service).ends_with("exceeds 200 characters"));
}

#[test]
fn g10_a_syntax_error_is_told_in_full() {
    assert_eq!(
        path("/{.spec.env[}", &chat_bot()),
        r#"failed to evaluate route template ".spec.env[": invalid jsonpath expression: unterminated array"#
    );
}

#[test]
fn g11_the_path_table() {
    let service = chat_bot();
    for (template, want) in [
        ("x/{.spec.aimImageName}/V1", "/x/acme-tiny-lm-v2/v1"),
        ("/{.metadata.labels['org.io/unit']}", "/r-d-east"),
        (r#"/{ .metadata.labels["team"] }"#, "/vision-team"),
        ("/{$.metadata.name}", "/chat.bot"),
        ("/{.spec.env[1].value}", "/v2"),
        ("/{.spec.env[?(@.name=='A')].value}", "/v1"),
        ("/{.spec.templateRef}/x", "/x"),
        ("{.spec.templateRef}", "route template produced an empty path"),
        ("///", "/"),
        ("/{}/a", "/a"),
        ("/a//b/./c/..", "/a/b/c"),
        ("/{.metadata.name", "/metadata.name"),
        ("/%41/ü/ x y ", "/41/x-y"),
    ] {
        assert_eq!(path(template, &service), want, "{template}");
    }
    for (expression, want) in [
        (".spec.env[*].name", "jsonpath returned multiple results"),
        (".spec.model", "jsonpath evaluation error: model is not found"),
        ("metadata.name", "jsonpath evaluation error: unrecognized identifier metadata"),
    ] {
        assert_eq!(cause(expression, &service), want, "{expression}");
    }
}

#[test]
fn braces_are_text_unless_they_hold_something() {
    let service = chat_bot();
    for (template, want) in [
        ("/a{b{.metadata.name}c}d", "/a-bchat.botc-d"),
        ("}{/x", "/x"),
        ("{}{}", "/"),
        ("/{.metadata.name}{.metadata.name}", "/chat.botchat.bot"),
        ("", "route template produced an empty path"),
        (" \n ", "route template produced an empty path"),
        ("/{ }", r#"failed to evaluate route template "": jsonpath expression is empty"#),
    ] {
        assert_eq!(path(template, &service), want, "{template}");
    }
}

#[test]
fn segments_have_letters_digits_and_single_marks() {
    let cut = format!("{}-x", "a".repeat(62));
    for (text, want) in [
        ("Chat.Bot", "chat.bot"),
        ("a..b", "a-b"),
        ("a.-b", "a-b"),
        ("a_b", "a-b"),
        ("a_.b", "a-b"),
        ("a - b", "a-b"),
        ("-.a.-", "a"),
        ("..", ""),
        ("İK", "ik"),
        ("ß", ""),
        (&cut, &"a".repeat(62)),
    ] {
        assert_eq!(segment(text), want, "{text:?}");
    }
    // Only dashes are taken off where a text was cut; the same path must stay for existing routes.
    assert_eq!(segment(&cut.replace('-', ".")), format!("{}.", "a".repeat(62)));
}

#[test]
fn errors_show_the_beginning_of_long_texts() {
    let long = "x".repeat(5000);
    let annotated = json!({"metadata": {"annotations": {"a": long}}});
    for error in [
        path(&long, &annotated),
        path(&format!("/{{.{long}}}"), &annotated),
        path(&format!("/{{.metadata.labels['{long}']}}"), &annotated),
        path("/{.metadata.annotations['a']}", &annotated),
    ] {
        assert!(error.len() < 3000 && error.contains('…'), "{error}");
    }
    assert_eq!(
        evaluate::single(&format!(".{long}"), &annotated, &mut Work::default()),
        Err(evaluate::Error::TooLong)
    );
}
