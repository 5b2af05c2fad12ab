//! Finds results among other text.
//!
//! Each `[` is a possible start, and how far a start reaches is known only once it is read. What is
//! a JSON array is passed over as a whole, whether it is a result or not: the lists within a
//! rejected result must not be taken for results. What is none may be tried again from its next
//! `[`, so nested beginnings without an end would take quadratic time; a budget of bytes ends that.
//!
//! Elements are read one by one, and only the first is kept: parsed JSON takes many times the room of
//! its text.

use std::io::Read;

use serde_json::{Deserializer, Value};

use super::{Discovered, Fields, MAX_ELEMENT, result};

const KEYS: [&str; 3] = ["filename", "profile", "models"];

/// Bytes that may be parsed per byte of the log. An honest log needs hardly more than one: text in
/// brackets ends its try at once, and a result is read a single time.
const TRIES: u64 = 4;

/// What a log may always have, however short it is.
const LEAST_BUDGET: u64 = 1 << 20;

/// What may still be done for a log.
#[derive(Debug)]
pub(super) struct Effort {
    /// Bytes that may be parsed.
    pub(super) left: u64,
    /// Whether something was given up because it is too long.
    pub(super) too_long: bool,
}

impl Effort {
    pub(super) fn for_a_log_of(bytes: usize) -> Self {
        Self { left: (TRIES * bytes as u64).max(LEAST_BUDGET), too_long: false }
    }
}

/// What counts of an array.
#[derive(Debug, Default)]
pub(super) struct Array {
    pub(super) elements: usize,
    /// Of the first element; nothing if one of them is no result.
    pub(super) result: Option<Discovered>,
    /// Whether the first element has a key of a result.
    is_named: bool,
}

impl Array {
    /// All results must be well-formed, though only the first counts.
    fn add(&mut self, element: &Value) {
        let decoded = result(element).ok();
        if self.elements == 0 {
            let fields = Fields::of(Some(element));
            self.is_named =
                fields.is_ok_and(|fields| KEYS.iter().any(|key| fields.get(key).is_some()));
            self.result = decoded;
        } else if decoded.is_none() {
            self.result = None;
        }
        self.elements += 1;
    }
}

/// The last array in the text that is a result. Stops when the effort is spent.
///
/// Between other text, an array counts only if it has a key of a result: every key is optional, so
/// any list of objects would do, such as one that is left of a result whose end is missing.
pub(super) fn last_result(text: &str, effort: &mut Effort) -> Option<Discovered> {
    let bytes = text.as_bytes();
    let mut found = None;
    let mut from = 0;
    while effort.left > 0
        && let Some(start) = next_start(bytes, from)
    {
        from = start + 1;
        if let Some((array, length)) = array(&bytes[start..], effort) {
            from = start + length;
            found = array.result.filter(|_| array.is_named).or(found);
        }
    }
    found
}

/// Position of the next `[` before a `{`: a result is an object.
fn next_start(bytes: &[u8], from: usize) -> Option<usize> {
    let mut bracket = None;
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b'[' => bracket = Some(at),
            b'{' if bracket.is_some() => return bracket,
            byte if byte.is_ascii_whitespace() => {}
            _ => bracket = None,
        }
    }
    None
}

/// The array at the beginning of the text, and its length.
pub(super) fn array(bytes: &[u8], effort: &mut Effort) -> Option<(Array, usize)> {
    let after_blanks = |at: usize| {
        let rest = bytes.get(at..)?;
        Some(at + rest.iter().position(|byte| !b" \t\r\n".contains(byte))?)
    };
    let mut array = Array::default();
    let mut at = after_blanks(bytes.first().filter(|byte| **byte == b'[').map(|_| 1)?)?;
    if bytes[at] == b']' {
        return Some((array, at + 1));
    }
    loop {
        let (element, length) = element(&bytes[at..], effort)?;
        array.add(&element);
        at = after_blanks(at + length)?;
        match bytes[at] {
            b',' => at += 1,
            b']' => return Some((array, at + 1)),
            _ => return None,
        }
    }
}

/// The value at the beginning of the text, blanks aside, and where it ends.
fn element(bytes: &[u8], effort: &mut Effort) -> Option<(Value, usize)> {
    let limit = effort.left.min(MAX_ELEMENT as u64);
    let mut reader = bytes.take(limit);
    let mut values = Deserializer::from_reader(&mut reader).into_iter();
    let value = values.next();
    let length = values.byte_offset();
    drop(values);
    effort.left -= limit - reader.limit();
    let cut = limit == MAX_ELEMENT as u64 && reader.limit() == 0 && bytes.len() > MAX_ELEMENT;
    let value = value?.ok();
    effort.too_long |= cut && value.is_none();
    Some((value?, length))
}
