//! A model of a few kilobytes, with weights by chance: what it says makes no sense, but always the same.
//! Also used by the tests of the program.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "helpers of tests, of which not every one looks at all"
)]

use std::{fs, path::Path};

/// A value of the head of a GGUF file.
#[derive(Clone, Debug)]
pub enum Value {
    U32(u32),
    F32(f32),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    Numbers(Vec<i32>),
    Floats(Vec<f32>),
}

#[derive(Clone)]
pub struct Tiny {
    pub head: Vec<(&'static str, Value)>,
    pub tensors: Vec<(String, Vec<usize>)>,
}

pub const TEMPLATE: &str = "{% for message in messages %}{% if loop.first and message.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}\
    {{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
pub const CONTROL: [&str; 3] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
pub const MERGES: [&str; 6] = ["h e", "l l", "he ll", "hell o", "Ġ w", "1 2"];
/// More than a test is willing to wait for.
pub const CONTEXT: u32 = 50_000;

pub const WIDTH: usize = 32;
pub const FFN: usize = 64;
pub const KV: usize = 16;
pub const LAYERS: usize = 2;

impl Default for Tiny {
    fn default() -> Self {
        let tokens = tokens();
        let vocabulary = tokens.len();
        let kinds = (0..tokens.len()).map(|id| if id < CONTROL.len() { 3 } else { 1 }).collect();
        let text = |text: &str| Value::Text(text.to_owned());
        let head = vec![
            ("general.architecture", text("llama")),
            ("llama.block_count", Value::U32(LAYERS as u32)),
            ("llama.context_length", Value::U32(CONTEXT)),
            ("llama.embedding_length", Value::U32(WIDTH as u32)),
            ("llama.feed_forward_length", Value::U32(FFN as u32)),
            ("llama.attention.head_count", Value::U32(4)),
            ("llama.attention.head_count_kv", Value::U32(2)),
            ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
            ("llama.rope.freq_base", Value::F32(10_000.0)),
            ("tokenizer.ggml.model", text("gpt2")),
            ("tokenizer.ggml.pre", text("smollm")),
            ("tokenizer.ggml.tokens", Value::Texts(tokens)),
            ("tokenizer.ggml.token_type", Value::Numbers(kinds)),
            ("tokenizer.ggml.merges", Value::Texts(MERGES.map(str::to_owned).to_vec())),
            ("tokenizer.ggml.bos_token_id", Value::U32(1)),
            ("tokenizer.ggml.eos_token_id", Value::U32(2)),
            ("tokenizer.ggml.add_bos_token", Value::Bool(false)),
            ("tokenizer.chat_template", text(TEMPLATE)),
        ];
        Self { head, tensors: tensors(vocabulary) }
    }
}

impl Tiny {
    #[must_use]
    pub fn with(mut self, key: &'static str, value: Value) -> Self {
        self.head.retain(|(name, _)| *name != key);
        self.head.push((key, value));
        self
    }

    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        self.head.retain(|(name, _)| *name != key);
        self
    }

    pub fn write(&self, path: &Path) {
        fs::write(path, self.bytes()).unwrap();
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3_u32.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.head.len() as u64).to_le_bytes());
        for (key, value) in &self.head {
            put_text(&mut out, key);
            put(&mut out, value);
        }
        let mut offset = 0_u64;
        for (name, shape) in &self.tensors {
            put_text(&mut out, name);
            out.extend((shape.len() as u32).to_le_bytes());
            shape.iter().rev().for_each(|size| out.extend((*size as u64).to_le_bytes()));
            out.extend(0_u32.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset += 4 * shape.iter().product::<usize>() as u64;
        }
        out.resize(out.len().next_multiple_of(32), 0);
        for (_, values) in self.values() {
            values.iter().for_each(|value| out.extend(value.to_le_bytes()));
        }
        out
    }

    /// The weights of each tensor: in every 32 of them sixteen steps, all of them used, as a file of four
    /// bits has it. The model then computes with exactly these.
    pub fn values(&self) -> Vec<(String, Vec<f32>)> {
        let mut chance = 1_u64;
        let mut values = |name: &str, count: usize| {
            let value = |index: usize| {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let step = match index % 32 {
                    0 => 0,
                    1 => 15,
                    _ => chance >> 60,
                };
                let spread = 1.0 + (index / 32 % 7) as f32 / 8.0;
                let value = (step as f32 / 15.0 - 0.5) * spread;
                if name.contains("norm") { 1.0 + value } else { value }
            };
            (0..count).map(value).collect()
        };
        let tensors = self.tensors.iter();
        tensors.map(|(name, shape)| (name.clone(), values(name, shape.iter().product()))).collect()
    }
}

/// Control tokens, a token for each byte, and what the merges make.
pub fn tokens() -> Vec<String> {
    let printed = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut others = '\u{100}'..;
    let mut of_byte = |byte| if printed(byte) { char::from(byte) } else { others.next().unwrap() };
    let bytes: Vec<String> = (0..=255).map(|byte| of_byte(byte).to_string()).collect();
    let merged = MERGES.iter().map(|merge| merge.replace(' ', ""));
    CONTROL.iter().map(|token| (*token).to_owned()).chain(bytes).chain(merged).collect()
}

fn tensors(vocabulary: usize) -> Vec<(String, Vec<usize>)> {
    let mut tensors = vec![("token_embd.weight".to_owned(), vec![vocabulary, WIDTH])];
    for layer in 0..LAYERS {
        for (part, shape) in [
            ("attn_norm", vec![WIDTH]),
            ("attn_q", vec![WIDTH, WIDTH]),
            ("attn_k", vec![KV, WIDTH]),
            ("attn_v", vec![KV, WIDTH]),
            ("attn_output", vec![WIDTH, WIDTH]),
            ("ffn_norm", vec![WIDTH]),
            ("ffn_gate", vec![FFN, WIDTH]),
            ("ffn_up", vec![FFN, WIDTH]),
            ("ffn_down", vec![WIDTH, FFN]),
        ] {
            tensors.push((format!("blk.{layer}.{part}.weight"), shape));
        }
    }
    tensors.push(("output_norm.weight".to_owned(), vec![WIDTH]));
    tensors
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put(out: &mut Vec<u8>, value: &Value) {
    let kind = |kind: u32| kind.to_le_bytes();
    match value {
        Value::U32(number) => {
            out.extend(kind(4));
            out.extend(number.to_le_bytes());
        }
        Value::F32(number) => {
            out.extend(kind(6));
            out.extend(number.to_le_bytes());
        }
        Value::Bool(flag) => {
            out.extend(kind(7));
            out.push((*flag).into());
        }
        Value::Text(text) => {
            out.extend(kind(8));
            put_text(out, text);
        }
        Value::Texts(texts) => {
            out.extend([kind(9), kind(8)].concat());
            out.extend((texts.len() as u64).to_le_bytes());
            texts.iter().for_each(|text| put_text(out, text));
        }
        Value::Numbers(numbers) => {
            out.extend([kind(9), kind(5)].concat());
            out.extend((numbers.len() as u64).to_le_bytes());
            numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        }
        Value::Floats(numbers) => {
            out.extend([kind(9), kind(6)].concat());
            out.extend((numbers.len() as u64).to_le_bytes());
            numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        }
    }
}
