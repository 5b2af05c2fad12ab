//! One line of a log file.

use jiff::Timestamp;

/// Longer lines are kept in parts, so that no line has to fit into memory.
pub(super) const LONGEST: usize = 16 * 1024;

/// Where a container said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// The length of a time as we write it, and where the letter for whole or part is.
const TIME: usize = 30;
pub(super) const TAG: usize = TIME + 8;
pub(super) const HEAD: usize = TAG + 2;

/// A line as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) time: &'a [u8],
    /// Whether the line ends here.
    pub(super) whole: bool,
    pub(super) text: &'a [u8],
}

/// In UTC with all nine decimals, so that times compare as texts do.
pub(super) fn time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S.%9fZ").to_string()
}

pub(super) fn print(out: &mut Vec<u8>, time: &str, stream: Stream, whole: bool, text: &[u8]) {
    out.extend_from_slice(time.as_bytes());
    out.extend_from_slice(match stream {
        Stream::Stdout => b" stdout ",
        Stream::Stderr => b" stderr ",
    });
    out.extend_from_slice(if whole { b"F " } else { b"P " });
    out.extend_from_slice(text);
    out.push(b'\n');
}

/// Without the end of line. `None` if it is not ours.
pub(super) fn parse(line: &[u8]) -> Option<Record<'_>> {
    let (head, text) = line.split_at_checked(HEAD)?;
    let whole = head[TAG] == b'F';
    let known = head[TIME - 1] == b'Z'
        && matches!(&head[TIME..TAG], b" stdout " | b" stderr ")
        && (whole || head[TAG] == b'P')
        && head[TAG + 1] == b' ';
    known.then_some(Record { time: &head[..TIME], whole, text })
}

/// Cuts what comes from a pipe into lines.
#[derive(Debug)]
pub(super) struct Splitter {
    stream: Stream,
    /// The start of a line whose end has not come yet.
    rest: Vec<u8>,
}

impl Splitter {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, rest: Vec::new() }
    }

    /// Appends the records that are complete now.
    pub(super) fn feed(&mut self, mut bytes: &[u8], now: Timestamp, out: &mut Vec<u8>) {
        let time = time(now);
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.take(&bytes[..end], &time, out);
            print(out, &time, self.stream, true, &self.rest);
            self.rest.clear();
            bytes = &bytes[end + 1..];
        }
        self.take(bytes, &time, out);
    }

    /// Keeps the start of a line. What is too long goes out in parts.
    fn take(&mut self, mut bytes: &[u8], time: &str, out: &mut Vec<u8>) {
        while self.rest.len() + bytes.len() > LONGEST {
            let (fits, more) = bytes.split_at(LONGEST - self.rest.len());
            self.rest.extend_from_slice(fits);
            print(out, time, self.stream, false, &self.rest);
            self.rest.clear();
            bytes = more;
        }
        self.rest.extend_from_slice(bytes);
    }

    /// Nothing comes any more: a line without an end is a line too.
    pub(super) fn finish(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        if !self.rest.is_empty() {
            print(out, &time(now), self.stream, true, &self.rest);
            self.rest.clear();
        }
    }
}
