use std::sync::LazyLock;

use serde_json::json;

use super::*;
use crate::tiny::Tiny;

fn model_of(tiny: &Tiny) -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    tiny.write(&path);
    Model::load(&path).unwrap()
}

static MODEL: LazyLock<Model> = LazyLock::new(|| model_of(&Tiny::default()));
const LIMITS: Limits = Limits { sequences: 1, tokens: 100 };

fn understand(kind: Kind, body: &Value) -> Result<Asked, Refused> {
    let body = Body::read(body.to_string().as_bytes())?;
    body.understand(kind, &MODEL, LIMITS, Timestamp::UNIX_EPOCH)
}

fn chat(more: &Value) -> Result<Asked, Refused> {
    let mut body = json!({"messages": [{"role": "user", "content": "hello"}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    understand(Kind::Chat, &body)
}

#[test]
fn members_that_are_not_given_have_the_defaults_of_the_api() {
    let asked = chat(&json!({})).unwrap();
    assert!(!asked.streams && !asked.tells_usage && !asked.request.ignore_end);
    // All that is left.
    assert_eq!(asked.request.max_tokens + asked.request.prompt.len(), 100);
    let sampling = asked.request.sampling;
    assert_eq!((sampling.temperature, sampling.top_p, sampling.top_k), (1.0, 1.0, 0));
    let asked = understand(Kind::Completion, &json!({"prompt": "hello"})).unwrap();
    assert_eq!(asked.request.max_tokens, 16);
    let null = json!({"prompt": "hello", "stop": null, "n": null, "seed": null, "logprobs": null});
    understand(Kind::Completion, &null).unwrap();
}

#[test]
fn what_is_given_is_taken() {
    let asked = chat(&json!({
        "max_tokens": 5, "max_completion_tokens": 7, "temperature": 0, "top_p": 0.5, "top_k": 3,
        "seed": 9, "stop": ["a", "b"], "stream": true, "stream_options": {"include_usage": true},
        "frequency_penalty": 1, "presence_penalty": -1, "repetition_penalty": 1.5,
        "logit_bias": {"7": -100}, "ignore_eos": true, "user": "somebody", "tools": [],
    }));
    let asked = asked.unwrap();
    assert!(asked.streams && asked.tells_usage && asked.request.ignore_end);
    assert_eq!((asked.request.max_tokens, asked.request.stops.len()), (7, 2));
    let sampling = asked.request.sampling;
    assert_eq!((sampling.temperature, sampling.seed, sampling.bias), (0.0, 9, vec![(7, -100.0)]));
}

#[test]
fn members_that_ask_for_nothing_else_are_ignored() {
    let asked = chat(&json!({
        "min_tokens": 0, "stop_token_ids": [], "add_generation_prompt": true, "guided_json": null,
        "prompt_logprobs": null, "skip_special_tokens": true, "chat_template_kwargs": {},
        "priority": 7, "request_id": "x", "metadata": {"a": "b"}, "continue_final_message": false,
    }));
    asked.unwrap();
}

#[test]
fn a_token_has_one_bias_however_it_is_written() {
    let asked = chat(&json!({"logit_bias": {"7": 50, "07": 60, "007": 70}})).unwrap();
    assert_eq!(asked.request.sampling.bias.len(), 1);
}

#[test]
fn prompts_may_be_texts_tokens_or_parts() {
    let tokens = |prompt: Value| {
        let asked = understand(Kind::Completion, &json!({"prompt": prompt}));
        asked.unwrap().request.prompt
    };
    let hello = tokens(json!("hello"));
    assert_eq!(tokens(json!(["hello"])), hello);
    assert_eq!(tokens(json!(hello)), hello);
    assert_eq!(tokens(json!([hello])), hello);
    let parts =
        json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]});
    let parts = understand(Kind::Chat, &parts).unwrap().request.prompt;
    assert_eq!(parts, chat(&json!({})).unwrap().request.prompt);
    assert!(MODEL.tokenizer.decode(&parts).starts_with("user\nhello\nassistant\n"));
}

