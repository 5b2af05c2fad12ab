//! JSON as Go's `encoding/json` reads it, in its words where it does not. Where the two readers differ in
//! what they take (halves of surrogates, very large numbers), serde says so in its own.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

const END: &str = "unexpected end of JSON input";
/// How deep Go reads.
const DEEPEST: usize = 10_000;

/// What is wrong with the text; nothing if it is JSON.
pub(super) fn problem(bytes: &[u8]) -> Option<String> {
    Scanner { rest: bytes, open: Vec::new() }.document().err()
}

#[derive(Clone, Copy)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    /// What follows a value.
    Rest,
}

struct Scanner<'a> {
    rest: &'a [u8],
    /// The brackets that are open.
    open: Vec<u8>,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), String> {
        let mut next = Next::Value;
        loop {
            let byte = match self.take() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => continue,
                Some(byte) => byte,
                None if matches!(next, Next::Rest) && self.open.is_empty() => return Ok(()),
                None => return Err(END.into()),
            };
            next = match next {
                Next::ValueOrEnd if byte == b']' => self.close(),
                Next::Value | Next::ValueOrEnd => self.value(byte)?,
                Next::KeyOrEnd if byte == b'}' => self.close(),
                Next::Key | Next::KeyOrEnd if byte == b'"' => {
                    self.string()?;
                    Next::Colon
                }
                Next::Key | Next::KeyOrEnd => {
                    return wrong(byte, "looking for beginning of object key string");
                }
                Next::Colon if byte == b':' => Next::Value,
                Next::Colon => return wrong(byte, "after object key"),
                Next::Rest => self.rest(byte)?,
            };
        }
    }

    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Go puts a blank behind the end, and minds that first.
    fn take_or_blank(&mut self) -> u8 {
        self.take().unwrap_or(b' ')
    }

    fn close(&mut self) -> Next {
        self.open.pop();
        Next::Rest
    }

    fn value(&mut self, byte: u8) -> Result<Next, String> {
        match byte {
            b'{' | b'[' => {
                self.open.push(byte);
                if self.open.len() > DEEPEST {
                    return Err("exceeded max depth".into());
                }
                return Ok(if byte == b'{' { Next::KeyOrEnd } else { Next::ValueOrEnd });
            }
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number(byte)?,
            b't' => self.literal("true")?,
            b'f' => self.literal("false")?,
            b'n' => self.literal("null")?,
            other => return wrong(other, "looking for beginning of value"),
        }
        Ok(Next::Rest)
    }

    fn rest(&mut self, byte: u8) -> Result<Next, String> {
        match (self.open.last(), byte) {
            (Some(b'{'), b',') => Ok(Next::Key),
            (Some(b'['), b',') => Ok(Next::Value),
            (Some(b'{'), b'}') | (Some(b'['), b']') => Ok(self.close()),
            (Some(b'{'), _) => wrong(byte, "after object key:value pair"),
            (Some(_), _) => wrong(byte, "after array element"),
            (None, _) => wrong(byte, "after top-level value"),
        }
    }

    fn string(&mut self) -> Result<(), String> {
        loop {
            match self.take().ok_or(END)? {
                b'"' => return Ok(()),
                b'\\' => match self.take_or_blank() {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let digit = self.take_or_blank();
                            if !digit.is_ascii_hexdigit() {
                                return wrong(digit, "in \\u hexadecimal character escape");
                            }
                        }
                    }
                    other => return wrong(other, "in string escape code"),
                },
                control @ ..0x20 => return wrong(control, "in string literal"),
                _ => {}
            }
        }
    }

    fn number(&mut self, first: u8) -> Result<(), String> {
        let mut first = first;
        if first == b'-' {
            first = self.take_or_blank();
            if !first.is_ascii_digit() {
                return wrong(first, "in numeric literal");
            }
        }
        if first != b'0' {
            self.digits();
        }
        if self.rest.first() == Some(&b'.') {
            self.take();
            self.first_digit("after decimal point in numeric literal")?;
        }
        if matches!(self.rest.first(), Some(b'e' | b'E')) {
            self.take();
            if matches!(self.rest.first(), Some(b'+' | b'-')) {
                self.take();
            }
            self.first_digit("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn first_digit(&mut self, place: &str) -> Result<(), String> {
        let digit = self.take_or_blank();
        if !digit.is_ascii_digit() {
            return wrong(digit, place);
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while self.rest.first().is_some_and(u8::is_ascii_digit) {
            self.take();
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for wanted in word.bytes().skip(1) {
            let byte = self.take_or_blank();
            if byte != wanted {
                let wanted = char::from(wanted);
                return wrong(byte, &format!("in literal {word} (expecting '{wanted}')"));
            }
        }
        Ok(())
    }
}

fn wrong<T>(byte: u8, place: &str) -> Result<T, String> {
    Err(format!("invalid character {} {place}", quoted(byte)))
}

/// As Go quotes a byte, which it takes for a letter.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".into(),
        b'\\' => r"'\\'".into(),
        0x07 => r"'\a'".into(),
        0x08 => r"'\b'".into(),
        b'\t' => r"'\t'".into(),
        b'\n' => r"'\n'".into(),
        0x0b => r"'\v'".into(),
        0x0c => r"'\f'".into(),
        b'\r' => r"'\r'".into(),
        ..0x20 | 0x7f => format!(r"'\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!(r"'\u{byte:04x}'"),
        letter => format!("'{}'", char::from(letter)),
    }
}

/// The fields of an object in their order, or what it is instead.
pub(super) fn fields(bytes: &[u8]) -> Result<Result<Vec<(String, Value)>, Value>, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if !value.is_object() {
        return Ok(Err(value));
    }
    let Fields(fields) = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    Ok(Ok(fields))
}

struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Vec<(String, Value)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those of Go 1.26.
    #[test]
    fn what_is_no_json_is_told_as_go_tells_it() {
        for (text, want) in [
            ("", END),
            (" ", END),
            ("{", END),
            (r#"{"v":"meta"#, END),
            (r#"{"v":1"#, END),
            ("nul", "invalid character ' ' in literal null (expecting 'l')"),
            ("-", "invalid character ' ' in numeric literal"),
            ("1e+", "invalid character ' ' in exponent of numeric literal"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("{}{}", "invalid character '{' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("1.5x", "invalid character 'x' after top-level value"),
            ("{}\0", r"invalid character '\x00' after top-level value"),
            ("{v:1}", "invalid character 'v' looking for beginning of object key string"),
            (r#"{"v":1,}"#, "invalid character '}' looking for beginning of object key string"),
            ("{]", "invalid character ']' looking for beginning of object key string"),
            (r#"{"v"}"#, "invalid character '}' after object key"),
            (r#"{"v":1 "rv":2}"#, "invalid character '\"' after object key:value pair"),
            (r#"{"v":}"#, "invalid character '}' looking for beginning of value"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("[}", "invalid character '}' looking for beginning of value"),
            ("[1 2]", "invalid character '2' after array element"),
            ("nulx", "invalid character 'x' in literal null (expecting 'l')"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            (r#""\q""#, "invalid character 'q' in string escape code"),
            (r#""\u00g0""#, r"invalid character 'g' in \u hexadecimal character escape"),
            ("\"a\nb\"", r"invalid character '\n' in string literal"),
            ("'x'", r"invalid character '\'' looking for beginning of value"),
            ("\\x", r"invalid character '\\' looking for beginning of value"),
            ("\u{7f}", r"invalid character '\x7f' looking for beginning of value"),
        ] {
            assert_eq!(problem(text.as_bytes()).as_deref(), Some(want), "{text}");
        }
        for text in ["{}", " [1, -0.5e3, \"\\u00e9\", true, null, {\"a\": []}] ", "null", "0"] {
            assert_eq!(problem(text.as_bytes()), None, "{text}");
        }
        assert_eq!(problem(&[b'['; 20_000]).as_deref(), Some("exceeded max depth"));
    }
}
