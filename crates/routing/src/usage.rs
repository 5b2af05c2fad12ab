//! Finds what an answer says it has cost, while it passes by.

use memchr::memmem;

use crate::json::{Kind, Tape, Value};

/// Tokens as the engine counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: u64,
    pub(crate) completion: u64,
    pub(crate) cached: u64,
}

/// Looks for the member `usage` and no further: the last one counts.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    /// The end of the chunk before, or what there is of the member.
    kept: Vec<u8>,
    inside: bool,
    found: Option<Usage>,
}

const KEY: &[u8] = b"\"usage\"";
/// No engine writes so much about one request.
const MAX_MEMBER: usize = 16 << 10;

impl Probe {
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.found
    }

    pub(crate) fn feed(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            if !self.inside {
                chunk = self.search(chunk);
                continue;
            }
            // Until the brace that closes the member: braces do not occur in its texts.
            let end = memchr::memchr(b'}', chunk).map_or(chunk.len(), |at| at + 1);
            self.kept.extend_from_slice(&chunk[..end]);
            chunk = &chunk[end..];
            self.take();
        }
    }

    /// Returns what is behind the key.
    fn search<'c>(&mut self, chunk: &'c [u8]) -> &'c [u8] {
        // A key may begin in the chunk before.
        let carried = self.kept.len();
        let joint = chunk.len().min(KEY.len() - 1);
        self.kept.extend_from_slice(&chunk[..joint]);
        if let Some(at) = memmem::find(&self.kept, KEY) {
            let used = (at + KEY.len()).saturating_sub(carried);
            self.kept.clear();
            self.inside = true;
            return &chunk[used..];
        }
        if let Some(at) = memmem::find(chunk, KEY) {
            self.kept.clear();
            self.inside = true;
            return &chunk[at + KEY.len()..];
        }
        if chunk.len() >= KEY.len() {
            self.kept.clear();
            self.kept.extend_from_slice(&chunk[chunk.len() - (KEY.len() - 1)..]);
        } else {
            let surplus = self.kept.len().saturating_sub(KEY.len() - 1);
            self.kept.drain(..surplus);
        }
        &[]
    }

    /// Reads the member if it is over.
    fn take(&mut self) {
        let text = self.kept.trim_ascii_start();
        let value = text.strip_prefix(b":").map(|text| text.trim_ascii_start());
        let begins = matches!((text, value), ([], _) | (_, Some([] | [b'{', ..])));
        let open = self.kept.iter().filter(|byte| **byte == b'{').count();
        let closed = self.kept.iter().filter(|byte| **byte == b'}').count();
        if begins && (open == 0 || closed < open) && self.kept.len() < MAX_MEMBER {
            return;
        }
        if let Some(read) = value.filter(|_| begins).and_then(read) {
            self.found = Some(read);
        }
        self.inside = false;
        self.kept.clear();
    }
}

/// Figures of odd types are left out.
fn read(text: &[u8]) -> Option<Usage> {
    let tape = Tape::read(text)?;
    let usage = tape.root();
    let details = ["prompt_tokens_details", "prompt_token_details", "input_tokens_details"];
    let prompt = number(usage, "prompt_tokens").or_else(|| number(usage, "input_tokens"));
    let completion = number(usage, "completion_tokens").or_else(|| number(usage, "output_tokens"));
    let cached = details.iter().find_map(|name| number(usage.get(name)?, "cached_tokens"));
    prompt.or(completion)?;
    Some(Usage {
        prompt: prompt.unwrap_or(0),
        completion: completion.unwrap_or(0),
        cached: cached.unwrap_or(0),
    })
}

fn number(object: Value<'_>, name: &str) -> Option<u64> {
    let value = object.get(name).filter(|value| value.kind() == Kind::Number)?;
    let number: f64 = std::str::from_utf8(value.raw()).ok()?.parse().ok()?;
    (number >= 0.0).then_some(number as u64)
}

#[cfg(test)]
mod tests;
