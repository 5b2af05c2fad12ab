//! What a request asks the model, as the bytes that prefixes are compared by.

mod chat;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::{
    body::Body,
    config::Dialect,
    json::{self, Kind, Tape},
    scan::Member,
};

/// Which of the APIs a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Conversations,
    Responses,
    Chat,
    Completions,
    /// Any other path; nothing is demanded of its body.
    Other,
}

impl Api {
    /// By the first name that is found anywhere in the path.
    pub(crate) fn of(path: &str) -> Self {
        let names = [
            ("/v1/conversations", Self::Conversations),
            ("/v1/responses", Self::Responses),
            ("/v1/chat/completions", Self::Chat),
            ("/v1/completions", Self::Completions),
        ];
        names.iter().find(|(name, _)| path.contains(name)).map_or(Self::Other, |(_, api)| *api)
    }
}

/// The bytes of a prompt, or of several that are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// The first bytes, no more than were asked for.
    pub(crate) kept: Vec<u8>,
    /// Of all bytes.
    pub(crate) length: usize,
}

impl Input {
    /// Tokens are taken to have four bytes.
    pub(crate) fn tokens(&self, dialect: Dialect) -> usize {
        let of = |part: &Part| match dialect {
            Dialect::Gaie => part.length / 4,
            Dialect::LlmD => part.length.div_ceil(4),
        };
        self.parts.iter().map(of).sum()
    }
}

/// How input is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) dialect: Dialect,
    /// How many bytes of each part are kept.
    pub(crate) limit: usize,
    /// Refuses what the Go picker refuses.
    pub(crate) strict: bool,
}

/// Why a body cannot be used.
pub(crate) type Unusable = &'static str;

pub(crate) const NO_PROMPT: Unusable = "invalid completions request: must have prompt field";
pub(crate) const NO_MESSAGES: Unusable =
    "invalid chat completions request: must have valid messages field";
pub(crate) const NO_INPUT: Unusable = "invalid responses request: must have input field";
pub(crate) const NO_ITEMS: Unusable = "invalid conversations request: must have items field";

pub(crate) fn read(api: Api, body: &Body, reading: Reading) -> Result<Input, Unusable> {
    let found = match api {
        Api::Completions => completions(body, reading).ok_or(NO_PROMPT),
        Api::Chat => chat::messages(body, reading).ok_or(NO_MESSAGES),
        Api::Responses => responses(body, reading).ok_or(NO_INPUT),
        Api::Conversations => conversations(body, reading).ok_or(NO_ITEMS),
        Api::Other => {
            let prompt = completions(body, reading).or_else(|| chat::messages(body, reading));
            return Ok(prompt.unwrap_or_default());
        }
    };
    // What is missing may be in the part that was not shown.
    if body.is_cut() { Ok(found.unwrap_or_default()) } else { found }
}

fn completions(body: &Body, reading: Reading) -> Option<Input> {
    let raw = body.member(Member::Prompt).or_else(|| body.beginning(Member::Prompt))?;
    match raw.as_ref() {
        [b'"', quoted @ ..] => {
            let quoted = quoted.strip_suffix(b"\"").unwrap_or(quoted);
            (!quoted.is_empty()).then(|| Input { parts: vec![text(quoted, reading)] })
        }
        [b'[', ..] if !reading.strict => list(&raw, reading),
        _ => None,
    }
}

/// Several prompts, or one or more in tokens. Tokens are compared as they are written.
fn list(raw: &[u8], reading: Reading) -> Option<Input> {
    let tape = Tape::read(raw)?;
    let prompts: Vec<_> = tape.root().inside().collect();
    let first = prompts.first()?;
    let raw = |bytes: &[u8]| {
        let mut part = Part::default();
        part.put(bytes, reading.limit);
        part
    };
    let parts = match first.kind() {
        Kind::Number => vec![raw(tape.root().raw())],
        _ => prompts
            .iter()
            .map(|prompt| match prompt.kind() {
                Kind::Text => text(prompt.quoted(), reading),
                _ => raw(prompt.raw()),
            })
            .collect(),
    };
    Some(Input { parts })
}

fn text(quoted: &[u8], reading: Reading) -> Part {
    let mut part = Part::default();
    json::unescape(quoted, &mut |run| part.put(run, reading.limit));
    part
}

impl Part {
    fn put(&mut self, run: &[u8], limit: usize) {
        let room = limit.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&run[..run.len().min(room)]);
        self.length += run.len();
    }
}

fn responses(body: &Body, reading: Reading) -> Option<Input> {
    let members = [
        ("instructions", Member::Instructions),
        ("tools", Member::Tools),
        ("input", Member::Input),
    ];
    let present =
        |member| body.member(member).filter(|raw: &Cow<'_, [u8]>| raw.as_ref() != b"null");
    present(Member::Input)?;
    let mut part = Part::default();
    let mut put = |run: &[u8]| part.put(run, reading.limit);
    put(b"[");
    let mut first = true;
    for (name, member) in members {
        let Some(raw) = present(member) else { continue };
        let tape = Tape::read(&raw)?;
        put(if std::mem::take(&mut first) { b"{\"" } else { b",{\"" });
        put(name.as_bytes());
        put(b"\":");
        json::generic(tape.root(), &mut put);
        put(b"}");
    }
    put(b"]");
    Some(Input { parts: vec![part] })
}

fn conversations(body: &Body, reading: Reading) -> Option<Input> {
    let raw = body.member(Member::Items)?;
    let tape = Tape::read(&raw)?;
    let items = tape.root();
    if items.kind() != Kind::List || items.inside().next().is_none() {
        return None;
    }
    let mut part = Part::default();
    let mut put = |run: &[u8]| part.put(run, reading.limit);
    for (index, item) in items.inside().enumerate() {
        put(if index == 0 { b"[{" } else { b",{" });
        let mut first = true;
        for name in ["type", "role", "content"] {
            let Some(value) = item.get(name).filter(|value| value.raw() != b"\"\"") else {
                continue;
            };
            put(if std::mem::take(&mut first) { b"\"" } else { b",\"" });
            put(name.as_bytes());
            put(b"\":");
            json::generic(value, &mut put);
        }
        put(b"}");
    }
    put(b"]");
    Some(Input { parts: vec![part] })
}
