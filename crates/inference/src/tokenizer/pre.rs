//! Byte-level BPE: how a text is cut into words before merges apply differs from model to model.

use tokenizers::{
    PreTokenizerWrapper, SplitDelimiterBehavior, TokenizerBuilder,
    models::bpe::{BPE, Merges},
    normalizers::NFC,
    pre_tokenizers::{
        byte_level::ByteLevel,
        digits::Digits,
        sequence::Sequence,
        split::{Split, SplitPattern},
    },
};

use super::Inner;
use crate::{Error, gguf::Gguf};

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// What `tokenizer.ggml.pre` stands for.
struct Kind {
    cut: PreTokenizerWrapper,
    composed: bool,
    /// A word that is a token is not put together from its parts.
    whole_words: bool,
}

pub(super) fn byte_level(gguf: &Gguf, tokens: &[&str]) -> Result<Inner, Error> {
    let failed = |source| Error::Tokenizer { source };
    let kind = kind(gguf)?;
    let merges = gguf.texts("tokenizer.ggml.merges")?;
    let pair = |merge: &str| {
        let (left, right) = merge.split_once(' ')?;
        Some((left.to_owned(), right.to_owned()))
    };
    let merges: Option<Merges> = merges.into_iter().map(pair).collect();
    let merges = merges.ok_or_else(|| gguf.odd("tokenizer.ggml.merges", "pairs of tokens"))?;
    let bpe = bpe(tokens, merges).ignore_merges(kind.whole_words).build().map_err(failed)?;
    TokenizerBuilder::new()
        .with_model(bpe)
        .with_normalizer(kind.composed.then(|| NFC.into()))
        .with_pre_tokenizer(Some(kind.cut))
        .with_post_processor(None)
        .with_decoder(None)
        .build()
        .map_err(failed)
}

pub(super) fn bpe(tokens: &[&str], merges: Merges) -> tokenizers::models::bpe::BpeBuilder {
    let ids = tokens.iter().zip(0..).map(|(token, id)| ((*token).to_owned(), id));
    BPE::builder().vocab_and_merges(ids.collect::<tokenizers::models::bpe::Vocab>(), merges)
}

fn kind(gguf: &Gguf) -> Result<Kind, Error> {
    // No space in front of the text: it is no word of a sentence.
    let words = || ByteLevel::new(false, false, true);
    let cut_by = |pattern: &str| {
        let pattern = SplitPattern::Regex(pattern.to_owned());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
        let split = split.map_err(|source| Error::Tokenizer { source })?;
        let bytes = ByteLevel::new(false, false, false);
        Ok::<_, Error>(Sequence::new(vec![split.into(), bytes.into()]).into())
    };
    let plain = |cut| Kind { cut, composed: false, whole_words: false };
    match gguf.text("tokenizer.ggml.pre").unwrap_or("gpt-2") {
        "gpt-2" | "gpt2" | "default" => Ok(plain(words().into())),
        "smollm" | "starcoder" | "refact" | "command-r" => {
            let each_digit = Digits::new(true);
            Ok(plain(Sequence::new(vec![each_digit.into(), words().into()]).into()))
        }
        "llama-bpe" | "llama3" | "llama-v3" | "smaug-bpe" => {
            Ok(Kind { whole_words: true, ..plain(cut_by(LLAMA3)?) })
        }
        "qwen2" | "deepseek-r1-qwen" => Ok(Kind { composed: true, ..plain(cut_by(QWEN2)?) }),
        _ => Err(gguf.odd("tokenizer.ggml.pre", "gpt-2, smollm, llama-bpe or qwen2")),
    }
}
