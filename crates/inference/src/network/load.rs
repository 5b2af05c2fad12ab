//! Weights out of the file.

use std::{fs::File, io, num::NonZero, thread};

use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};

use super::{
    Layer, Network, Shape,
    matrix::{BLOCK, Block, Matrix, blocks},
};
use crate::{Error, gguf::Gguf};

impl Network {
    pub(crate) fn load(gguf: &Gguf) -> Result<Self, Error> {
        let shape = Shape::read(gguf)?;
        let pool = pool()?;
        let vocabulary = |name| matrix(gguf, &mut gguf.reader()?, name, &shape.embedding());
        let layer = |index| layer(gguf, &mut gguf.reader()?, &shape, index);
        let (layers, (embedding, output)) = pool.install(|| {
            rayon::join(
                || (0..shape.layers).into_par_iter().map(layer).collect::<Result<Vec<_>, _>>(),
                || {
                    let name = "output.weight";
                    let output = gguf.has(name).then(|| vocabulary(name)).transpose();
                    (vocabulary("token_embd.weight"), output)
                },
            )
        });
        Ok(Self {
            layers: layers?,
            norm: vector(gguf, &mut gguf.reader()?, "output_norm.weight", shape.width)?,
            output: output?,
            embedding: embedding?,
            turns: turns(gguf, &shape)?,
            shape,
            pool,
        })
    }
}

/// The number of threads heeds what the process may use of the machine.
fn pool() -> Result<ThreadPool, Error> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("inference {index}"))
        .build()
        .map_err(|error| Error::Thread { source: io::Error::other(error) })
}

fn layer(gguf: &Gguf, reader: &mut File, shape: &Shape, index: usize) -> Result<Layer, Error> {
    let name = |part: &str| format!("blk.{index}.{part}.weight");
    let mut read =
        |part: &str, rows: usize, columns: usize| read(gguf, reader, &name(part), &[rows, columns]);
    let (width, query, kv) = (shape.width, shape.query_width(), shape.kv_width());
    let mut query_key_value = read("attn_q", query, width)?;
    query_key_value.append(&mut read("attn_k", kv, width)?);
    query_key_value.append(&mut read("attn_v", kv, width)?);
    let attention_output = read("attn_output", width, query)?;
    let (gate, up) =
        (read("ffn_gate", shape.ffn_width, width)?, read("ffn_up", shape.ffn_width, width)?);
    let down = read("ffn_down", width, shape.ffn_width)?;
    Ok(Layer {
        attention_norm: vector(gguf, reader, &name("attn_norm"), width)?,
        query_key_value: Matrix::new(width, &query_key_value),
        attention_output: Matrix::new(query, &attention_output),
        ffn_norm: vector(gguf, reader, &name("ffn_norm"), width)?,
        gate_up: Matrix::new(width, &by_turns(&gate, &up, width / BLOCK)),
        down: Matrix::new(shape.ffn_width, &down),
    })
}

/// Rows of both, one after the other.
fn by_turns(left: &[Block], right: &[Block], blocks: usize) -> Vec<Block> {
    let mut both = Vec::with_capacity(left.len() + right.len());
    for (left, right) in left.chunks_exact(blocks).zip(right.chunks_exact(blocks)) {
        both.extend_from_slice(left);
        both.extend_from_slice(right);
    }
    both
}

fn matrix(gguf: &Gguf, reader: &mut File, name: &str, shape: &[usize; 2]) -> Result<Matrix, Error> {
    Ok(Matrix::new(shape[1], &read(gguf, reader, name, shape)?))
}

fn read(
    gguf: &Gguf,
    reader: &mut File,
    name: &str,
    shape: &[usize; 2],
) -> Result<Vec<Block>, Error> {
    let tensor = gguf.tensor(name, shape)?;
    // That many weights are in the file.
    let mut read = Vec::with_capacity(shape[0] * shape[1] / BLOCK);
    let mut values = Vec::new();
    tensor.pieces(reader, |kind, bytes| blocks(kind, bytes, &mut values, &mut read))?;
    Ok(read)
}

fn vector(gguf: &Gguf, reader: &mut File, name: &str, length: usize) -> Result<Vec<f32>, Error> {
    let mut values = Vec::new();
    let tensor = gguf.tensor(name, &[length])?;
    tensor.pieces(reader, |kind, bytes| kind.read(bytes, &mut values))?;
    Ok(values)
}

fn turns(gguf: &Gguf, shape: &Shape) -> Result<Vec<f32>, Error> {
    let pairs = shape.rope_width / 2;
    // Llama 3.1 stretches slow turns, so that longer texts fit.
    let name = "rope_freqs.weight";
    let stretched = if gguf.has(name) {
        vector(gguf, &mut gguf.reader()?, name, pairs)?
    } else {
        vec![1.0; pairs]
    };
    let width = shape.rope_width as f32;
    let turn = |(pair, stretch): (usize, &f32)| {
        1.0 / (shape.rope_base.powf(2.0 * pair as f32 / width) * stretch)
    };
    Ok(stretched.iter().enumerate().map(turn).collect())
}
