//! Short names of models that the server knows, and the repositories they stand for.
//!
//! The server resolves them itself when it serves, but not when it fetches ahead of that, so this
//! table is for prefetching alone.

#[cfg(test)]
mod tests;

/// As the server has it. `None`: a name that it knows, for a repository that we do not.
const ALIASES: [(&str, Option<&str>); 9] = [
    ("gemma-3-1b-q4", Some("google/gemma-3-1b-it-qat-q4_0-gguf")),
    ("gemma-3-2b-q4", Some("google/gemma-3-2b-it-qat-q4_0-gguf")),
    ("llama-3-1b-q4", Some("meta-llama/Llama-3.2-1B-Instruct-GGUF")),
    ("llama-3-8b-q4", Some("meta-llama/Llama-3.1-8B-Instruct-GGUF")),
    ("mistral-7b-q4", Some("mistralai/Mistral-7B-Instruct-v0.3-GGUF")),
    ("qwen-2.5-7b-q4", Some("Qwen/Qwen2.5-7B-Instruct-GGUF")),
    // Newer than any table that we have seen. A guess could fetch gigabytes that nobody serves.
    ("qwen-3-0.6b", None),
    ("qwen-3-4b", None),
    ("qwen-3-8b", None),
];

/// The repository that a model reference means; `None` where that cannot be told.
pub(super) fn repository(model_ref: &str) -> Option<&str> {
    match ALIASES.iter().find(|(alias, _)| *alias == model_ref) {
        Some((_, repository)) => *repository,
        // Whatever is no alias is a repository to the server.
        None => Some(model_ref),
    }
}
