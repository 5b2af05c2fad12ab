//! The body of a request, scanned while it arrives.

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;

use crate::scan::{Member, Scanner, Verdict};

/// The chunks of a body as they came. They are kept, never copied together.
#[derive(Clone, Debug, Default)]
pub struct Body {
    chunks: Vec<Bytes>,
    length: usize,
    cut: bool,
    scanner: Scanner,
}

impl Body {
    pub fn push(&mut self, chunk: Bytes) {
        self.scanner.feed(&chunk);
        self.length += chunk.len();
        self.chunks.push(chunk);
    }

    /// More will come that the picker is not shown. It then decides on what is here, and asks for
    /// no change of the rest.
    pub fn cut(&mut self) {
        self.cut = true;
    }

    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.scanner.verdict()
    }

    /// Where a top-level member has its value.
    pub(crate) fn span(&self, member: Member) -> Option<Range<usize>> {
        self.scanner.span(member)
    }

    /// The value of a top-level member as it is written.
    pub(crate) fn member(&self, member: Member) -> Option<Cow<'_, [u8]>> {
        self.span(member).map(|span| self.bytes(span))
    }

    /// The beginning of a value that was cut.
    pub(crate) fn beginning(&self, member: Member) -> Option<Cow<'_, [u8]>> {
        let (unfinished, start) = self.scanner.unfinished().filter(|_| self.cut)?;
        (unfinished == member).then(|| self.bytes(start..self.length))
    }

    /// Copied only if they are in more than one chunk.
    fn bytes(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        let mut start = 0;
        let mut joined = Vec::new();
        for chunk in &self.chunks {
            let end = start + chunk.len();
            if start <= range.start && range.end <= end {
                return Cow::Borrowed(&chunk[range.start - start..range.end - start]);
            }
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                joined.extend_from_slice(&chunk[from - start..to - start]);
            }
            start = end;
        }
        Cow::Owned(joined)
    }
}

impl From<Bytes> for Body {
    fn from(whole: Bytes) -> Self {
        let mut body = Self::default();
        body.push(whole);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_lie_across_chunks() {
        let text = br#"{"model":"abc","prompt":"x"}"#;
        for first in 0..text.len() {
            let mut body = Body::default();
            body.push(Bytes::copy_from_slice(&text[..first]));
            body.push(Bytes::copy_from_slice(&text[first..]));
            assert_eq!(body.member(Member::Model).as_deref(), Some(&b"\"abc\""[..]), "{first}");
            assert_eq!(body.member(Member::Prompt).as_deref(), Some(&b"\"x\""[..]), "{first}");
            assert_eq!(body.len(), text.len());
        }
    }

    #[test]
    fn only_a_cut_body_has_beginnings() {
        let mut body = Body::from(Bytes::from_static(b"{\"prompt\":\"abc"));
        assert_eq!(body.beginning(Member::Prompt), None);
        body.cut();
        assert_eq!(body.beginning(Member::Prompt).as_deref(), Some(&b"\"abc"[..]));
        assert_eq!(body.beginning(Member::Model), None);
    }
}
