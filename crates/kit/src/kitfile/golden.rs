//! What Go's `yaml.v3` and its JSON encoder make of the same texts.

use super::*;

fn parameters(text: &str) -> Result<String, Error> {
    let kitfile = Kitfile::from_yaml(&format!("model:\n  path: m\n  parameters: {text}\n"))?;
    let mut parameters = kitfile.model.unwrap().parameters;
    parameters.iter_mut().for_each(sort);
    Ok(String::from_utf8(json::to_bytes(&parameters).unwrap()).unwrap())
}

#[test]
fn plain_values_are_what_they_are_in_go() {
    for (text, want) in [
        ("yes", r#""yes""#),
        ("on", r#""on""#),
        ("y", r#""y""#),
        ("no", r#""no""#),
        ("True", "true"),
        ("tRUE", r#""tRUE""#),
        ("~", "null"),
        ("0644", "420"),
        ("08", "8"),
        ("0o17", "15"),
        ("0b101", "5"),
        ("-0b11", "-3"),
        ("0xFF", "255"),
        ("-0x10", "-16"),
        ("+0x1F", "31"),
        ("0X1f", "31"),
        ("0x", r#""0x""#),
        ("0x-5", r#""0x-5""#),
        ("0o-1", "-1"),
        ("0b+11", "3"),
        ("1_000", "1000"),
        ("0_7", "7"),
        ("_1", r#""_1""#),
        ("+5", "5"),
        ("-0", "0"),
        ("-0.0", "-0"),
        ("--1", r#""--1""#),
        ("1e3", "1000"),
        ("1e400", r#""1e400""#),
        ("1e-7", "1e-7"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("5.", "5"),
        ("09.5", "9.5"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "18446744073709552000"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-9223372036854775809", "-9223372036854776000"),
        ("12345678901234567890.5", "12345678901234567000"),
        ("190:20:30", r#""190:20:30""#),
        ("!!str 5", r#""5""#),
        ("'5'", r#""5""#),
        ("<<", r#""\u003c\u003c""#),
        ("[&x {a: 1}, *x]", r#"[{"a":1},{"a":1}]"#),
        ("{yes: 1, '1': 2}", r#"{"1":2,"yes":1}"#),
        ("{b: 3, <<: {a: 1, b: 2}}", r#"{"a":1,"b":3}"#),
        ("{<<: [{a: 1}, {a: 2, c: 3}]}", r#"{"a":1,"c":3}"#),
    ] {
        let list = parameters(&format!("[{text}]")).unwrap();
        assert_eq!(list, format!("[{want}]"), "{text}");
    }
}

#[test]
fn dates_are_times_as_in_go() {
    for (text, want) in [
        ("2024-01-01", "2024-01-01T00:00:00Z"),
        ("2024-1-2", "2024-01-02T00:00:00Z"),
        ("2024-02-29", "2024-02-29T00:00:00Z"),
        ("0000-01-01", "0000-01-01T00:00:00Z"),
        ("2024-01-01T10:20:30Z", "2024-01-01T10:20:30Z"),
        ("2024-01-01t1:2:3.500+02:00", "2024-01-01T01:02:03.5+02:00"),
        ("2024-01-01 10:20:30", "2024-01-01T10:20:30Z"),
        ("2024-01-01   10:20:30.120", "2024-01-01T10:20:30.12Z"),
        ("2024-01-01T10:20:30+00:00", "2024-01-01T10:20:30Z"),
        ("2024-01-01T10:20:30-00:30", "2024-01-01T10:20:30-00:30"),
        ("2024-01-01T10:20:30.1234567891Z", "2024-01-01T10:20:30.123456789Z"),
        ("2024-01-01T10:20:30,5Z", "2024-01-01T10:20:30.5Z"),
        // No times at all.
        ("'2024-01-01'", "2024-01-01"),
        ("2024-13-01", "2024-13-01"),
        ("2023-02-29", "2023-02-29"),
        ("2024-01-01T10:20:30", "2024-01-01T10:20:30"),
        ("2024-01-01 10:20:30 Z", "2024-01-01 10:20:30 Z"),
        ("2024-01-01T24:00:00Z", "2024-01-01T24:00:00Z"),
    ] {
        assert_eq!(parameters(text).unwrap(), format!("{want:?}"), "{text}");
    }
}

#[test]
fn what_go_could_not_write_as_json_is_refused() {
    for text in [
        ".inf",
        "-.inf",
        ".nan",
        "{1: a}",
        "{true: a}",
        "{~: a}",
        "{a: 1, a: 2}",
        "{? [x] : 1}",
        "{<<: 5}",
        "2024-01-01T10:20:30+24:00",
        "!foo 5",
        "&x [*x]",
    ] {
        assert!(parameters(text).is_err(), "{text}");
    }
}

#[test]
fn what_has_no_value_is_empty() {
    for text in [
        "package:\n  description:\ncode:\n",
        "package: {description: ~, authors: ~}\nmodel: null\n",
        "package:\ndatasets: [~]\n",
        "---\n",
    ] {
        let kitfile = Kitfile::from_yaml(text).unwrap();
        let want = r#"{"manifestVersion":"1.0.0","package":{}}"#;
        assert_eq!(kitfile.to_json().unwrap(), want.as_bytes(), "{text}");
    }
    let text =
        "package: {name: 0644, version: 1.0, license: yes, description: 'null', authors: [5, ~]}";
    let package = Kitfile::from_yaml(text).unwrap().package;
    let want = ["0644", "1.0", "yes", "null", "5"].map(str::to_owned);
    assert_eq!([package.name, package.version, package.license, package.description], want[..4]);
    assert_eq!(package.authors, want[4..]);
}

#[test]
fn an_error_names_its_line() {
    for (text, want) in [
        ("manifestVersion: 1.0.0\nmodell: {path: a}\n", "line 2: unknown field \"modell\""),
        ("model:\n  path: [a]\n", "line 2: path must be a text"),
        ("code: a\n", "line 1: code must be a list"),
        ("[]", "line 1: a Kitfile must be fields and their values"),
        ("code: []\ncode: []\n", "line 2: code is there twice"),
        ("", "it is empty"),
        ("a: [", "line 1"),
    ] {
        let error = Kitfile::from_yaml(text).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
}

#[test]
fn aliases_do_not_grow_without_end() {
    let mut text = "model:\n  path: m\n  parameters:\n    a0: &a0 [x, x]\n".to_owned();
    for number in 1..60 {
        let below = number - 1;
        text += &format!("    a{number}: &a{number} [*a{below}, *a{below}]\n");
    }
    let error = Kitfile::from_yaml(&text).unwrap_err().to_string();
    assert!(error.contains("too large"), "{error}");
    let deep = "[".repeat(100_000);
    assert!(parameters(&deep).is_err());
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert!(parameters(&deep).is_err());
}

#[test]
fn texts_that_look_like_something_else_stay_texts_when_written() {
    let texts = ["yes", "0644", "2024-01-01", "1_000", "0o17", "1e3", "~", "", ".5", "+.inf", "<<"];
    let mut kitfile = Kitfile::from_yaml("model: {path: m}").unwrap();
    let model = kitfile.model.as_mut().unwrap();
    model.parameters = Some(texts.iter().copied().collect());
    model.description = "null".to_owned();
    let written = kitfile.to_yaml().unwrap();
    assert_eq!(Kitfile::from_yaml(&written).unwrap(), kitfile, "{written}");
}

#[test]
fn what_newer_tools_have_added_is_passed_over_in_artifacts() {
    let config = br#"{"manifestVersion":"1.0.0","package":{"name":"tiny","homepage":"h"},
        "model":{"path":"m","parts":[{"path":"p","sha":"x"}],"quantization":"q4"},
        "mcpServers":[{"name":"s","path":"s.mcpb"}],"description":null}"#;
    let kitfile = Kitfile::from_json(config).unwrap();
    assert_eq!(kitfile.package.name, "tiny");
    assert_eq!(kitfile.model.unwrap().parts[0].path, "p");
    assert!(Kitfile::from_yaml("mcpServers: []").is_err());
}
