//! From tokens to the logits of the next one.

use super::{Cache, Layer, Network, Shape, attention, lanes::Portable};
use crate::Error;

/// The next tokens of one sequence.
#[derive(Debug)]
pub struct Chunk<'a> {
    pub tokens: &'a [u32],
    pub cache: &'a mut Cache,
    /// Whether it matters what follows its last token.
    pub wants_logits: bool,
}

/// One token of a step, of whichever sequence.
pub(super) struct Row {
    pub(super) chunk: usize,
    pub(super) position: usize,
}

/// How the pairs of values of a row are turned: cosine and sine.
type Turned = Vec<(f32, f32)>;

impl Network {
    /// The logits of the chunks that want them, in their order. All chunks are computed together,
    /// so that the weights are read only once.
    pub fn forward(&self, chunks: &mut [Chunk<'_>]) -> Result<Vec<Vec<f32>>, Error> {
        let vocabulary = self.shape.vocabulary;
        let mut tokens = chunks.iter().flat_map(|chunk| chunk.tokens);
        if let Some(token) = tokens.find(|token| **token as usize >= vocabulary) {
            return Err(Error::Token { token: *token, vocabulary });
        }
        Ok(self.pool.install(|| self.compute(chunks)))
    }

    fn compute(&self, chunks: &mut [Chunk<'_>]) -> Vec<Vec<f32>> {
        let rows = rows(chunks);
        if rows.is_empty() {
            return Vec::new();
        }
        let turned: Vec<Turned> = rows.iter().map(|row| self.turned(row.position)).collect();
        let mut state = Vec::with_capacity(rows.len() * self.shape.width);
        for token in chunks.iter().flat_map(|chunk| chunk.tokens) {
            self.embedding.read(*token as usize, &mut state);
        }
        for (index, layer) in self.layers.iter().enumerate() {
            self.look_back(index, layer, &rows, &turned, chunks, &mut state);
            self.think(layer, &mut state);
        }
        for chunk in chunks.iter_mut() {
            chunk.cache.length += chunk.tokens.len();
        }
        self.logits(chunks, &state)
    }

    /// Attention: what the tokens before mean for each.
    fn look_back(
        &self,
        index: usize,
        layer: &Layer,
        rows: &[Row],
        turned: &[Turned],
        chunks: &mut [Chunk<'_>],
        state: &mut [f32],
    ) {
        let shape = &self.shape;
        let normed = self.normed(state, &layer.attention_norm);
        let mut projected = layer.query_key_value.product(&normed);
        let (query, kv) = (shape.query_width(), shape.kv_width());
        let mut queries = Vec::with_capacity(rows.len() * query);
        for ((row, turned), values) in
            rows.iter().zip(turned).zip(projected.chunks_exact_mut(query + 2 * kv))
        {
            let (turning, values) = values.split_at_mut(query + kv);
            for head in turning.chunks_exact_mut(shape.head_width) {
                turn(head, turned);
            }
            let (row_queries, keys) = turning.split_at(query);
            queries.extend_from_slice(row_queries);
            let seen = &mut chunks[row.chunk].cache.layers[index];
            seen.keys.extend_from_slice(keys);
            seen.values.extend_from_slice(values);
        }
        let seen: Vec<_> = chunks.iter().map(|chunk| &chunk.cache.layers[index]).collect();
        let mixed = attention::attend(shape, rows, &seen, &queries);
        add(state, &layer.attention_output.product(&mixed));
    }

    /// The feed-forward part: each token by itself.
    fn think(&self, layer: &Layer, state: &mut [f32]) {
        let normed = self.normed(state, &layer.ffn_norm);
        let gated = layer.gate_up.gated_product(&normed);
        add(state, &layer.down.product(&gated));
    }

    fn logits(&self, chunks: &[Chunk<'_>], state: &[f32]) -> Vec<Vec<f32>> {
        let width = self.shape.width;
        let mut last = Vec::new();
        let mut end = 0;
        for chunk in chunks {
            end += chunk.tokens.len();
            if chunk.wants_logits && !chunk.tokens.is_empty() {
                last.extend_from_slice(&state[(end - 1) * width..end * width]);
            }
        }
        if last.is_empty() {
            return Vec::new();
        }
        let output = self.output.as_ref().unwrap_or(&self.embedding);
        let logits = output.product(&self.normed(&last, &self.norm));
        logits.chunks_exact(self.shape.vocabulary).map(<[f32]>::to_vec).collect()
    }

    /// Root mean square norm of each row.
    fn normed(&self, state: &[f32], weights: &[f32]) -> Vec<f32> {
        let Shape { width, epsilon, .. } = self.shape;
        let mut normed = Vec::with_capacity(state.len());
        for row in state.chunks_exact(width) {
            let mean = attention::dot(Portable, row, row) / width as f32;
            let scale = 1.0 / (mean + epsilon).sqrt();
            normed.extend(row.iter().zip(weights).map(|(value, weight)| value * scale * weight));
        }
        normed
    }

    fn turned(&self, position: usize) -> Turned {
        let turned = |turn: &f32| {
            let (sine, cosine) = (position as f32 * turn).sin_cos();
            (cosine, sine)
        };
        self.turns.iter().map(turned).collect()
    }
}

fn rows(chunks: &[Chunk<'_>]) -> Vec<Row> {
    let of_chunk = |(index, chunk): (usize, &Chunk<'_>)| {
        let first = chunk.cache.length;
        let positions = first..first + chunk.tokens.len();
        positions.map(move |position| Row { chunk: index, position })
    };
    chunks.iter().enumerate().flat_map(of_chunk).collect()
}

/// Rotary positions; files of this family have neighbours as pairs.
fn turn(head: &mut [f32], turned: &[(f32, f32)]) {
    for (pair, (cosine, sine)) in head.chunks_exact_mut(2).zip(turned) {
        if let [x, y] = pair {
            (*x, *y) = (*x * cosine - *y * sine, *x * sine + *y * cosine);
        }
    }
}

fn add(state: &mut [f32], more: &[f32]) {
    for (value, more) in state.iter_mut().zip(more) {
        *value += more;
    }
}
