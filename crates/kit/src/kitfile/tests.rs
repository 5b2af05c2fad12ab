use proptest::prelude::*;

use super::*;

#[test]
fn what_is_not_known_is_refused() {
    let error = Kitfile::from_yaml("manifestVersion: 1.0.0\nmodell: {path: a}\n").unwrap_err();
    assert!(error.to_string().contains("modell"), "{error}");
    let error = Kitfile::from_yaml("model: {path: a, digest: x}").unwrap_err();
    assert!(error.to_string().contains("digest"), "{error}");
    assert!(Kitfile::from_yaml("code: [{path: a}, {path: ./a/}]").is_err());
    assert!(Kitfile::from_yaml("code: [{path: /etc}]").is_err());
    assert!(Kitfile::from_yaml("code: [{path: a/../../b}]").is_err());
    assert!(Kitfile::from_yaml("model: {path: a, parts: [{path: b, type: -x}]}").is_err());
    assert!(Kitfile::from_yaml("---\ncode: []\n---\ncode: []\n").is_err());
}

#[test]
fn paths_are_cleaned_and_compared_by_elements() {
    for (text, want) in
        [("", "."), (".", "."), ("./a/", "a"), ("a//b/../c", "a/c"), ("x..y", "x..y")]
    {
        assert_eq!(Path::parse(text).unwrap().as_str(), want, "{text:?}");
    }
    let data = Path::parse("data").unwrap();
    assert!(data.contains("data") && data.contains("data/a"));
    assert!(!data.contains("database.txt") && !data.contains("data-v2/e"));
}

#[test]
fn a_model_may_be_another_artifact() {
    let kitfile =
        Kitfile::from_yaml("model: {path: 'r.io/base:v1'}\ncode: [{path: run.py}]").unwrap();
    assert_eq!(kitfile.parent().unwrap().to_string(), "r.io/base:v1");
    let kinds: Vec<Kind> = kitfile.entries().unwrap().into_iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [Kind::Code]);
}

#[test]
fn numbers_and_maps_become_what_go_makes_of_them() {
    let text = "model: {path: m, parameters: {temp: 0.5, big: 1e21, hex: 0xFF, list: [b, a]}}";
    let bytes = Kitfile::from_yaml(text).unwrap().to_json().unwrap();
    let want = r#"{"manifestVersion":"1.0.0","package":{},"model":{"path":"m","parameters":{"big":1e+21,"hex":255,"list":["b","a"],"temp":0.5}}}"#;
    assert_eq!(String::from_utf8(bytes).unwrap(), want);
}

#[test]
fn what_is_written_can_be_read_and_has_no_digests() {
    let text = "manifestVersion: 1.0.0\npackage:\n  name: tiny\n  authors: [A, 'B: C']\nmodel:\n  path: m\n  parts:\n    - path: c\n";
    let kitfile = Kitfile::from_yaml(text).unwrap();
    let mut stored = kitfile.clone();
    for entry in stored.stored() {
        *entry.digest = Some(Digest::of(b"x"));
    }
    let written = stored.to_yaml().unwrap();
    assert_eq!(Kitfile::from_yaml(&written).unwrap(), kitfile);
    assert!(written.contains("  authors: [A,") && written.contains("    - path: c"), "{written}");
    let empty = Kitfile::from_yaml("model: {path: m}").unwrap().to_yaml().unwrap();
    assert!(!empty.contains("package"), "{empty}");
}

#[test]
fn text_that_grows_when_it_is_read_is_refused() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let again = vec![format!("*a{}", level - 1); 10].join(", ");
        laughs += &format!("a{level}: &a{level} [{again}]\n");
    }
    let laughs = laughs.replace('\n', "\n    ");
    assert!(
        Kitfile::from_yaml(&format!("model:\n  path: m\n  parameters:\n    {laughs}")).is_err()
    );
    for open in ["[", "{a: ", "- "] {
        let deep = format!("model: {{path: m, parameters: {{a: {}", open.repeat(100_000));
        assert!(Kitfile::from_yaml(&deep).is_err(), "{open}");
    }
    let deep = format!(r#"{{"model":{{"path":"m","parameters":{{"a":{}"#, "[".repeat(100_000));
    assert!(Kitfile::from_json(deep.as_bytes()).is_err());
}

const REAL: &str = "manifestVersion: 1.0.0\npackage: {name: n, authors: [a]}\nmodel:\n  path: m\n  parameters: {a: 1e3, b: [x]}\n  parts: [{path: c, type: t}]\ncode:\n  - path: run.py\n    description: >\n      some text\n";

proptest! {
    #[test]
    fn no_kitfile_is_too_strange(
        at: prop::sample::Index,
        piece in "[-a-z:&*!|>{}\\[\\], \n#'\"%@`0-9.~]{0,8}",
        cut: prop::sample::Index,
    ) {
        Kitfile::from_yaml(REAL).unwrap();
        let mut text = REAL.to_owned();
        text.insert_str(at.index(text.len()), &piece);
        for text in [text.as_str(), &text[..cut.index(text.len())], &piece] {
            if let Ok(kitfile) = Kitfile::from_yaml(text) {
                for entry in kitfile.entries().unwrap_or_default() {
                    let path = entry.path.as_str();
                    prop_assert!(!path.starts_with('/') && !path.split('/').any(|e| e == ".."));
                }
                let json = kitfile.to_json();
                prop_assert!(json.is_err() || Kitfile::from_json(&json.unwrap()).is_ok());
            }
        }
    }
}
