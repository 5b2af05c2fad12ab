use proptest::prelude::*;

use super::*;

fn scan(chunks: &[&[u8]]) -> Scanner {
    let mut scanner = Scanner::default();
    chunks.iter().for_each(|chunk| scanner.feed(chunk));
    scanner
}

#[test]
fn a_body_is_an_object_or_null() {
    for (text, want) in [
        ("", Verdict::Unfinished),
        ("{}", Verdict::Object),
        (" {\"a\" : [1, -0.5e+3, true, null, {}, []], \"b\":\"\\u00e9\\n\"} \r\n", Verdict::Object),
        ("null", Verdict::Null),
        ("[]", Verdict::Refused),
        ("\"model\"", Verdict::Refused),
        ("1", Verdict::Refused),
        ("no healthy upstream", Verdict::Refused),
        ("{} {}", Verdict::Refused),
        ("{\"a\"}", Verdict::Refused),
        ("{\"a\":1,}", Verdict::Refused),
        ("{\"a\":[1,]}", Verdict::Refused),
        ("{\"a\":01}", Verdict::Refused),
        ("{\"a\":1.}", Verdict::Refused),
        ("{\"a\":+1}", Verdict::Refused),
        ("{\"a\":\"\n\"}", Verdict::Refused),
        ("{\"a\":\"\\x\"}", Verdict::Refused),
        ("{\"a\":\"\\u12g4\"}", Verdict::Refused),
        ("{\"a\":]}", Verdict::Refused),
        ("{\"a\":[}", Verdict::Refused),
        ("{a:1}", Verdict::Refused),
        ("{\"a\":tru}", Verdict::Refused),
        ("{\"a\":1", Verdict::Unfinished),
        ("{\"a\":\"x", Verdict::Unfinished),
    ] {
        assert_eq!(scan(&[text.as_bytes()]).verdict(), want, "{text}");
    }
}

#[test]
fn nesting_ends_at_ten_thousand() {
    let nested = |depth: usize| {
        let text = format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        scan(&[text.as_bytes()]).verdict()
    };
    assert_eq!(nested(10_000), Verdict::Object);
    assert_eq!(nested(10_001), Verdict::Refused);
}

#[test]
fn members_are_found_at_the_top_only_and_the_last_wins() {
    let text = br#"{"x":{"model":"no"},"model":"a","model" : "b","prompt":12,"messages":[{}],"m\u006fdel2":1,"stre\u0061m":true}"#;
    let found = scan(&[text]);
    let part = |member| found.span(member).map(|span| std::str::from_utf8(&text[span]).unwrap());
    assert_eq!(part(Member::Model), Some("\"b\""));
    assert_eq!(part(Member::Prompt), Some("12"));
    assert_eq!(part(Member::Messages), Some("[{}]"));
    assert_eq!(part(Member::Stream), Some("true"));
    assert_eq!(part(Member::Input), None);
}

#[test]
fn a_value_that_is_not_over_is_known_by_its_start() {
    let found = scan(&[b"{\"model\":\"m\",\"prompt\":\"abc"]);
    assert_eq!(found.verdict(), Verdict::Unfinished);
    assert_eq!(found.span(Member::Model), Some(9..12));
    assert_eq!(found.unfinished(), Some((Member::Prompt, 22)));
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(".{0,8}|model|prompt", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn the_verdict_is_that_of_a_parser(text in r#"[\[\]{}",:\\ntrue0-9. \-eu]{0,24}"#) {
        let want = match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(serde_json::Value::Object(_)) => Verdict::Object,
            Ok(serde_json::Value::Null) => Verdict::Null,
            _ => Verdict::Refused,
        };
        let got = scan(&[text.as_bytes()]).verdict();
        // The parser also refuses lone surrogates and floats out of range.
        let lenient = text.contains("\\u") || text.contains(['e', 'E']);
        prop_assert!(
            got == want || want == Verdict::Refused && (got == Verdict::Unfinished || lenient),
            "{got:?} {want:?}"
        );
    }

    #[test]
    fn real_json_is_accepted_and_its_members_found(
        value in proptest::collection::btree_map(".{0,8}|model|prompt", any_json(), 0..5),
        cuts in proptest::collection::vec(0_usize..400, 0..6),
    ) {
        let text = serde_json::to_vec(&value).unwrap();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            chunks.push(&text[from..cut]);
            from = cut;
        }
        let found = scan(&chunks);
        prop_assert_eq!(found.verdict(), Verdict::Object);
        let part = found.span(Member::Model);
        let model = part.map(|span| serde_json::from_slice::<serde_json::Value>(&text[span]).unwrap());
        prop_assert_eq!(model.is_some(), value.contains_key("model"));
        if let (Some(model), Some(want)) = (model, value.get("model")) {
            prop_assert_eq!(model.to_string(), serde_json::from_str::<serde_json::Value>(&want.to_string()).unwrap().to_string());
        }
    }

    #[test]
    fn any_bytes_are_scanned_without_failing(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        scan(&[&bytes]).verdict();
    }
}
