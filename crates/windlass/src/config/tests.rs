use serde_json::json;

use super::*;

fn settings(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

#[test]
fn entries_become_flags() {
    let given =
        settings(json!({ "concurrency": 4, "leader-elect": true, "watch-namespaces": ["a", "b"] }));
    let got = flags(&given, |_| false).unwrap();
    assert_eq!(got, ["--concurrency=4", "--leader-elect=true", "--watch-namespaces=a,b"]);
}

#[test]
fn the_environment_wins_over_the_file() {
    let given = settings(json!({ "concurrency": 4, "lease-name": "x" }));
    assert_eq!(flags(&given, |name| name == "concurrency").unwrap(), ["--lease-name=x"]);
}

#[test]
fn an_entry_that_is_no_value_is_refused() {
    let given = settings(json!({ "concurrency": { "a": 1 } }));
    assert!(flags(&given, |_| false).is_err());
}

#[test]
fn the_path_is_found_in_both_forms() {
    for given in [&["w", "operator", "--config", "x"][..], &["w", "operator", "--config=x"]] {
        let given: Vec<OsString> = given.iter().map(OsString::from).collect();
        assert_eq!(path(&given), Some("x".into()));
    }
}