#[test]
fn what_cannot_be_meant_is_refused_by_name() {
    for (more, param, want) in [
        (json!({"messages": []}), "messages", "at least one"),
        (json!({"messages": null}), "messages", "at least one"),
        (json!({"messages": "hi"}), "messages", "expected a sequence"),
        (json!({"messages": ["hi"]}), "messages[0]", "must be an object"),
        (json!({"messages": [{"role": "king", "content": ""}]}), "messages[0].role", "one of"),
        (json!({"messages": [{"role": "user"}]}), "messages[0].content", "must be a text"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
            "messages[0].content",
            "text",
        ),
        (json!({"messages": [{"role": "tool", "content": "x"}]}), "messages", "no tools"),
        (
            json!({"messages": [{"role": "user", "content": "x".repeat(200)}]}),
            "messages",
            "may have 100",
        ),
        (json!({"max_tokens": 0}), "max_tokens", "at least 1"),
        (json!({"max_tokens": -1}), "max_tokens", "invalid value"),
        (json!({"max_tokens": 100}), "messages", "both together at most 100"),
        (json!({"max_tokens": u64::MAX}), "messages", "both together at most 100"),
        (json!({"temperature": -0.1}), "temperature", "from 0"),
        (json!({"temperature": "hot"}), "temperature", "invalid type"),
        (json!({"temperature": 1e30}), "temperature", "from 0"),
        (json!({"top_p": 0}), "top_p", "over 0"),
        (json!({"top_p": 1.1}), "top_p", "from 0 to 1"),
        (json!({"top_k": -2}), "top_k", "must be"),
        (json!({"min_p": 2}), "min_p", "from 0 to 1"),
        (json!({"frequency_penalty": 3}), "frequency_penalty", "from -2 to 2"),
        (json!({"repetition_penalty": 0}), "repetition_penalty", "from"),
        (json!({"logit_bias": {"x": 1}}), "logit_bias", "from tokens"),
        (json!({"logit_bias": {"1": 101}}), "logit_bias", "from tokens"),
        (json!({"stop": 1}), "stop", "must be a text"),
        (json!({"stop": [1]}), "stop", "must be a text"),
        (json!({"stop": vec!["a"; 17]}), "stop", "at most 16 texts"),
        (json!({"stop": "a".repeat(1025)}), "stop", "at most 1024 bytes"),
        (json!({"min_tokens": 3}), "min_tokens", "not supported"),
        (json!({"stop_token_ids": [7]}), "stop_token_ids", "not supported"),
        (json!({"add_generation_prompt": false}), "add_generation_prompt", "not supported"),
        (json!({"chat_template": "{{ x }}"}), "chat_template", "not supported"),
        (json!({"guided_json": {"type": "object"}}), "guided_json", "not supported"),
        (json!({"guided_choice": ["a"]}), "guided_choice", "not supported"),
        (json!({"prompt_logprobs": 1}), "prompt_logprobs", "not supported"),
        (json!({"skip_special_tokens": false}), "skip_special_tokens", "not supported"),
        (json!({"stream": "yes"}), "stream", "expected a boolean"),
        (
            json!({"stream_options": {"include_usage": 1}}),
            "stream_options.include_usage",
            "boolean",
        ),
        (json!({"n": 2}), "n", "must be 1"),
        (json!({"logprobs": true}), "logprobs", "not supported"),
        (json!({"tools": [{}]}), "tools", "not supported"),
        (json!({"response_format": {"type": "json_object"}}), "response_format", "must be text"),
        (json!({"model": 7}), "model", "expected a string"),
    ] {
        let refused = chat(&more).unwrap_err();
        assert_eq!(refused.status, 400, "{more}");
        assert_eq!(refused.param.as_deref(), Some(param), "{more} {refused:?}");
        assert!(refused.message.contains(want), "{more} {refused:?}");
    }
}

#[test]
fn prompts_that_cannot_be_meant_are_refused() {
    let size = MODEL.tokenizer.size();
    for (prompt, want) in [
        (json!(null), "there is no prompt"),
        (json!(""), "the prompt is empty"),
        (json!([]), "must be a text or a list of tokens"),
        (json!([[]]), "the prompt is empty"),
        (json!(7), "must be a text or a list of tokens"),
        (json!(["a", "b"]), "only one prompt"),
        (json!([1, "a"]), "tokens must be numbers below"),
        (json!([size]), "tokens must be numbers below"),
        (json!([-1]), "tokens must be numbers below"),
        (json!([1.5]), "tokens must be numbers below"),
    ] {
        let refused = understand(Kind::Completion, &json!({"prompt": prompt})).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.param.as_deref()), (400, Some("prompt")));
        assert!(refused.message.contains(want), "{prompt} {refused:?}");
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for text in ["", "{", "[]", "7", "\"a\"", "{} {}", "{\"prompt\": }", "\u{0}"] {
        let refused = Body::read(text.as_bytes()).unwrap_err();
        assert!(
            refused.status == 400 && refused.message.contains("cannot read the body"),
            "{text:?}"
        );
        assert_eq!(refused.param, None, "{text:?}");
    }
    assert!(Body::read(b"\xff").is_err());
}

#[test]
fn a_model_without_a_template_takes_no_messages() {
    let model = model_of(&Tiny::default().without("tokenizer.chat_template"));
    let body = Body::read(br#"{"messages": [{"role": "user", "content": "a"}]}"#).unwrap();
    let refused = body.understand(Kind::Chat, &model, LIMITS, Timestamp::UNIX_EPOCH).unwrap_err();
    assert!(refused.message.contains("no chat template"), "{refused:?}");
}
