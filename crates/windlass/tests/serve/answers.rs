//! Requests that are answered.

use serde_json::{Value, json};

use crate::process::{Server, events, read};

const CHAT: &str = "/v1/chat/completions";
const COMPLETION: &str = "/v1/completions";

fn hello(more: Value) -> Value {
    let mut body = json!({
        "model": "tiny", "messages": [{"role": "user", "content": "hello"}],
        "temperature": 0, "max_tokens": 12, "ignore_eos": true,
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn a_chat_is_answered_alike_as_a_whole_and_in_parts() {
    let server = Server::start(&[]);
    let whole = server.post(CHAT, &hello(json!({})));
    assert_eq!(whole.status, 200, "{}", whole.text);
    let whole = whole.json();
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(whole["model"], "tiny");
    assert!(whole["id"].as_str().unwrap().starts_with("chatcmpl-"));
    let choice = &whole["choices"][0];
    assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(0), &json!("length")));
    assert_eq!(choice["message"]["role"], "assistant");
    assert_eq!(whole["usage"]["completion_tokens"], 12);
    let both = whole["usage"]["prompt_tokens"].as_u64().unwrap() + 12;
    assert_eq!(whole["usage"]["total_tokens"], both);

    let more = json!({"stream": true, "stream_options": {"include_usage": true}});
    let (parts, done) = events(&server.post(CHAT, &hello(more)).text);
    assert!(done);
    assert_eq!(parts[0]["choices"][0]["delta"]["role"], "assistant");
    assert!(parts.iter().all(|part| part["object"] == "chat.completion.chunk"));
    assert!(parts.iter().all(|part| part["id"] == parts[0]["id"]));
    let text: String =
        parts.iter().filter_map(|part| part["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(json!(text), choice["message"]["content"]);
    let (usage, parts) = parts.split_last().unwrap();
    assert_eq!((&usage["choices"], &usage["usage"]), (&json!([]), &whole["usage"]));
    assert_eq!(parts.last().unwrap()["choices"][0]["finish_reason"], "length");
    let (parts, done) = events(&server.post(CHAT, &hello(json!({"stream": true}))).text);
    assert!(done && parts.iter().all(|part| part.get("usage").is_none()));
}

#[test]
fn a_completion_is_answered_alike_as_a_whole_and_in_parts() {
    let server = Server::start(&[]);
    let body = json!({"prompt": "hello", "temperature": 0, "max_tokens": 8, "ignore_eos": true});
    let whole = server.post(COMPLETION, &body).json();
    assert_eq!((&whole["object"], &whole["model"]), (&json!("text_completion"), &json!("tiny")));
    let mut streamed = body.clone();
    streamed["stream"] = json!(true);
    let (parts, done) = events(&server.post(COMPLETION, &streamed).text);
    let text = |part: &Value| part["choices"][0]["text"].as_str().unwrap().to_owned();
    assert!(done);
    assert_eq!(parts.iter().map(text).collect::<String>(), text(&whole));
    // Up to a text of the client's.
    let stop: String = text(&whole).chars().skip(3).take(2).collect();
    let mut stopped = body;
    stopped["stop"] = json!(stop);
    let stopped = server.post(COMPLETION, &stopped).json();
    assert_eq!(text(&stopped), text(&whole).split(&stop).next().unwrap());
    assert_eq!(stopped["choices"][0]["finish_reason"], "stop");
}

#[test]
fn several_at_once_get_the_answers_they_would_get_alone() {
    let server = Server::start(&["--max-num-seqs", "3"]);
    let bodies: Vec<String> = (0..7)
        .map(|n| hello(json!({"messages": [{"role": "user", "content": "a".repeat(n * 9 + 1)}], "max_tokens": 40})))
        .map(|body| body.to_string())
        .collect();
    let content = |response: crate::process::Response| {
        assert_eq!(response.status, 200, "{}", response.text);
        response.json()["choices"][0]["message"]["content"].clone()
    };
    let alone: Vec<Value> =
        bodies.iter().map(|body| content(server.send("POST", CHAT, "", body))).collect();
    let under_way: Vec<_> =
        bodies.iter().map(|body| server.begin("POST", CHAT, "", body)).collect();
    let at_once: Vec<Value> = under_way.into_iter().map(|stream| content(read(stream))).collect();
    assert_eq!(at_once, alone);
}

#[test]
fn equal_seeds_give_equal_answers() {
    let server = Server::start(&[]);
    let text = |seed: u64| {
        let body = hello(json!({"temperature": 1.5, "seed": seed, "max_tokens": 20}));
        server.post(CHAT, &body).json()["choices"][0]["message"]["content"].clone()
    };
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
}

#[test]
fn models_are_listed_by_all_their_names() {
    let server = Server::start(&["--served-model-name", "a", "org/b", "--max-model-len", "2K"]);
    let list = server.get("/v1/models").json();
    let names: Vec<&str> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!((&list["object"], &names[..]), (&json!("list"), &["a", "org/b"][..]));
    assert_eq!(list["data"][0]["max_model_len"], 2048);
    assert_eq!(server.get("/v1/models/org/b").json()["id"], "org/b");
    let body = hello(json!({"model": "org/b"}));
    assert_eq!(server.post(CHAT, &body).json()["model"], "org/b");
    assert_eq!(server.get("/health").status, 200);
    assert_eq!(server.get("/version").json()["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn pickers_find_their_metrics() {
    let server = Server::start(&["--max-num-seqs", "4", "--max-model-len", "1024"]);
    server.post(CHAT, &hello(json!({})));
    server.until("at rest", |server| server.metric("vllm:num_requests_running") == 0.0);
    for (name, want) in [
        ("vllm:num_requests_waiting", 0.0),
        ("vllm:kv_cache_usage_perc", 0.0),
        ("vllm:gpu_cache_usage_perc", 0.0),
        ("vllm:cache_config_info", 1.0),
        ("vllm:generation_tokens_total", 12.0),
        ("vllm:request_success_total", 1.0),
        ("vllm:time_to_first_token_seconds_count", 1.0),
        ("vllm:e2e_request_latency_seconds_count", 1.0),
    ] {
        assert_eq!(server.metric(name), want, "{name}");
    }
    assert!(server.metric("vllm:prompt_tokens_total") > 4.0);
    let text = server.get("/metrics").text;
    assert!(text.contains(r#"model_name="tiny""#), "{text}");
    assert!(text.contains(r#"block_size="16",num_gpu_blocks="256""#), "{text}");
}
