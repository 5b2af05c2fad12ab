//! Products of matrices, on all threads of the pool at hand.
//!
//! Values are not rounded: quants become floats in registers, for as many rows of input as there are
//! registers. Each sum is added up in the same order whatever else is computed at once, so that an answer
//! does not depend on who asks beside.

use rayon::prelude::*;

use super::{
    WORTH,
    lanes::{self, LANES, Lanes, Work},
    matrix::{BLOCK, Block, Matrix, QUAD},
};

/// Rows of a matrix that stay in the nearest cache while all input goes by.
const NEAR: usize = 16;
/// Parts of the work for each thread, so that one that was interrupted does not hold up the others.
const PARTS: usize = 4;

impl Matrix {
    /// For each row of `inputs` the products with all rows of the matrix.
    pub(super) fn product(&self, inputs: &[f32]) -> Vec<f32> {
        self.spread::<false>(inputs)
    }

    /// The same for a matrix whose rows are by turns of gate and of what is gated.
    pub(super) fn gated_product(&self, inputs: &[f32]) -> Vec<f32> {
        self.spread::<true>(inputs)
    }

    fn spread<const GATED: bool>(&self, inputs: &[f32]) -> Vec<f32> {
        let inputs = Inputs { values: inputs.as_chunks().0, blocks: self.columns() / BLOCK };
        let each = if GATED { 2 } else { 1 };
        let part = self.rows().div_ceil(PARTS * rayon::current_num_threads());
        let least = WORTH.div_ceil((self.columns() * inputs.rows()).max(1));
        let part = part.max(least).next_multiple_of(NEAR);
        let width = self.rows() / each;
        let mut output = vec![0.0; inputs.rows() * width];
        let mut parts: Vec<Part<'_, GATED>> = (0..self.rows())
            .step_by(part)
            .map(|first| Part { matrix: self, inputs, first, output: Vec::new() })
            .collect();
        for row in output.chunks_exact_mut(width) {
            for (part, output) in parts.iter_mut().zip(row.chunks_mut(part / each)) {
                part.output.push(output);
            }
        }
        parts.into_par_iter().for_each(lanes::run);
        output
    }
}

/// Rows of as many blocks as those of the matrix have.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    values: &'a [[f32; BLOCK]],
    blocks: usize,
}

impl<'a> Inputs<'a> {
    fn rows(&self) -> usize {
        self.values.len() / self.blocks
    }

    fn row(&self, row: usize) -> &'a [[f32; BLOCK]] {
        &self.values[row * self.blocks..(row + 1) * self.blocks]
    }
}

/// Some rows of the matrix for all rows of the input.
struct Part<'a, const GATED: bool> {
    matrix: &'a Matrix,
    inputs: Inputs<'a>,
    first: usize,
    /// Of each row of the input.
    output: Vec<&'a mut [f32]>,
}

impl<const GATED: bool> Work for Part<'_, GATED> {
    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        let each = if GATED { 2 } else { 1 };
        let rows = self.output.first().map_or(0, |output| output.len() * each);
        for from in (0..rows).step_by(NEAR) {
            let to = rows.min(from + NEAR);
            let mut input = 0;
            while input + 4 <= self.output.len() {
                self.strip::<L, 2, 4>(lanes, from, to, input);
                input += 4;
            }
            if input + 2 <= self.output.len() {
                self.strip::<L, 4, 2>(lanes, from, to, input);
                input += 2;
            }
            if input < self.output.len() {
                self.strip::<L, 4, 1>(lanes, from, to, input);
            }
        }
    }
}

impl<const GATED: bool> Part<'_, GATED> {
    /// From one row of the part to another, `N` at a time, for `M` rows of input.
    #[inline(always)]
    fn strip<L: Lanes, const N: usize, const M: usize>(
        &mut self,
        lanes: L,
        from: usize,
        to: usize,
        input: usize,
    ) {
        let inputs: [_; M] = std::array::from_fn(|index| self.inputs.row(input + index));
        for row in (from..to).step_by(N) {
            let quad = self.matrix.quad((self.first + row) / QUAD);
            let sums: [[f32; M]; N] = tile(lanes, quad, row % QUAD, inputs);
            for (index, output) in self.output[input..input + M].iter_mut().enumerate() {
                if GATED {
                    for (pair, output) in output[row / 2..].iter_mut().take(N / 2).enumerate() {
                        let (gate, value) = (sums[2 * pair][index], sums[2 * pair + 1][index]);
                        *output = gate / (1.0 + (-gate).exp()) * value;
                    }
                } else {
                    // Of rows that are none, there is no output.
                    for (output, sums) in output[row..].iter_mut().zip(&sums) {
                        *output = sums[index];
                    }
                }
            }
        }
    }
}

/// The products of some rows of four with some rows of input.
#[inline(always)]
fn tile<L: Lanes, const N: usize, const M: usize>(
    lanes: L,
    quad: &[[Block; QUAD]],
    first: usize,
    inputs: [&[[f32; BLOCK]]; M],
) -> [[f32; M]; N] {
    // All are as long; this way it is checked once.
    let inputs = inputs.map(|row| &row[..quad.len()]);
    let mut sums = [[lanes.all(0.0); M]; N];
    for (at, blocks) in quad.iter().enumerate() {
        for part in 0..BLOCK / LANES {
            for (n, sums) in sums.iter_mut().enumerate() {
                let Block { scale, offset, quants } = &blocks[(first + n) % QUAD];
                let quants = lanes.widen(quants.as_chunks().0[part]);
                let weights = lanes.mul_add(quants, lanes.all(*scale), lanes.all(*offset));
                for (sum, input) in sums.iter_mut().zip(&inputs) {
                    let values = lanes.load(input[at].as_chunks().0[part]);
                    *sum = lanes.mul_add(weights, values, *sum);
                }
            }
        }
    }
    sums.map(|sums| sums.map(|sum| lanes.store(sum).iter().sum()))
}

#[cfg(test)]
mod tests;
