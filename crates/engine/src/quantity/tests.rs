use super::*;

#[test]
fn quantities_are_compared_by_value() {
    for (left, right, want) in [
        ("1000m", "1", true),
        ("16384Mi", "16Gi", true),
        ("1.5Gi", "1536Mi", true),
        ("0.5", "500m", true),
        ("1e3", "1k", true),
        ("1G", "1Gi", false),
        ("100n", "0.0000001", true),
        ("4", "4", true),
        ("", "", false),
        ("x", "x", false),
        ("1.2.3", "1.2.3", false),
    ] {
        assert_eq!(equal(left, right), want, "{left} and {right}");
    }
}

#[test]
fn nonsense_and_overflow_are_no_quantities() {
    for text in
        ["", "-", ".", "Gi", "1Zi", "1e999", "1 Gi", "99999999999999999999999999Ei", "1e-30"]
    {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn whole_units_are_rounded_up() {
    for (text, want) in [("1500m", 2), ("1", 1), ("0", 0), ("24Gi", 25_769_803_776)] {
        assert_eq!(parse(text).map(Nano::ceil), Some(want), "{text}");
    }
}
