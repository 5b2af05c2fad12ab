use proptest::prelude::*;
use serde_json::json;

use super::*;

fn written(text: &str) -> String {
    let tape = Tape::read(text.as_bytes()).unwrap();
    let mut out = Vec::new();
    generic(tape.root(), &mut |run| out.extend_from_slice(run));
    String::from_utf8(out).unwrap()
}

#[test]
fn values_are_written_compactly_with_sorted_keys() {
    for (text, want) in [
        ("null", "null"),
        (" true ", "true"),
        ("[ 1 , [ ] , { } ]", "[1,[],{}]"),
        (r#"{"b": 1.50, "a": [1, "x"], "b": 2}"#, r#"{"a":[1,"x"],"b":2}"#),
        (
            r#"{"\u0062": "<&>", "a": "\/\b\u0001é"}"#,
            r#"{"a":"/\b\u0001é","b":"\u003c\u0026\u003e"}"#,
        ),
        ("\"\u{2028}\u{2029}\u{2027}\\\"\\\\\"", "\"\\u2028\\u2029\u{2027}\\\"\\\\\""),
        (r#"["\ud83d\ude00", "\ud83d", "\ude00x"]"#, "[\"😀\",\"\u{fffd}\",\"\u{fffd}x\"]"),
    ] {
        assert_eq!(written(text), want, "{text}");
    }
}

#[test]
fn deep_nesting_does_not_exhaust_the_stack() {
    let text = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(written(&text), text);
}

#[test]
fn what_is_no_unicode_becomes_the_replacement_byte_by_byte() {
    assert_eq!(unescaped(b"a\xE2\x80z").as_ref(), "a\u{fffd}\u{fffd}z".as_bytes());
}

#[test]
fn the_last_member_of_a_name_counts_and_null_does_not() {
    let tape = Tape::read(br#"{"a": 1, "b": {"a": 3}, "a": 2, "n": null}"#).unwrap();
    assert_eq!(tape.root().get("a").unwrap().raw(), b"2");
    assert!(tape.root().get("n").is_none());
    assert!(tape.root().get("c").is_none());
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_failing(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(tape) = Tape::read(&bytes) {
            let mut length = 0;
            generic(tape.root(), &mut |run| length += run.len());
            tape.root().members().for_each(drop);
        }
    }

    #[test]
    fn near_json_is_read_without_failing(text in r#"[\[\]{}",:\\u0-9a-fE. -]{0,60}"#) {
        if let Some(tape) = Tape::read(text.as_bytes()) {
            generic(tape.root(), &mut |_| {});
        }
    }

    #[test]
    fn strings_survive(text in any::<String>()) {
        let quoted = json!(text).to_string();
        let tape = Tape::read(quoted.as_bytes()).unwrap();
        let meant = tape.root().text();
        prop_assert_eq!(meant.as_ref(), text.as_bytes());
        let again: String = serde_json::from_str(&written(&quoted)).unwrap();
        prop_assert_eq!(again, text);
    }
}
