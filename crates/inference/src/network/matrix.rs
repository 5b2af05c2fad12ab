//! Matrices of weights: eight bits each, with a scale and an offset for every 32.

use crate::gguf::{Kind, half};

/// How many weights share scale and offset.
pub(super) const BLOCK: usize = 32;
/// How many rows lie together.
pub(super) const QUAD: usize = 4;
const STEPS: f32 = 255.0;

/// A weight is `scale * quant + offset`.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) scale: f32,
    pub(super) offset: f32,
    pub(super) quants: [i8; BLOCK],
}

/// Blocks of rows that are computed together lie together, so that memory is read from one end to the
/// other, which it is fastest at.
#[derive(Debug)]
pub(super) struct Matrix {
    rows: usize,
    columns: usize,
    blocks: Vec<[Block; QUAD]>,
}

impl Matrix {
    /// From blocks of row after row. `columns` must be whole blocks.
    pub(super) fn new(columns: usize, blocks: &[Block]) -> Self {
        const NOTHING: Block = Block { scale: 0.0, offset: 0.0, quants: [0; BLOCK] };
        let each = columns / BLOCK;
        let rows = blocks.len() / each;
        let mut quads = Vec::with_capacity(rows.div_ceil(QUAD) * each);
        for four in blocks.chunks(QUAD * each) {
            let block = |row: usize, at: usize| four.get(row * each + at).unwrap_or(&NOTHING);
            quads.extend((0..each).map(|at| std::array::from_fn(|row| block(row, at).clone())));
        }
        Self { rows, columns, blocks: quads }
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The blocks of four rows; those after the last row are zero.
    #[inline(always)]
    pub(super) fn quad(&self, quad: usize) -> &[[Block; QUAD]] {
        let each = self.columns / BLOCK;
        &self.blocks[quad * each..(quad + 1) * each]
    }

    /// The weights of a row themselves.
    pub(super) fn read(&self, row: usize, values: &mut Vec<f32>) {
        for blocks in self.quad(row / QUAD) {
            let block = &blocks[row % QUAD];
            let value = |quant: &i8| block.scale * f32::from(*quant) + block.offset;
            values.extend(block.quants.iter().map(value));
        }
    }
}

/// Blocks of what is in a file.
pub(super) fn blocks(kind: Kind, bytes: &[u8], values: &mut Vec<f32>, blocks: &mut Vec<Block>) {
    if kind == Kind::Q8_0 {
        blocks.extend(bytes.chunks_exact(BLOCK + 2).map(as_it_is));
        return;
    }
    values.clear();
    kind.read(bytes, values);
    blocks.extend(values.as_chunks::<BLOCK>().0.iter().map(Block::of));
}

fn as_it_is(bytes: &[u8]) -> Block {
    let mut quants = [0; BLOCK];
    for (quant, byte) in quants.iter_mut().zip(&bytes[2..]) {
        *quant = byte.cast_signed();
    }
    Block { scale: half(bytes, 0), offset: 0.0, quants }
}

impl Block {
    /// In 255 steps from the least to the greatest. Types of four bits have fifteen such steps, and
    /// those of two bits three, so that their weights stay what they are.
    fn of(values: &[f32; BLOCK]) -> Self {
        let least = values.iter().copied().fold(f32::INFINITY, f32::min);
        let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let scale = (most - least) / STEPS;
        let steps = if scale > f32::MIN_POSITIVE { 1.0 / scale } else { 0.0 };
        let mut quants = [0; BLOCK];
        for (quant, value) in quants.iter_mut().zip(values) {
            // At most 255.5, and a cast does not round.
            *quant = (((value - least) * steps + 0.5) as i32 - 128) as i8;
        }
        Self { scale, offset: least + 128.0 * scale, quants }
    }
}

#[cfg(test)]
mod tests;
