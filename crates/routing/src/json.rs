//! JSON without a tree: a flat list of where its values are.

mod number;
#[cfg(test)]
mod tests;
mod write;

use std::borrow::Cow;

pub(crate) use write::{generic, string};

/// The values of one JSON text, in the order in which they stand there.
///
/// The text is taken to be JSON. What is not gives fewer or odd values, never a failure.
pub(crate) struct Tape<'a> {
    text: &'a [u8],
    nodes: Vec<Node>,
}

#[derive(Clone, Copy)]
struct Node {
    kind: Kind,
    start: u32,
    end: u32,
    /// The node after this one and all that is in it.
    next: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Word,
    Null,
    List,
    Object,
}

#[derive(Clone, Copy)]
pub(crate) struct Value<'t> {
    tape: &'t Tape<'t>,
    at: usize,
}

impl<'a> Tape<'a> {
    /// `None` for a text that ends too early or is longer than 4 GiB.
    pub(crate) fn read(text: &'a [u8]) -> Option<Self> {
        let length = u32::try_from(text.len()).ok()?;
        let (mut nodes, mut open) = (Vec::<Node>::new(), Vec::new());
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            let start = at;
            let kind = match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' => {
                    at += 1;
                    continue;
                }
                b'}' | b']' => {
                    at += 1;
                    let container: usize = open.pop()?;
                    let next = u32::try_from(nodes.len()).ok()?;
                    let node = nodes.get_mut(container)?;
                    (node.end, node.next) = (u32::try_from(at).ok()?, next);
                    continue;
                }
                b'{' | b'[' => {
                    open.push(nodes.len());
                    at += 1;
                    if *byte == b'{' { Kind::Object } else { Kind::List }
                }
                b'"' => {
                    at = text_end(text, at + 1)?;
                    Kind::Text
                }
                _ => {
                    at = scalar_end(text, at);
                    match byte {
                        b'n' => Kind::Null,
                        b't' | b'f' => Kind::Word,
                        _ => Kind::Number,
                    }
                }
            };
            let next = u32::try_from(nodes.len() + 1).ok()?;
            let (start, end) = (u32::try_from(start).unwrap_or(length), u32::try_from(at).ok()?);
            nodes.push(Node { kind, start, end, next });
        }
        (open.is_empty() && !nodes.is_empty()).then_some(Self { text, nodes })
    }

    pub(crate) fn root(&self) -> Value<'_> {
        Value { tape: self, at: 0 }
    }
}

/// Behind the closing quote.
fn text_end(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        match text[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

fn scalar_end(text: &[u8], start: usize) -> usize {
    let ends = |byte: &u8| {
        matches!(
            byte,
            b',' | b']' | b'}' | b':' | b'"' | b'[' | b'{' | b' ' | b'\t' | b'\r' | b'\n'
        )
    };
    let rest = &text[start..];
    start + rest.iter().position(ends).unwrap_or(rest.len()).max(1)
}

impl<'t> Value<'t> {
    fn node(self) -> Node {
        let none = Node { kind: Kind::Null, start: 0, end: 0, next: u32::MAX };
        self.tape.nodes.get(self.at).copied().unwrap_or(none)
    }

    pub(crate) fn kind(self) -> Kind {
        self.node().kind
    }

    /// As it is written.
    pub(crate) fn raw(self) -> &'t [u8] {
        let node = self.node();
        self.tape.text.get(node.start as usize..node.end as usize).unwrap_or_default()
    }

    /// What is between the quotes, as it is written. Nothing for what is no text.
    pub(crate) fn quoted(self) -> &'t [u8] {
        match (self.kind(), self.raw()) {
            (Kind::Text, [b'"', inner @ .., b'"']) => inner,
            _ => &[],
        }
    }

    pub(crate) fn text(self) -> Cow<'t, [u8]> {
        unescaped(self.quoted())
    }

    /// The values directly inside; of an object, keys and values in turn.
    pub(crate) fn inside(self) -> impl Iterator<Item = Value<'t>> {
        let node = self.node();
        let end =
            if matches!(node.kind, Kind::List | Kind::Object) { node.next as usize } else { 0 };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let value = (at < end).then_some(Value { tape: self.tape, at })?;
            at = (value.node().next as usize).max(at + 1);
            Some(value)
        })
    }

    /// Keys and values of an object.
    pub(crate) fn members(self) -> impl Iterator<Item = (Value<'t>, Value<'t>)> {
        let mut inside = self.inside();
        std::iter::from_fn(move || Some((inside.next()?, inside.next()?)))
    }

    /// The last member of this name, if it is not null.
    pub(crate) fn get(self, name: &str) -> Option<Value<'t>> {
        if self.kind() != Kind::Object {
            return None;
        }
        let named = self.members().filter(|(key, _)| key.text().as_ref() == name.as_bytes());
        named.last().map(|(_, value)| value).filter(|value| value.kind() != Kind::Null)
    }
}

/// The meaning of what stands between two quotes.
pub(crate) fn unescaped(quoted: &[u8]) -> Cow<'_, [u8]> {
    if !quoted.contains(&b'\\') && std::str::from_utf8(quoted).is_ok() {
        return Cow::Borrowed(quoted);
    }
    let mut plain = Vec::with_capacity(quoted.len());
    unescape(quoted, &mut |run| plain.extend_from_slice(run));
    Cow::Owned(plain)
}

/// Gives the meaning of what stands between two quotes, piece by piece. What is no Unicode becomes
/// U+FFFD, byte by byte.
pub(crate) fn unescape(quoted: &[u8], put: &mut impl FnMut(&[u8])) {
    let mut rest = quoted;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        unicode(&rest[..at], put);
        let (letter, used) = escape(&rest[at..]);
        put(letter.encode_utf8(&mut [0; 4]).as_bytes());
        rest = rest.get(at + used..).unwrap_or_default();
    }
    unicode(rest, put);
}

fn unicode(run: &[u8], put: &mut impl FnMut(&[u8])) {
    for chunk in run.utf8_chunks() {
        put(chunk.valid().as_bytes());
        for _ in chunk.invalid() {
            put("\u{fffd}".as_bytes());
        }
    }
}

/// The letter that an escape stands for, and how many bytes the escape has.
fn escape(from: &[u8]) -> (char, usize) {
    let letter = match from.get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode_escape(from),
        Some(other) => char::from(*other),
        None => return (char::REPLACEMENT_CHARACTER, 1),
    };
    (letter, 2)
}

fn unicode_escape(from: &[u8]) -> (char, usize) {
    let unit = |at: usize| -> Option<u32> {
        let [b'\\', b'u', digits @ ..] = from.get(at..at + 6)? else { return None };
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let Some(first) = unit(0) else { return (char::REPLACEMENT_CHARACTER, from.len().min(6)) };
    if let (0xD800..0xDC00, Some(second @ 0xDC00..0xE000)) = (first, unit(6)) {
        let joined = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return (char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}
