//! JSON as Go's encoder writes it, which is what prompts are hashed over.

use super::{Kind, Value, number, unescape};

/// A string with quotes, from what stands between the quotes of another.
pub(crate) fn string(quoted: &[u8], put: &mut impl FnMut(&[u8])) {
    put(b"\"");
    unescape(quoted, &mut |run| escaped(run, put));
    put(b"\"");
}

fn escaped(run: &[u8], put: &mut impl FnMut(&[u8])) {
    let mut done = 0;
    for (at, byte) in run.iter().enumerate() {
        let mut buffer = *b"\\u0000";
        let (escape, length): (&[u8], usize) = match byte {
            b'"' => (b"\\\"", 1),
            b'\\' => (b"\\\\", 1),
            8 => (b"\\b", 1),
            12 => (b"\\f", 1),
            b'\n' => (b"\\n", 1),
            b'\r' => (b"\\r", 1),
            b'\t' => (b"\\t", 1),
            0..0x20 | b'<' | b'>' | b'&' => {
                const DIGITS: [u8; 16] = *b"0123456789abcdef";
                buffer[4] = DIGITS[usize::from(byte >> 4)];
                buffer[5] = DIGITS[usize::from(byte & 15)];
                (&buffer, 1)
            }
            0xE2 => match run.get(at + 1..at + 3) {
                Some([0x80, 0xA8]) => (b"\\u2028", 3),
                Some([0x80, 0xA9]) => (b"\\u2029", 3),
                _ => continue,
            },
            _ => continue,
        };
        put(&run[done..at]);
        put(escape);
        done = at + length;
    }
    put(&run[done..]);
}

/// Any value: compact, keys sorted, numbers as the shortest that reads back the same.
pub(crate) fn generic(value: Value<'_>, put: &mut impl FnMut(&[u8])) {
    // Nesting may be deeper than the stack of a thread.
    let mut open = vec![Frame::list(std::iter::once(value))];
    while let Some(frame) = open.last_mut() {
        let object = frame.object;
        let Some((key, value)) = frame.rest.next() else {
            open.pop();
            if !open.is_empty() {
                put(if object { b"}" } else { b"]" });
            }
            continue;
        };
        if !std::mem::take(&mut frame.first) {
            put(b",");
        }
        if let Some(key) = key {
            string(key.quoted(), put);
            put(b":");
        }
        match value.kind() {
            Kind::Text => string(value.quoted(), put),
            Kind::Number => put(number::shortest(value.raw()).as_bytes()),
            Kind::Word | Kind::Null => put(value.raw()),
            Kind::List => {
                put(b"[");
                open.push(Frame::list(value.inside()));
            }
            Kind::Object => {
                put(b"{");
                open.push(Frame::object(value));
            }
        }
    }
}

struct Frame<'t> {
    object: bool,
    first: bool,
    rest: std::vec::IntoIter<(Option<Value<'t>>, Value<'t>)>,
}

impl<'t> Frame<'t> {
    fn list(values: impl Iterator<Item = Value<'t>>) -> Self {
        let values: Vec<_> = values.map(|value| (None, value)).collect();
        Self { object: false, first: true, rest: values.into_iter() }
    }

    /// By key; of several of one name only the last.
    fn object(value: Value<'t>) -> Self {
        let mut members: Vec<_> =
            value.members().map(|(key, value)| (key.text(), key, value)).collect();
        members.reverse();
        members.sort_by(|(left, ..), (right, ..)| left.cmp(right));
        members.dedup_by(|(right, ..), (left, ..)| left == right);
        let members: Vec<_> =
            members.into_iter().map(|(_, key, value)| (Some(key), value)).collect();
        Self { object: true, first: true, rest: members.into_iter() }
    }
}
