use super::*;
use crate::tiny::{Tiny, Value, tokens};

fn tokenizer(tiny: &Tiny) -> Result<Tokenizer, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    tiny.write(&path);
    Tokenizer::new(&Gguf::open(&path)?)
}

/// The tokens as the vocabulary writes them.
fn encoded(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    let names = tokens();
    let encoded = tokenizer.encode(text).unwrap();
    encoded.into_iter().map(|token| names[token as usize].clone()).collect()
}

#[test]
fn words_are_put_together_by_the_merges() {
    let tokenizer = tokenizer(&Tiny::default()).unwrap();
    for (text, want) in [
        // No space comes in front that was not there.
        ("hello", &["hello"][..]),
        (" hello", &["Ġ", "hello"]),
        ("hello world", &["hello", "Ġw", "o", "r", "l", "d"]),
        // Each digit is a word of its own, though there is a merge of two.
        ("12", &["1", "2"]),
        ("a  b", &["a", "Ġ", "Ġ", "b"]),
        ("é", &["Ã", "©"]),
        ("<|im_start|>hello<|im_end|>", &["<|im_start|>", "hello", "<|im_end|>"]),
        ("", &[]),
    ] {
        assert_eq!(encoded(&tokenizer, text), want, "{text:?}");
    }
}

#[test]
fn digits_stay_together_where_the_model_wants_it() {
    let gpt2 = Tiny::default().with("tokenizer.ggml.pre", Value::Text("gpt-2".to_owned()));
    assert_eq!(encoded(&tokenizer(&gpt2).unwrap(), "12"), ["12"]);
}

#[test]
fn texts_of_llama_3_begin_as_it_was_trained() {
    let text = |text: &str| Value::Text(text.to_owned());
    let llama = Tiny::default().with("tokenizer.ggml.pre", text("llama-bpe"));
    let silent = || llama.clone().without("tokenizer.ggml.add_bos_token");
    assert_eq!(encoded(&tokenizer(&silent()).unwrap(), "hello"), ["<|im_start|>", "hello"]);
    // It is not there twice, and not where the file says no.
    let begun = encoded(&tokenizer(&silent()).unwrap(), "<|im_start|>hello");
    assert_eq!(begun, ["<|im_start|>", "hello"]);
    assert_eq!(encoded(&tokenizer(&llama).unwrap(), "hello"), ["hello"]);
}

#[test]
fn every_text_comes_back() {
    let tokenizer = tokenizer(&Tiny::default()).unwrap();
    for text in
        ["hello world", "naïve café", "日本語", "👩‍👩‍👧 ok", "a\n\n\tb\r\n", "\u{0}\u{7f}\u{ad}", " x "]
    {
        assert_eq!(tokenizer.decode(&tokenizer.encode(text).unwrap()), text);
    }
}

#[test]
fn control_tokens_are_not_shown_and_end_the_answer() {
    let tokenizer = tokenizer(&Tiny::default()).unwrap();
    assert_eq!(tokenizer.decode(&tokenizer.encode("a<|im_end|>b").unwrap()), "ab");
    // The second is named by the file, the first is known by its name.
    assert_eq!([0, 1, 2, 3].map(|token| tokenizer.ends(token)), [true, false, true, false]);
    assert_eq!(tokenizer.bytes(u32::MAX), b"");
}

#[test]
fn a_text_begins_with_a_token_where_the_model_wants_it_and_only_once() {
    let begun = Tiny::default().with("tokenizer.ggml.add_bos_token", Value::Bool(true));
    let tokenizer = tokenizer(&begun).unwrap();
    assert_eq!(encoded(&tokenizer, "hello"), ["<|im_start|>", "hello"]);
    assert_eq!(encoded(&tokenizer, "<|im_start|>hello"), ["<|im_start|>", "hello"]);
}

#[test]
fn vocabularies_of_sentencepiece_work_by_their_scores() {
    let pieces = [
        "<unk>", "<s>", "</s>", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "▁", "a", "b", "ab", "▁a",
        "▁ab",
    ];
    let scores = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -9.0, -8.0, -8.0, -2.0, -3.0, -1.0];
    let kinds = [2, 3, 3, 6, 6, 6, 6, 1, 1, 1, 1, 1, 1];
    let tiny = Tiny::default()
        .with("tokenizer.ggml.model", Value::Text("llama".to_owned()))
        .with("tokenizer.ggml.tokens", Value::Texts(pieces.map(str::to_owned).to_vec()))
        .with("tokenizer.ggml.scores", Value::Floats(scores.to_vec()))
        .with("tokenizer.ggml.token_type", Value::Numbers(kinds.to_vec()))
        .without("tokenizer.ggml.add_bos_token");
    let tokenizer = tokenizer(&tiny).unwrap();
    assert_eq!(tokenizer.encode("ab ab").unwrap(), [1, 12, 12]);
    assert_eq!(tokenizer.encode("b😀").unwrap(), [1, 7, 9, 3, 4, 5, 6]);
    assert_eq!(tokenizer.decode(&[12, 12, 3, 4, 5, 6]), " ab ab😀");
}

#[test]
fn a_vocabulary_that_cannot_be_used_is_named() {
    let text = |text: &str| Value::Text(text.to_owned());
    for (tiny, want) in [
        (Tiny::default().without("tokenizer.ggml.tokens"), "tokenizer.ggml.tokens must be"),
        (Tiny::default().with("tokenizer.ggml.model", text("bert")), "must be gpt2 or llama"),
        (Tiny::default().with("tokenizer.ggml.model", text("llama")), "tokenizer.ggml.scores"),
        (Tiny::default().with("tokenizer.ggml.pre", text("novel")), "tokenizer.ggml.pre must be"),
        (Tiny::default().with("tokenizer.ggml.merges", Value::Texts(vec!["ab".into()])), "merges"),
        (
            Tiny::default().with("tokenizer.ggml.merges", Value::Texts(vec!["q q".into()])),
            "tokenizer",
        ),
    ] {
        let refused = tokenizer(&tiny).unwrap_err().to_string();
        assert!(refused.contains(want), "{refused}");
    }
}

#[test]
fn characters_are_told_when_all_of_them_is_there() {
    let mut stream = Utf8Stream::default();
    let told: Vec<String> = "a😀é".bytes().map(|byte| stream.push(&[byte])).collect();
    assert_eq!(told, ["a", "", "", "", "😀", "", "é"]);
    assert_eq!(stream.finish(), "");
}

#[test]
fn what_never_becomes_a_character_is_replaced() {
    for (parts, want) in [
        (&[&b"a\xFFb"[..]][..], "a\u{FFFD}b"),
        (&[b"\xE2\x82", b"x"], "\u{FFFD}x"),
        (&[b"\xF0\x9F"], "\u{FFFD}"),
        (&[b"\x80\x80"], "\u{FFFD}\u{FFFD}"),
    ] {
        let mut stream = Utf8Stream::default();
        let mut text: String = parts.iter().map(|part| stream.push(part)).collect();
        text += &stream.finish();
        assert_eq!(text, want, "{parts:?}");
    }
}
