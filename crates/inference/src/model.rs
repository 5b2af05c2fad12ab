//! A model file with all its parts.

use std::path::Path;

use crate::{Error, Template, Tokenizer, gguf::Gguf, network::Network};

#[derive(Debug)]
pub struct Model {
    pub network: Network,
    pub tokenizer: Tokenizer,
    /// How messages become a prompt, where the file says it.
    pub template: Option<Template>,
}

impl Model {
    /// Reads a file of the Llama family. Takes all cores for a moment.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let gguf = Gguf::open(path)?;
        match gguf.text("general.architecture") {
            Some("llama") => {}
            _ => return Err(gguf.odd("general.architecture", "llama")),
        }
        // Vocabularies take as long as weights, and know nothing of each other.
        let (network, tokenizer) = std::thread::scope(|scope| {
            let network = scope.spawn(|| Network::load(&gguf));
            let tokenizer = Tokenizer::new(&gguf);
            let network = network.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (network, tokenizer)
        });
        let (network, tokenizer) = (network?, tokenizer?);
        if tokenizer.size() > network.shape().vocabulary {
            return Err(gguf.odd("tokenizer.ggml.tokens", "no more than the embedding has rows"));
        }
        let template = gguf.text("tokenizer.chat_template");
        let template = template.map(|text| Template::new(text, &tokenizer)).transpose()?;
        Ok(Self { network, tokenizer, template })
    }
}
