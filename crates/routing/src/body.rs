//! The body of a request, scanned while it arrives.

use bytes::Bytes;

/// The chunks of a body as they came. They are kept, never copied together.
#[derive(Debug, Default)]
pub struct Body {
    chunks: Vec<Bytes>,
    length: usize,
    cut: bool,
}

impl Body {
    pub fn push(&mut self, chunk: Bytes) {
        self.length += chunk.len();
        self.chunks.push(chunk);
    }

    /// More will come that the picker is not shown. It then decides on what is here, and asks for
    /// no change of the body.
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
}

impl From<Bytes> for Body {
    fn from(whole: Bytes) -> Self {
        let mut body = Self::default();
        body.push(whole);
        body
    }
}
