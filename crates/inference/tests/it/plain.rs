//! What the network computes is what the papers say: compared with the plainest way to compute it.

use std::{collections::HashMap, iter::zip};

use windlass_inference::network::Chunk;

use crate::tiny::{FFN, KV, LAYERS, Tiny, WIDTH};

const HEADS: usize = 4;
const HEAD: usize = WIDTH / HEADS;

struct Plain(HashMap<String, Vec<f64>>);

impl Plain {
    fn new() -> Self {
        let wide = |values: Vec<f32>| values.into_iter().map(f64::from).collect();
        Self(Tiny::default().values().into_iter().map(|(name, v)| (name, wide(v))).collect())
    }

    fn of(&self, layer: usize, part: &str) -> &[f64] {
        &self.0[&format!("blk.{layer}.{part}.weight")]
    }

    /// The logits after the last of the tokens, one token after the other.
    fn logits(&self, tokens: &[u32]) -> Vec<f64> {
        let embedding = &self.0["token_embd.weight"];
        let mut keys = vec![Vec::new(); LAYERS];
        let mut values = vec![Vec::new(); LAYERS];
        let mut state = Vec::new();
        for (position, token) in tokens.iter().enumerate() {
            let row = *token as usize;
            state = embedding[row * WIDTH..(row + 1) * WIDTH].to_vec();
            for layer in 0..LAYERS {
                let normed = norm(&state, self.of(layer, "attn_norm"));
                let query = turned(times(self.of(layer, "attn_q"), &normed), position);
                keys[layer].push(turned(times(self.of(layer, "attn_k"), &normed), position));
                values[layer].push(times(self.of(layer, "attn_v"), &normed));
                let mixed = attention(&query, &keys[layer], &values[layer]);
                add(&mut state, &times(self.of(layer, "attn_output"), &mixed));
                let normed = norm(&state, self.of(layer, "ffn_norm"));
                let gate = times(self.of(layer, "ffn_gate"), &normed);
                let up = times(self.of(layer, "ffn_up"), &normed);
                assert_eq!(gate.len(), FFN);
                let silu = |gate: f64| gate / (1.0 + (-gate).exp());
                let gated: Vec<f64> = zip(gate, up).map(|(gate, up)| silu(gate) * up).collect();
                add(&mut state, &times(self.of(layer, "ffn_down"), &gated));
            }
        }
        times(embedding, &norm(&state, &self.0["output_norm.weight"]))
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    zip(left, right).map(|(left, right)| left * right).sum()
}

fn times(matrix: &[f64], values: &[f64]) -> Vec<f64> {
    matrix.chunks(values.len()).map(|row| dot(row, values)).collect()
}

fn add(state: &mut [f64], more: &[f64]) {
    zip(state, more).for_each(|(value, more)| *value += more);
}

fn norm(values: &[f64], weights: &[f64]) -> Vec<f64> {
    let root = (dot(values, values) / values.len() as f64 + 1e-5).sqrt();
    zip(values, weights).map(|(value, weight)| value / root * weight).collect()
}

fn turned(values: Vec<f64>, position: usize) -> Vec<f64> {
    let mut turned = values.clone();
    for pair in 0..values.len() / 2 {
        let within = pair % (HEAD / 2);
        let angle = position as f64 / 10_000_f64.powf(2.0 * within as f64 / HEAD as f64);
        let (x, y) = (values[2 * pair], values[2 * pair + 1]);
        turned[2 * pair] = x * angle.cos() - y * angle.sin();
        turned[2 * pair + 1] = x * angle.sin() + y * angle.cos();
    }
    turned
}

fn attention(query: &[f64], keys: &[Vec<f64>], values: &[Vec<f64>]) -> Vec<f64> {
    let mut mixed = vec![0.0; WIDTH];
    for head in 0..HEADS {
        let at = head * HEAD;
        // Two heads share keys and values.
        let shared = head / 2 * HEAD;
        assert!(shared + HEAD <= KV);
        let query = &query[at..at + HEAD];
        let weigh =
            |key: &Vec<f64>| (dot(query, &key[shared..shared + HEAD]) / (HEAD as f64).sqrt()).exp();
        let weights: Vec<f64> = keys.iter().map(weigh).collect();
        let sum: f64 = weights.iter().sum();
        for (weight, values) in zip(&weights, values) {
            for (mixed, value) in zip(&mut mixed[at..at + HEAD], &values[shared..]) {
                *mixed += weight / sum * value;
            }
        }
    }
    mixed
}

#[test]
fn the_network_computes_what_the_papers_say() {
    let (model, plain) = (crate::model(), Plain::new());
    let tokens: Vec<u32> = (0..23).map(|n| (n * n * 7 + 40) % 265).collect();
    for length in [1, 2, 3, 5, 8, 23] {
        let mut cache = model.network.cache();
        let mut chunks =
            [Chunk { tokens: &tokens[..length], cache: &mut cache, wants_logits: true }];
        let computed = model.network.forward(&mut chunks).unwrap().remove(0);
        let wanted = plain.logits(&tokens[..length]);
        assert_eq!(computed.len(), wanted.len());
        let spread = wanted.iter().fold(0.0_f64, |most, logit| most.max(logit.abs()));
        assert!(spread > 1.0, "{spread}");
        for (computed, wanted) in zip(computed, wanted) {
            assert!((f64::from(computed) - wanted).abs() < 1e-4 * spread, "{computed} {wanted}");
        }
    }
}
