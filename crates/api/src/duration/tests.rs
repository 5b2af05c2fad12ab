use super::*;

const SECOND: i64 = 1_000_000_000;

#[test]
fn every_unit_and_fraction_parses() {
    for (text, want) in [
        ("0", 0),
        ("10s", 10 * SECOND),
        ("1m30s", 90 * SECOND),
        ("500ms", SECOND / 2),
        ("1.5s", SECOND * 3 / 2),
        (".5s", SECOND / 2),
        ("1.s", SECOND),
        ("2h45m", 9_900 * SECOND),
        ("100us", 100_000),
        ("100µs", 100_000),
        ("100μs", 100_000),
        ("7ns", 7),
        ("+5s", 5 * SECOND),
        ("-1.5h", -5_400 * SECOND),
        ("0.3333333333333333333h", 1_199_999_999_999),
        ("9223372036854775807ns", i64::MAX),
    ] {
        assert_eq!(GoDuration::from(text).nanoseconds(), Ok(want), "{text}");
    }
}

#[test]
fn malformed_and_oversized_texts_are_told_apart() {
    for text in ["", "-", "10", "s", ".s", "10 s", "1d", "10s5", "1e3s", "٣s"] {
        assert_eq!(GoDuration::from(text).nanoseconds(), Err(Error::Syntax(text.into())), "{text}");
    }
    for text in ["9223372036854775808ns", "3000000h", "99999999999999999999s"] {
        assert_eq!(
            GoDuration::from(text).nanoseconds(),
            Err(Error::Overflow(text.into())),
            "{text}"
        );
    }
}

#[test]
fn k03_integers_are_nanoseconds() {
    let integer: GoDuration = serde_json::from_str("30000000000").unwrap();
    let text: GoDuration = serde_json::from_str("\"30s\"").unwrap();
    assert_eq!(integer.nanoseconds(), text.nanoseconds());
}

#[test]
fn the_written_form_survives_a_round_trip() {
    for json in ["\"1m30s\"", "30000000000", "\"nonsense\""] {
        let duration: GoDuration = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&duration).unwrap(), json);
    }
}
