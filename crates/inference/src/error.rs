//! What can go wrong with a model file, and while computing.

use std::{io, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot read {} as GGUF", path.display())]
    Gguf { path: PathBuf, source: io::Error },
    #[error("cannot use the model: {key} must be {rule}, got {got}")]
    Metadata { key: String, rule: &'static str, got: String },
    #[error("cannot read the tensor {name} of the model")]
    Tensor { name: String, source: io::Error },
    #[error("cannot use the tensor {name} of the model: its shape is {got:?} instead of {want:?}")]
    Shape { name: String, want: Vec<usize>, got: Vec<usize> },
    #[error("cannot make the tokenizer of the model")]
    Tokenizer { source: tokenizers::Error },
    #[error("cannot read the chat template of the model")]
    Template { source: minijinja::Error },
    #[error("cannot compute what follows the token {token}: the model has {vocabulary}")]
    Token { token: u32, vocabulary: usize },
    #[error("cannot take room for {tokens} tokens")]
    Room { tokens: usize },
    #[error("cannot start a thread")]
    Thread { source: io::Error },
}
