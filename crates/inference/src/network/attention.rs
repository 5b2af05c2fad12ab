//! What each token takes from those before it.

use rayon::prelude::*;

use super::{
    Shape, WORTH,
    cache::Seen,
    forward::Row,
    lanes::{self, LANES, Lanes, Work},
};

/// The values of all heads for each row. `seen` is what each sequence has seen, these rows included.
pub(super) fn attend(shape: &Shape, rows: &[Row], seen: &[&Seen], queries: &[f32]) -> Vec<f32> {
    let mut mixed = vec![0.0; queries.len()];
    let tokens = rows.iter().map(|row| row.position + 1).max().unwrap_or(1);
    let least = WORTH.div_ceil(2 * tokens * shape.head_width);
    let parts = queries.par_chunks_exact(shape.head_width);
    let parts = parts.zip(mixed.par_chunks_exact_mut(shape.head_width)).enumerate();
    parts.with_min_len(least).for_each_init(Vec::new, |scores, (index, (query, mixed))| {
        let row = &rows[index / shape.heads];
        let head = index % shape.heads / shape.group();
        let (tokens, width) = (row.position + 1, shape.kv_width());
        lanes::run(Head { seen: seen[row.chunk], head, tokens, width, query, scores, mixed });
    });
    mixed
}

/// One head of one row.
struct Head<'a> {
    seen: &'a Seen,
    /// Of keys and values.
    head: usize,
    /// How many of them.
    tokens: usize,
    /// Of all heads.
    width: usize,
    query: &'a [f32],
    scores: &'a mut Vec<f32>,
    mixed: &'a mut [f32],
}

impl Work for Head<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self { seen, head, tokens, width, query, scores, mixed } = self;
        let at = head * query.len();
        let of_head = at..at + query.len();
        let scale = 1.0 / (query.len() as f32).sqrt();
        let keys = seen.keys.chunks_exact(width).take(tokens);
        scores.clear();
        scores.extend(keys.map(|keys| scale * dot(lanes, query, &keys[of_head.clone()])));
        softmax(scores);
        for (score, values) in scores.iter().zip(seen.values.chunks_exact(width)) {
            for (mixed, value) in mixed.iter_mut().zip(&values[of_head.clone()]) {
                *mixed += score * value;
            }
        }
    }
}

#[inline(always)]
fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - most).exp();
        sum += *score;
    }
    let scale = 1.0 / sum;
    for score in scores {
        *score *= scale;
    }
}

#[inline(always)]
pub(super) fn dot<L: Lanes>(lanes: L, left: &[f32], right: &[f32]) -> f32 {
    let (left, left_rest) = left.as_chunks::<LANES>();
    let (right, right_rest) = right.as_chunks::<LANES>();
    let mut sums = lanes.all(0.0);
    for (left, right) in left.iter().zip(right) {
        sums = lanes.mul_add(lanes.load(*left), lanes.load(*right), sums);
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    lanes.store(sums).iter().sum::<f32>() + rest
}
