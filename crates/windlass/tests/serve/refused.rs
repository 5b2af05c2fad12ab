//! Requests that are not answered, in the form that clients of OpenAI's API read.

use serde_json::{Value, json};

use crate::process::{Response, Server};

const CHAT: &str = "/v1/chat/completions";

#[track_caller]
fn assert_refused(response: &Response, status: u16, param: Value, code: Value, says: &str) {
    assert_eq!(response.status, status, "{}", response.text);
    let error = &response.json()["error"];
    assert_eq!(error["type"], "invalid_request_error", "{error}");
    assert_eq!((&error["param"], &error["code"]), (&param, &code), "{error}");
    assert!(error["message"].as_str().unwrap().contains(says), "{error}");
}

#[test]
fn bad_requests_get_errors_of_the_api() {
    let server = Server::start(&["--max-model-len", "64"]);
    let hello = json!([{"role": "user", "content": "hello"}]);
    for (body, status, param, code, says) in [
        ("{".to_owned(), 400, Value::Null, Value::Null, "cannot read the body"),
        ("{}".to_owned(), 400, json!("messages"), Value::Null, "at least one"),
        (
            json!({"model": "other", "messages": hello}).to_string(),
            404,
            json!("model"),
            json!("model_not_found"),
            "there is no model \"other\"",
        ),
        (
            json!({"messages": hello, "max_tokens": 64}).to_string(),
            400,
            json!("messages"),
            json!("context_length_exceeded"),
            "at most 64",
        ),
        (
            json!({"messages": hello, "temperature": "warm"}).to_string(),
            400,
            json!("temperature"),
            Value::Null,
            "invalid type",
        ),
        (
            json!({"messages": hello, "n": 2}).to_string(),
            400,
            json!("n"),
            json!("unsupported_value"),
            "must be 1",
        ),
    ] {
        let response = server.send("POST", CHAT, "", &body);
        assert_refused(&response, status, param, code, says);
    }
    let long = "x".repeat(5 << 20);
    let response = server.send("POST", CHAT, "", &long);
    assert_refused(&response, 413, Value::Null, json!("body_too_large"), "at most");
    let nowhere = server.get("/v1/embeddings");
    assert_refused(&nowhere, 404, Value::Null, json!("not_found"), "/v1/embeddings");
    let other = server.get(CHAT);
    assert_refused(&other, 405, Value::Null, json!("method_not_allowed"), "GET");
    let model = server.get("/v1/models/other");
    assert_refused(&model, 404, json!("model"), json!("model_not_found"), "other");
    // Nothing of that has harmed it.
    let body = json!({"messages": hello, "max_tokens": 2});
    assert_eq!(server.post(CHAT, &body).status, 200);
}

#[test]
fn whoever_has_no_key_is_refused_but_may_ask_for_the_health() {
    let server = Server::start(&["--api-key", "one", "two"]);
    for header in ["", "authorization: Bearer tw\r\n", "authorization: two\r\n"] {
        let response = server.send("GET", "/v1/models", header, "");
        assert_refused(&response, 401, Value::Null, json!("invalid_api_key"), "API key");
    }
    let known = server.send("GET", "/v1/models", "authorization: Bearer two\r\n", "");
    assert_eq!(known.status, 200);
    assert_eq!(server.get("/health").status, 200);
    assert_eq!(server.get("/metrics").status, 200);
}
