//! The sizes of a network.

use std::io;

use super::matrix::BLOCK;
use crate::{Error, gguf::Gguf};

/// More values than any network of this family has between its layers.
const WIDEST: usize = 1 << 20;
const KEY_LENGTH: &str = "llama.attention.key_length";

#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub layers: usize,
    /// Values of each token between the layers.
    pub width: usize,
    pub ffn_width: usize,
    pub heads: usize,
    /// Several heads share the keys and values of one of these.
    pub kv_heads: usize,
    pub head_width: usize,
    pub vocabulary: usize,
    /// The most tokens that a sequence may have.
    pub context: usize,
    pub epsilon: f32,
    pub rope_base: f32,
    pub rope_width: usize,
}

impl Shape {
    pub(super) fn read(gguf: &Gguf) -> Result<Self, Error> {
        if gguf.number("llama.expert_count").is_some_and(|experts| experts > 0) {
            return Err(gguf.odd("llama.expert_count", "0: experts are not supported"));
        }
        let scaling = "llama.rope.scaling.type";
        if gguf.text(scaling).is_some_and(|kind| kind != "none") {
            return Err(gguf.odd(scaling, "none"));
        }
        for key in ["llama.rope.scale_linear", "llama.rope.scaling.factor"] {
            // Of no use where the file says that there is no scaling.
            let stretched = gguf.text(scaling).is_none() && gguf.says(key);
            if stretched && !matches!(gguf.float(key), Some(0.0 | 1.0)) {
                return Err(gguf.odd(key, "1: other rotary scaling is not supported"));
            }
        }
        if let Some(name) = gguf.tensors().find(|name| name.ends_with(".bias")) {
            let source = io::Error::new(io::ErrorKind::InvalidData, "biases are not supported");
            return Err(Error::Tensor { name: name.to_owned(), source });
        }
        let (width, heads) =
            (gguf.size("llama.embedding_length")?, gguf.size("llama.attention.head_count")?);
        let ffn_width = gguf.size("llama.feed_forward_length")?;
        for (key, width) in
            [("llama.embedding_length", width), ("llama.feed_forward_length", ffn_width)]
        {
            if width > WIDEST || !width.is_multiple_of(BLOCK) {
                return Err(gguf.odd(key, "a multiple of 32 that is not too large"));
            }
        }
        let or = |key: &str, otherwise| if gguf.says(key) { gguf.size(key) } else { Ok(otherwise) };
        let kv_heads = or("llama.attention.head_count_kv", heads)?;
        if !heads.is_multiple_of(kv_heads) {
            return Err(gguf.odd("llama.attention.head_count_kv", "a divisor of head_count"));
        }
        let head_width = or(KEY_LENGTH, width / heads)?;
        if or("llama.attention.value_length", head_width)? != head_width {
            return Err(gguf.odd("llama.attention.value_length", "as long as keys"));
        }
        let rope_width = or("llama.rope.dimension_count", head_width)?;
        if head_width == 0 || !head_width.is_multiple_of(2) {
            return Err(gguf.odd("llama.attention.head_count", "such that heads have even widths"));
        }
        if rope_width > head_width || !rope_width.is_multiple_of(2) {
            return Err(gguf.odd("llama.rope.dimension_count", "even and no wider than a head"));
        }
        let query_width = heads.checked_mul(head_width).filter(|width| *width <= WIDEST);
        if !query_width.is_some_and(|width| width.is_multiple_of(BLOCK)) {
            return Err(gguf.odd(KEY_LENGTH, "such that all heads together are whole blocks of 32"));
        }
        let vocabulary = gguf.rows("token_embd.weight").filter(|rows| *rows > 0);
        Ok(Self {
            layers: gguf.size("llama.block_count")?,
            width,
            ffn_width,
            heads,
            kv_heads,
            head_width,
            vocabulary: vocabulary.ok_or_else(|| gguf.odd("token_embd.weight", "a tensor"))?,
            context: gguf.size("llama.context_length")?,
            epsilon: gguf.float("llama.attention.layer_norm_rms_epsilon").unwrap_or(1e-5),
            rope_base: gguf.float("llama.rope.freq_base").unwrap_or(10_000.0),
            rope_width,
        })
    }

    /// What a cache takes for each token.
    pub fn cache_bytes(&self) -> usize {
        2 * size_of::<f32>() * self.layers * self.kv_width()
    }

    /// Of the matrix that knows each token.
    pub(super) fn embedding(&self) -> [usize; 2] {
        [self.vocabulary, self.width]
    }

    pub(super) fn query_width(&self) -> usize {
        self.heads * self.head_width
    }

    pub(super) fn kv_width(&self) -> usize {
        self.kv_heads * self.head_width
    }

    /// How many heads share keys and values.
    pub(super) fn group(&self) -> usize {
        self.heads / self.kv_heads
    }
}
