//! Finds the members of a request body that matter, while it arrives.
//!
//! A resumable state machine over bytes. It checks the whole grammar of JSON but builds no tree: what
//! it leaves behind are the places of a few top-level members.

use std::{borrow::Cow, ops::Range};

use crate::json;

/// Top-level members of a request that the picker reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    Model,
    Prompt,
    Messages,
    Input,
    Instructions,
    Tools,
    Items,
    CacheSalt,
    Stream,
}

const MEMBERS: [(&[u8], Member); 9] = [
    (b"model", Member::Model),
    (b"prompt", Member::Prompt),
    (b"messages", Member::Messages),
    (b"input", Member::Input),
    (b"instructions", Member::Instructions),
    (b"tools", Member::Tools),
    (b"items", Member::Items),
    (b"cache_salt", Member::CacheSalt),
    (b"stream", Member::Stream),
];

/// Deeper nesting is refused.
const MAX_DEPTH: usize = 10_000;
/// The longest member with every letter escaped.
const MAX_KEY: usize = 6 * 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Object,
    /// Counts as an object without members.
    Null,
    /// Not JSON, or no object.
    Refused,
    /// So far it was the beginning of an object.
    Unfinished,
}

#[derive(Clone, Debug)]
pub(crate) struct Scanner {
    state: State,
    /// Where the next chunk begins.
    offset: usize,
    /// One bit for each open container: set for an object.
    kinds: Vec<u64>,
    depth: usize,
    root: Root,
    /// The last key of the outermost object, as written.
    key: Vec<u8>,
    /// Whether the text that is being read is a key.
    in_key: bool,
    /// The member being read, and where its value began.
    open: Option<(Member, usize)>,
    found: [Option<(usize, usize)>; MEMBERS.len()],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    Unknown,
    Object,
    Null,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    FirstItem,
    FirstKey,
    Key,
    Colon,
    /// A comma or the end of the container.
    After,
    Text,
    Escape,
    /// Hexadecimal digits still to come.
    Unicode(u8),
    /// What is left of `true`, `false` or `null`.
    Word(&'static [u8]),
    Number(Number),
    End,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
}

impl Default for Scanner {
    fn default() -> Self {
        Self {
            state: State::Value,
            offset: 0,
            kinds: Vec::new(),
            depth: 0,
            root: Root::Unknown,
            key: Vec::new(),
            in_key: false,
            open: None,
            found: [None; MEMBERS.len()],
        }
    }
}

impl Scanner {
    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        let mut at = 0;
        while at < chunk.len() {
            match self.state {
                State::Failed => return,
                State::Text => at = self.text(chunk, at),
                _ => {
                    self.step(chunk[at], self.offset + at);
                    at += 1;
                }
            }
        }
        self.offset += chunk.len();
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match (self.state, self.root) {
            (State::End, Root::Object) => Verdict::Object,
            (State::End, Root::Null) => Verdict::Null,
            (State::End | State::Failed, _) | (_, Root::Other) => Verdict::Refused,
            _ => Verdict::Unfinished,
        }
    }

    /// Where the value of this member is; of several of one name, the last.
    pub(crate) fn span(&self, member: Member) -> Option<Range<usize>> {
        self.found[member as usize].map(|(start, end)| start..end)
    }

    /// Where the value begins that was not over when the bytes ended.
    pub(crate) fn unfinished(&self) -> Option<(Member, usize)> {
        self.open
    }

    fn text(&mut self, chunk: &[u8], from: usize) -> usize {
        let rest = &chunk[from..];
        let run = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        // No early exit: this way the compiler checks many bytes at a time.
        if rest[..run].iter().fold(false, |bad, byte| bad | (*byte < 0x20)) {
            self.state = State::Failed;
            return chunk.len();
        }
        self.keep(&rest[..run]);
        match rest.get(run) {
            None => chunk.len(),
            Some(b'"') => {
                let next = from + run + 1;
                if self.in_key {
                    self.state = State::Colon;
                } else {
                    self.value_ended(self.offset + next);
                }
                next
            }
            Some(byte) => {
                self.keep(&[*byte]);
                self.state = State::Escape;
                from + run + 1
            }
        }
    }

