use super::*;

#[test]
fn an_alias_means_its_repository_and_anything_else_itself() {
    for (model_ref, want) in [
        ("gemma-3-1b-q4", Some("google/gemma-3-1b-it-qat-q4_0-gguf")),
        ("llama-3-8b-q4", Some("meta-llama/Llama-3.1-8B-Instruct-GGUF")),
        ("qwen-3-8b", None),
        ("llama3-8b-q4", Some("llama3-8b-q4")),
        ("Qwen/Qwen3-8B-GGUF", Some("Qwen/Qwen3-8B-GGUF")),
    ] {
        assert_eq!(repository(model_ref), want, "{model_ref}");
    }
}

#[test]
fn every_repository_of_the_table_has_an_owner_and_a_name() {
    for (alias, repository) in ALIASES {
        let parts = repository.map(|repository| repository.split('/').count());
        assert!(matches!(parts, None | Some(2)), "{alias}");
    }
}
