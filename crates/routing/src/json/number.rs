//! Numbers as a 64-bit float's shortest text, in the manner of ECMAScript.

/// What is no number is left as it is.
pub(super) fn shortest(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => write(number),
        _ => text.into_owned(),
    }
}

fn write(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return format!("{number}");
    }
    let text = format!("{number:e}");
    // Rust leaves the plus of an exponent out.
    if text.contains("e-") { text } else { text.replace('e', "e+") }
}

#[cfg(test)]
mod tests {
    use super::shortest;

    #[test]
    fn numbers_are_written_as_shortly_as_they_can_be_read_back() {
        for (raw, want) in [
            ("0", "0"),
            ("-0", "-0"),
            ("1.0", "1"),
            ("1e2", "100"),
            ("12345678901234567890", "12345678901234567000"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("0.000001", "0.000001"),
            ("0.00000015", "1.5e-7"),
            ("1.50", "1.5"),
            ("1e999", "1e999"),
        ] {
            assert_eq!(shortest(raw.as_bytes()), want, "{raw}");
        }
    }
}