    /// Keys of the outermost object are kept until their colon; one byte too many marks a key as
    /// none of ours.
    fn keep(&mut self, bytes: &[u8]) {
        if self.in_key && self.depth == 1 {
            let room = (MAX_KEY + 1).saturating_sub(self.key.len());
            self.key.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn step(&mut self, byte: u8, at: usize) {
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        self.state = match self.state {
            State::Number(number) => return self.number(number, byte, at),
            State::Word(rest) => return self.word(rest, byte, at),
            State::Escape => {
                self.keep(&[byte]);
                match byte {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => State::Text,
                    b'u' => State::Unicode(4),
                    _ => State::Failed,
                }
            }
            State::Unicode(left) => {
                self.keep(&[byte]);
                match (byte.is_ascii_hexdigit(), left) {
                    (false, _) => State::Failed,
                    (true, ..=1) => State::Text,
                    (true, _) => State::Unicode(left - 1),
                }
            }
            state if space => state,
            State::Value => return self.value(byte, at),
            State::FirstItem if byte == b']' => return self.close(false, at),
            State::FirstItem => return self.value(byte, at),
            State::FirstKey if byte == b'}' => return self.close(true, at),
            State::FirstKey | State::Key if byte == b'"' => {
                self.in_key = true;
                self.key.clear();
                State::Text
            }
            State::Colon if byte == b':' => {
                self.in_key = false;
                State::Value
            }
            State::After => match byte {
                b',' if self.in_object() => State::Key,
                b',' => State::Value,
                b'}' => return self.close(true, at),
                b']' => return self.close(false, at),
                _ => State::Failed,
            },
            _ => State::Failed,
        };
    }

    fn value(&mut self, byte: u8, at: usize) {
        match self.depth {
            0 => self.root = root(byte),
            1 if self.in_object() => self.open = member(&self.key).map(|member| (member, at)),
            _ => {}
        }
        self.state = match byte {
            b'"' => {
                self.in_key = false;
                State::Text
            }
            b'{' => self.push(true),
            b'[' => self.push(false),
            b't' => State::Word(b"rue"),
            b'f' => State::Word(b"alse"),
            b'n' => State::Word(b"ull"),
            b'-' => State::Number(Number::Minus),
            b'0' => State::Number(Number::Zero),
            b'1'..=b'9' => State::Number(Number::Whole),
            _ => State::Failed,
        };
    }

    fn word(&mut self, rest: &'static [u8], byte: u8, at: usize) {
        match rest {
            [only] if *only == byte => self.value_ended(at + 1),
            [first, rest @ ..] if *first == byte => self.state = State::Word(rest),
            _ => self.state = State::Failed,
        }
    }

    fn number(&mut self, number: Number, byte: u8, at: usize) {
        use Number::{Exponent, Fraction, Minus, Point, Power, Sign, Whole, Zero};
        let next = match (number, byte) {
            (Minus, b'0') => Zero,
            (Minus, b'1'..=b'9') => Whole,
            (Whole | Fraction | Power, b'0'..=b'9') => number,
            (Zero | Whole, b'.') => Point,
            (Point, b'0'..=b'9') => Fraction,
            (Zero | Whole | Fraction, b'e' | b'E') => Exponent,
            (Exponent, b'+' | b'-') => Sign,
            (Exponent | Sign, b'0'..=b'9') => Power,
            (Zero | Whole | Fraction | Power, _) => {
                self.value_ended(at);
                return self.step(byte, at);
            }
            _ => {
                self.state = State::Failed;
                return;
            }
        };
        self.state = State::Number(next);
    }

    fn value_ended(&mut self, end: usize) {
        if self.depth == 1
            && let Some((member, start)) = self.open.take()
        {
            self.found[member as usize] = Some((start, end));
        }
        self.state = if self.depth == 0 { State::End } else { State::After };
    }

    fn in_object(&self) -> bool {
        let Some(top) = self.depth.checked_sub(1) else { return false };
        self.kinds.get(top / 64).is_some_and(|word| word >> (top % 64) & 1 == 1)
    }

    fn push(&mut self, object: bool) -> State {
        if self.depth >= MAX_DEPTH {
            return State::Failed;
        }
        let (word, bit) = (self.depth / 64, 1 << (self.depth % 64));
        if word == self.kinds.len() {
            self.kinds.push(0);
        }
        if object {
            self.kinds[word] |= bit;
        } else {
            self.kinds[word] &= !bit;
        }
        self.depth += 1;
        if object { State::FirstKey } else { State::FirstItem }
    }

    fn close(&mut self, object: bool, at: usize) {
        if self.depth == 0 || self.in_object() != object {
            self.state = State::Failed;
            return;
        }
        self.depth -= 1;
        self.value_ended(at + 1);
    }
}

fn root(byte: u8) -> Root {
    match byte {
        b'{' => Root::Object,
        b'n' => Root::Null,
        _ => Root::Other,
    }
}

fn member(key: &[u8]) -> Option<Member> {
    let key = if key.contains(&b'\\') {
        let mut plain = Vec::new();
        json::unescape(key, &mut |run| plain.extend_from_slice(run));
        Cow::Owned(plain)
    } else {
        Cow::Borrowed(key)
    };
    MEMBERS.iter().find(|(name, _)| *name == key.as_ref()).map(|(_, member)| *member)
}

#[cfg(test)]
mod tests;
