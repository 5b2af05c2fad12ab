//! A language model on the CPU: from a GGUF file of the Llama family to text, token by token.
//!
//! `gguf` (what the file says) → `tokenizer`, `template`, `network` (its three parts) → `engine`: one
//! thread that computes a step for all running sequences at once. What is between the tokens of one
//! sequence is pure: `sample` (which token is next), `stop` (where the text ends).

pub mod engine;
pub mod error;
pub mod gguf;
pub mod network;
pub mod sample;
pub mod stop;
pub mod template;
pub mod tokenizer;

mod model;

pub use engine::Engine;
pub use error::Error;
pub use model::Model;
pub use template::Template;
pub use tokenizer::Tokenizer;

#[cfg(test)]
#[path = "../tests/it/tiny.rs"]
mod tiny;
