//! Where the last lines of a log start.

use std::{fs::File, io, os::unix::fs::FileExt};

use super::record::TAG;

const BLOCK: u64 = 64 * 1024;

/// What is left to look for, from one file to the one before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    wanted: u64,
    /// Whether some record was seen already.
    begun: bool,
}

impl Tail {
    pub(super) fn new(wanted: u64) -> Self {
        Self { wanted, begun: false }
    }

    /// Where the wanted lines start if they all are in this file, which ends at `end`; `None` if the
    /// file before it is to be looked at too.
    pub(super) fn start(&mut self, file: &File, end: u64) -> io::Result<Option<u64>> {
        let mut block = Block { file, at: 0, bytes: Vec::new() };
        let mut end = end;
        while end > 0 {
            let start = block.line_start(end)?;
            // A line ends with its record, or with what there is of it.
            let whole = block.byte(start + TAG as u64)? != Some(b'P');
            if whole || !self.begun {
                if self.wanted == 0 {
                    return Ok(Some(end));
                }
                self.wanted -= 1;
            }
            self.begun = true;
            end = start;
        }
        Ok(None)
    }
}

/// A part of a file in memory.
struct Block<'a> {
    file: &'a File,
    at: u64,
    bytes: Vec<u8>,
}

impl Block<'_> {
    /// The start of the line that ends at `end`, its end of line included.
    fn line_start(&mut self, end: u64) -> io::Result<u64> {
        let mut before = end.saturating_sub(1);
        while before > 0 {
            self.load(before - 1)?;
            let inside = usize::try_from(before - self.at).map_err(io::Error::other)?;
            let inside = inside.min(self.bytes.len());
            match self.bytes[..inside].iter().rposition(|byte| *byte == b'\n') {
                Some(found) => return Ok(self.at + found as u64 + 1),
                None => before = self.at,
            }
        }
        Ok(0)
    }

    fn byte(&mut self, at: u64) -> io::Result<Option<u8>> {
        self.load(at)?;
        let inside = usize::try_from(at - self.at).map_err(io::Error::other)?;
        Ok(self.bytes.get(inside).copied())
    }

    /// Sees to it that the byte is in memory, unless the file has none there.
    fn load(&mut self, at: u64) -> io::Result<()> {
        if at >= self.at && at - self.at < self.bytes.len() as u64 {
            return Ok(());
        }
        self.at = at - at % BLOCK;
        self.bytes.resize(BLOCK as usize, 0);
        let mut filled = 0;
        while filled < self.bytes.len() {
            match self.file.read_at(&mut self.bytes[filled..], self.at + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.truncate(filled);
        Ok(())
    }
}
