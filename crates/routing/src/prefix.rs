//! Which endpoint has seen how much of a prompt.
//!
//! A prompt becomes a chain of hashes, one for each block, each over the block and the hash before
//! it. The index remembers which endpoints were sent which hashes.

mod index;
mod lru;
#[cfg(test)]
mod tests;

pub(crate) use index::{Index, Matches};

use crate::{config::Dialect, hash::xxh64, prompt::Part};

/// How a prompt is cut into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub(crate) dialect: Dialect,
    /// In tokens of four bytes.
    pub(crate) size: usize,
    /// What lies behind this many blocks is not looked at.
    pub(crate) max: usize,
}

impl Blocks {
    pub(crate) fn bytes(self) -> usize {
        self.size.saturating_mul(4).max(4)
    }

    /// The hashes of one prompt.
    pub(crate) fn chain(self, part: &Part, model: &str, salt: &[u8]) -> Vec<u64> {
        let kept = &part.kept[..part.kept.len().min(self.bytes().saturating_mul(self.max))];
        let start = xxh64(&[model.as_bytes(), salt].concat());
        match self.dialect {
            Dialect::Gaie => whole_blocks(kept, self.bytes(), start),
            Dialect::LlmD => all_blocks(kept, self.bytes(), start),
        }
    }
}

/// The last block does not count unless it is full.
fn whole_blocks(kept: &[u8], block: usize, start: u64) -> Vec<u64> {
    let mut text = Vec::new();
    let next = |before: &mut u64, block: &[u8]| {
        text.clear();
        text.extend_from_slice(block);
        text.extend_from_slice(&before.to_le_bytes());
        *before = xxh64(&text);
        Some(*before)
    };
    kept.chunks_exact(block).scan(start, next).collect()
}

/// Of tokens, so that the end is filled up with zeros to a whole one.
fn all_blocks(kept: &[u8], block: usize, start: u64) -> Vec<u64> {
    let next = |before: &mut u64, block: &[u8]| {
        let own = match block.len() % 4 {
            0 => xxh64(block),
            odd => xxh64(&[block, &[0; 3][..4 - odd]].concat()),
        };
        *before = xxh64(&[own.to_le_bytes(), before.to_le_bytes()].concat());
        Some(*before)
    };
    kept.chunks(block).scan(start, next).collect()
}
