//! From text to tokens by the vocabulary of the model file, and back.

mod pieces;
mod pre;
mod sentence;
mod stream;
#[cfg(test)]
mod tests;

use tokenizers::{
    AddedToken, DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper,
    TokenizerImpl, models::bpe::BPE,
};

use crate::{Error, gguf::Gguf};
pub use stream::Utf8Stream;

/// Kinds of tokens, as `tokenizer.ggml.token_type` counts them.
const CONTROL: usize = 3;
const USER_DEFINED: usize = 4;

/// Tokens that end an answer, though many files name only one of theirs.
const ENDS: [&str; 7] = [
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end|>",
    "</s>",
];

type Inner = TokenizerImpl<
    BPE,
    NormalizerWrapper,
    PreTokenizerWrapper,
    PostProcessorWrapper,
    DecoderWrapper,
>;

#[derive(Debug)]
pub struct Tokenizer {
    inner: Inner,
    /// The bytes that each token stands for.
    pieces: Vec<Vec<u8>>,
    /// What is no text: it is not shown.
    control: Vec<bool>,
    ends: Vec<u32>,
    bos: Option<(u32, String)>,
    eos: Option<(u32, String)>,
    starts_with_bos: bool,
}

impl Tokenizer {
    pub(crate) fn new(gguf: &Gguf) -> Result<Self, Error> {
        let tokens = gguf.texts("tokenizer.ggml.tokens")?;
        let kinds = gguf.numbers("tokenizer.ggml.token_type");
        let kind = |id: usize| kinds.get(id).copied().unwrap_or(1);
        let (mut inner, pieces) = match gguf.text("tokenizer.ggml.model") {
            Some("gpt2") => (pre::byte_level(gguf, &tokens)?, pieces::byte_level(&tokens, kind)),
            Some("llama") => (sentence::tokenizer(gguf, &tokens)?, pieces::sentence(&tokens, kind)),
            _ => return Err(gguf.odd("tokenizer.ggml.model", "gpt2 or llama")),
        };
        let whole = tokens.iter().enumerate().filter_map(|(id, token)| match kind(id) {
            CONTROL => Some(AddedToken::from(*token, true)),
            USER_DEFINED => Some(AddedToken::from(*token, false)),
            _ => None,
        });
        let whole: Vec<AddedToken> = whole.collect();
        inner.add_tokens(whole).map_err(|source| Error::Tokenizer { source })?;
        let named = |key: &str| {
            let id = gguf.number(key)?;
            let token = tokens.get(id)?;
            Some((u32::try_from(id).ok()?, (*token).to_owned()))
        };
        let eos = named("tokenizer.ggml.eos_token_id");
        let said = ["eot", "eom"].map(|end| named(&format!("tokenizer.ggml.{end}_token_id")));
        let mut ends: Vec<u32> =
            said.into_iter().chain([eos.clone()]).flatten().map(first).collect();
        let usual = |(id, token): (usize, &&str)| {
            let ends = kind(id) == CONTROL && ENDS.contains(token);
            ends.then(|| u32::try_from(id).ok()).flatten()
        };
        ends.extend(tokens.iter().enumerate().filter_map(usual));
        ends.sort_unstable();
        ends.dedup();
        let bos = named("tokenizer.ggml.bos_token_id");
        // These vocabularies begin every text so, unless the file says otherwise.
        let usually = gguf.text("tokenizer.ggml.model") == Some("llama")
            || matches!(gguf.text("tokenizer.ggml.pre"), Some("llama-bpe" | "llama3" | "llama-v3"));
        let starts_with_bos = gguf.flag("tokenizer.ggml.add_bos_token").unwrap_or(usually);
        let control = (0..tokens.len()).map(|id| kind(id) == CONTROL).collect();
        Ok(Self { inner, pieces, control, ends, bos, eos, starts_with_bos })
    }

    /// The tokens of a prompt, with the one that begins every text if the model wants it.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        let encoding =
            self.inner.encode_fast(text, false).map_err(|source| Error::Tokenizer { source })?;
        let mut tokens = encoding.get_ids().to_vec();
        if let Some((bos, _)) = self.bos.as_ref().filter(|_| self.starts_with_bos)
            && tokens.first() != Some(bos)
        {
            tokens.insert(0, *bos);
        }
        Ok(tokens)
    }

    /// All at once; what is no UTF-8 is replaced.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let mut stream = Utf8Stream::default();
        let text: String = tokens.iter().map(|token| stream.push(self.bytes(*token))).collect();
        text + &stream.finish()
    }

    /// What a token adds to the text: maybe a part of a character, nothing if it is a control token.
    pub fn bytes(&self, token: u32) -> &[u8] {
        let token = token as usize;
        match self.control.get(token) {
            Some(false) => self.pieces.get(token).map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }

    /// Whether an answer is over with this token.
    pub fn ends(&self, token: u32) -> bool {
        self.ends.binary_search(&token).is_ok()
    }

    /// How many tokens there are.
    pub fn size(&self) -> usize {
        self.pieces.len()
    }

    pub(crate) fn bos(&self) -> &str {
        self.bos.as_ref().map_or("", |(_, token)| token)
    }

    pub(crate) fn eos(&self) -> &str {
        self.eos.as_ref().map_or("", |(_, token)| token)
    }
}

fn first((id, _): (u32, String)) -> u32 {
    id
}
