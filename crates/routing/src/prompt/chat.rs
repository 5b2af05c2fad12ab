//! The messages of a chat.

use crate::{
    body::Body,
    config::Dialect,
    json::{self, Kind, Tape, Value},
    prompt::{Input, Part, Reading},
    scan::Member,
};

pub(super) fn messages(body: &Body, reading: Reading) -> Option<Input> {
    let raw = body.member(Member::Messages)?;
    let tape = Tape::read(&raw)?;
    let list = tape.root();
    if list.kind() != Kind::List || list.inside().next().is_none() || !list.inside().all(usable) {
        return None;
    }
    let mut part = Part::default();
    let mut put = |run: &[u8]| part.put(run, reading.limit);
    match reading.dialect {
        Dialect::Gaie => json_text(list, &mut put),
        Dialect::LlmD => plain_text(body, list, &mut put),
    }
    Some(Input { parts: vec![part] })
}

fn usable(message: Value<'_>) -> bool {
    let text = |value: Value<'_>| value.kind() == Kind::Text;
    match message.kind() {
        Kind::Object => {
            message.get("role").is_none_or(text)
                && message.get("content").is_none_or(|content| {
                    text(content)
                        || content.kind() == Kind::List
                            && content.inside().all(|block| block.kind() == Kind::Object)
                })
        }
        kind => kind == Kind::Null,
    }
}

/// The messages as compact JSON with role and content only.
fn json_text(list: Value<'_>, put: &mut impl FnMut(&[u8])) {
    for (index, message) in list.inside().enumerate() {
        put(if index == 0 { b"[{" } else { b",{" });
        if let Some(role) = filled(message, "role") {
            put(b"\"role\":");
            json::string(role, put);
            put(b",");
        }
        put(b"\"content\":");
        match message.get("content") {
            Some(content) if content.kind() == Kind::List => blocks(content, put),
            Some(content) => json::string(content.quoted(), put),
            None => put(b"\"\""),
        }
        put(b"}");
    }
    put(b"]");
}

fn blocks(content: Value<'_>, put: &mut impl FnMut(&[u8])) {
    put(b"[");
    for (index, block) in content.inside().enumerate() {
        put(if index == 0 { b"{\"type\":" } else { b",{\"type\":" });
        json::string(block.get("type").map(Value::quoted).unwrap_or_default(), put);
        if let Some(text) = filled(block, "text") {
            put(b",\"text\":");
            json::string(text, put);
        }
        object(block, "image_url", &["url"], put);
        object(block, "input_audio", &["data", "format"], put);
        object(block, "video_url", &["url"], put);
        put(b"}");
    }
    put(b"]");
}

/// A member that is always written, with those of its own members that are not empty.
fn object(block: Value<'_>, name: &str, members: &[&str], put: &mut impl FnMut(&[u8])) {
    put(b",\"");
    put(name.as_bytes());
    put(b"\":{");
    let mut first = true;
    for member in members {
        let Some(text) = block.get(name).and_then(|inner| filled(inner, member)) else { continue };
        put(if std::mem::take(&mut first) { b"\"" } else { b",\"" });
        put(member.as_bytes());
        put(b"\":");
        json::string(text, put);
    }
    put(b"}");
}

/// The text of a member as it is quoted, if there is any.
fn filled<'t>(value: Value<'t>, name: &str) -> Option<&'t [u8]> {
    value.get(name).map(Value::quoted).filter(|quoted| !quoted.is_empty())
}

/// The tools, then role and text of each message, with nothing between.
fn plain_text(body: &Body, list: Value<'_>, put: &mut impl FnMut(&[u8])) {
    if let Some(raw) = body.member(Member::Tools).filter(|raw| raw.as_ref() != b"null")
        && let Some(tools) = Tape::read(&raw)
    {
        json::generic(tools.root(), put);
    }
    for message in list.inside() {
        json::unescape(filled(message, "role").unwrap_or_default(), put);
        match message.get("content") {
            Some(content) if content.kind() == Kind::List => {
                for block in content.inside() {
                    json::unescape(filled(block, "text").unwrap_or_default(), put);
                }
            }
            Some(content) => json::unescape(content.quoted(), put),
            None => {}
        }
    }
}
