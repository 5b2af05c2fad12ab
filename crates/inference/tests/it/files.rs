//! Files that are no models, or none of ours.

use std::error::Error;

use windlass_inference::{Model, network::Chunk};

use crate::tiny::{Tiny, Value};

fn refused(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, bytes).unwrap();
    let error = Model::load(&path).unwrap_err();
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    let text = |text: &str| Value::Text(text.to_owned());
    for (tiny, want) in [
        (Tiny::default().with("general.architecture", text("mamba")), "must be llama"),
        (Tiny::default().without("llama.block_count"), "llama.block_count must be a size"),
        (Tiny::default().with("llama.block_count", Value::U32(3)), "blk.2."),
        (Tiny::default().with("llama.feed_forward_length", Value::U32(96)), "its shape is"),
        (Tiny::default().with("llama.attention.head_count_kv", Value::U32(3)), "a divisor"),
        (Tiny::default().with("llama.attention.head_count_kv", Value::U32(0)), "a size"),
        (Tiny::default().with("llama.expert_count", Value::U32(8)), "experts"),
        // What would be divided by, or taken room for.
        (Tiny::default().with("general.alignment", Value::U32(0)), "no power of two"),
        (Tiny::default().with("general.alignment", text("32")), "no number"),
        (Tiny::default().with("llama.attention.key_length", Value::U32(1 << 29)), "together"),
        (Tiny::default().with("llama.attention.key_length", Value::U32(0)), "a size"),
        (Tiny::default().with("llama.attention.value_length", Value::U32(4)), "as long as keys"),
        (Tiny::default().with("llama.embedding_length", Value::U32(1 << 29)), "multiple of 32"),
        (Tiny::default().with("llama.feed_forward_length", Value::U32(48)), "multiple of 32"),
        (Tiny::default().with("llama.context_length", Value::U32(u32::MAX)), "a size"),
        (Tiny::default().with("llama.block_count", Value::U32(1 << 30)), "not in the file"),
        (
            Tiny::default().with("llama.rope.scaling.type", text("yarn")),
            "scaling.type must be none",
        ),
        (
            Tiny::default().with("llama.rope.scaling.factor", Value::F32(2.0)),
            "other rotary scaling",
        ),
        (Tiny::default().with("llama.rope.scale_linear", Value::F32(4.0)), "other rotary scaling"),
    ] {
        let said = refused(&tiny.bytes());
        assert!(said.contains(want), "{said}");
    }
}

#[test]
fn a_file_with_biases_is_refused() {
    let mut tiny = Tiny::default();
    tiny.tensors.push(("blk.0.attn_q.bias".to_owned(), vec![32]));
    let said = refused(&tiny.bytes());
    assert!(said.contains("blk.0.attn_q.bias") && said.contains("biases"), "{said}");
}

/// Whoever asks for completions only needs none.
#[test]
fn a_template_that_cannot_be_read_refuses_chats_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let broken = Value::Text("{% if %}".to_owned());
    Tiny::default().with("tokenizer.chat_template", broken).write(&path);
    let model = Model::load(&path).unwrap();
    let said = model.template.unwrap().render(&[], jiff::Timestamp::UNIX_EPOCH).unwrap_err();
    assert!(said.to_string().contains("syntax error"), "{said}");
}

#[test]
fn a_vocabulary_that_the_network_does_not_have_is_refused() {
    let mut tiny = Tiny::default();
    tiny.tensors[0].1[0] -= 1;
    let said = refused(&tiny.bytes());
    assert!(said.contains("tokenizer.ggml.tokens must be no more than"), "{said}");
}

/// Sizes are claimed by a few bytes: they must not be believed before what they are of is there.
#[test]
fn a_tensor_that_is_larger_than_the_file_is_refused() {
    let sizes = [usize::MAX, usize::MAX / 32, usize::MAX / 128 + 1, 1 << 40];
    for size in sizes {
        let mut bytes = Tiny::default().bytes();
        let name = b"token_embd.weight";
        let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
        // The number of dimensions, then columns and rows.
        let rows = at + name.len() + 4 + 8;
        bytes[rows..rows + 8].copy_from_slice(&(size as u64).to_le_bytes());
        let said = refused(&bytes);
        assert!(said.contains("beyond the end of the file"), "{said}");
    }
}

/// Whatever the head says: it is refused, or there is a model that can be asked.
#[test]
fn a_file_with_any_byte_changed_is_no_panic() {
    let bytes = Tiny::default().bytes();
    let weights: usize = Tiny::default().values().iter().map(|(_, values)| 4 * values.len()).sum();
    let head = bytes.len() - weights;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let (mut chance, mut read) = (7_u64, 0);
    for _ in 0..150 {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (chance >> 33) as usize % head;
        let mut changed = bytes.clone();
        changed[at] = [0, 1, 0x7F, 0x80, 0xFF, changed[at] ^ 1][(chance >> 20) as usize % 6];
        std::fs::write(&path, &changed).unwrap();
        if let Ok(model) = Model::load(&path) {
            read += 1;
            let mut tokens = model.tokenizer.encode("hello <|im_end|> 12").unwrap();
            tokens.push(0);
            let mut cache = model.network.cache();
            let mut chunks = [Chunk { tokens: &tokens, cache: &mut cache, wants_logits: true }];
            model.network.forward(&mut chunks).unwrap();
        }
    }
    assert!((1..150).contains(&read), "{read}");
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let bytes = Tiny::default().bytes();
    for length in (0..bytes.len()).step_by(997) {
        refused(&bytes[..length]);
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Model::load("no-such.gguf".as_ref()).unwrap_err();
    assert_eq!(error.to_string(), "cannot read no-such.gguf");
}
