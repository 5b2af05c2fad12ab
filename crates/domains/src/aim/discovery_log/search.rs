//! Finds results among other text.
//!
//! Each `[` is a possible start, and how far a start reaches is known only once it is read. What is
//! a JSON array is passed over as a whole, whether it is a result or not: the lists within a
//! rejected result must not be taken for results. What is none may be tried again from its next
//! `[`, so nested beginnings without an end would take quadratic time; a budget of bytes ends that.

use std::io::Read;

use serde_json::{Deserializer, Value};

use super::{Discovered, Fields, MAX_RESULT, first};

const KEYS: [&str; 3] = ["filename", "profile", "models"];

/// Bytes that may be parsed per byte of the log. An honest log needs hardly more than one: text in
/// brackets ends its try at once, and a result is read a single time.
const TRIES: u64 = 4;

/// What a log may always have, however short it is.
const LEAST_BUDGET: u64 = 1 << 20;

pub(super) fn budget(log: usize) -> u64 {
    (TRIES * log as u64).max(LEAST_BUDGET)
}

/// The last array in the text that is a result. Takes from the budget each byte that is parsed, and
/// stops when there is none left.
pub(super) fn last_result(text: &str, budget: &mut u64) -> Option<Discovered> {
    let bytes = text.as_bytes();
    let mut found = None;
    let mut from = 0;
    while *budget > 0
        && let Some(start) = next_start(bytes, from)
    {
        from = start + 1;
        if let Some((value, length)) = array(&bytes[start..], budget) {
            from = start + length;
            found = discovered(&value).or(found);
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
fn array(bytes: &[u8], budget: &mut u64) -> Option<(Value, usize)> {
    let limit = (*budget).min(MAX_RESULT as u64);
    let mut reader = bytes.take(limit);
    let mut values = Deserializer::from_reader(&mut reader).into_iter();
    let value = values.next();
    let length = values.byte_offset();
    drop(values);
    *budget -= limit - reader.limit();
    Some((value?.ok()?, length))
}

/// Between other text, an array counts only if it has a key of a result: every key is optional, so
/// any list of objects would do, such as one that is left of a result whose end is missing.
fn discovered(value: &Value) -> Option<Discovered> {
    let results = value.as_array()?;
    let result = Fields::of(results.first()).ok()?;
    KEYS.iter().find(|key| result.get(key).is_some())?;
    first(results).ok()
}
