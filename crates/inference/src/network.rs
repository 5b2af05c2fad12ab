//! The network of the Llama family: `load` its weights, `forward` some tokens of several sequences at
//! once, each with a [`Cache`] of what it has seen.

mod attention;
mod cache;
mod forward;
mod lanes;
mod load;
mod matrix;
mod product;
mod shape;

use rayon::ThreadPool;

pub use cache::Cache;
pub use forward::Chunk;
use matrix::Matrix;
pub use shape::Shape;

/// So many products take longer than to wake another thread for them.
const WORTH: usize = 1 << 15;

#[derive(Debug)]
pub struct Network {
    shape: Shape,
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    /// Where it is not the same as the embedding, as in many small models.
    output: Option<Matrix>,
    /// By how much each pair of values turns from one position to the next.
    turns: Vec<f32>,
    /// Its threads sleep while there is nothing to do. As many as this process may use.
    pool: ThreadPool,
}

/// Matrices that are multiplied with the same values are one, so that there are fewer steps.
#[derive(Debug)]
struct Layer {
    attention_norm: Vec<f32>,
    query_key_value: Matrix,
    attention_output: Matrix,
    ffn_norm: Vec<f32>,
    /// Their rows by turns.
    gate_up: Matrix,
    down: Matrix,
}

impl Network {
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Of a sequence that has just begun.
    pub fn cache(&self) -> Cache {
        Cache::new(&self.shape)
    }
}
