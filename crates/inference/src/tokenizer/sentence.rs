//! Vocabularies of sentencepiece, as Llama 2 and Mistral have them.

use std::collections::HashMap;

use tokenizers::{
    TokenizerBuilder,
    models::bpe::Merges,
    normalizers::{Prepend, Replace, Sequence},
};

use super::{Inner, pre::bpe};
use crate::{Error, gguf::Gguf};

const SPACE: &str = "\u{2581}";

pub(super) fn tokenizer(gguf: &Gguf, tokens: &[&str]) -> Result<Inner, Error> {
    let failed = |source| Error::Tokenizer { source };
    let scores = gguf.floats("tokenizer.ggml.scores");
    if scores.len() != tokens.len() {
        return Err(gguf.odd("tokenizer.ggml.scores", "as long as the list of tokens"));
    }
    let unknown = gguf.number("tokenizer.ggml.unknown_token_id").unwrap_or(0);
    let mut bpe = bpe(tokens, merges(tokens, &scores)).byte_fallback(true).fuse_unk(true);
    if let Some(unknown) = tokens.get(unknown) {
        bpe = bpe.unk_token((*unknown).to_owned());
    }
    let spaces = Replace::new(" ", SPACE).map_err(failed)?.into();
    let prefixed = gguf.flag("tokenizer.ggml.add_space_prefix").unwrap_or(true);
    let prefix = prefixed.then(|| Prepend::new(SPACE.to_owned()).into());
    TokenizerBuilder::new()
        .with_model(bpe.build().map_err(failed)?)
        .with_normalizer(Some(Sequence::new(prefix.into_iter().chain([spaces]).collect()).into()))
        .with_pre_tokenizer(None)
        .with_post_processor(None)
        .with_decoder(None)
        .build()
        .map_err(failed)
}

/// Sentencepiece joins the two neighbours whose token has the best score: every way to cut a token
/// into two others is a merge, the best token first.
fn merges(tokens: &[&str], scores: &[f32]) -> Merges {
    let ids: HashMap<&str, usize> =
        tokens.iter().zip(0..).map(|(token, id)| (*token, id)).collect();
    let mut merges = Vec::new();
    for (id, token) in tokens.iter().enumerate() {
        let cuts = token.char_indices().skip(1).map(|(at, _)| token.split_at(at));
        let mut cuts: Vec<(usize, usize)> =
            cuts.filter_map(|(left, right)| Some((*ids.get(left)?, *ids.get(right)?))).collect();
        cuts.sort_unstable();
        merges.extend(cuts.into_iter().map(|cut| (scores[id], cut)));
    }
    merges.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let named = |(_, (left, right)): (f32, (usize, usize))| {
        (tokens[left].to_owned(), tokens[right].to_owned())
    };
    merges.into_iter().map(named).collect()
}
