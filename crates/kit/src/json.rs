//! JSON with the bytes that Go's encoder gives: digests depend on each of them.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;

/// Without blanks. What cannot be JSON, such as a map whose keys are no texts, is an error.
pub(crate) fn to_bytes(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Go))?;
    Ok(bytes)
}

struct Go;

impl Formatter for Go {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(number(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut plain = 0;
        for (at, found) in fragment.match_indices(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            writer.write_all(&fragment.as_bytes()[plain..at])?;
            for code in found.encode_utf16() {
                write!(writer, "\\u{code:04x}")?;
            }
            plain = at + found.len();
        }
        writer.write_all(&fragment.as_bytes()[plain..])
    }
}

/// The fewest digits that mean this number; with an exponent only if it is very large or very small.
fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        // A sign always, as in `1e+21`.
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => text,
        };
    }
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (value, want) in [
            (0.5, "0.5"),
            (1.0, "1"),
            (-0.0, "-0"),
            (100_000.0, "100000"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-2.5e22, "-2.5e+22"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            assert_eq!(number(value), want, "{value:?}");
        }
    }

    #[test]
    fn texts_are_escaped_as_go_escapes_them() {
        let value = json!(["A <a@b> & \u{2028}é\u{1}\n\t\"\\"]);
        let bytes = to_bytes(&value).unwrap();
        let want = "[\"A \\u003ca@b\\u003e \\u0026 \\u2028é\\u0001\\n\\t\\\"\\\\\"]";
        assert_eq!(String::from_utf8(bytes).unwrap(), want);
    }
}
