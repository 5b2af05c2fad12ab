//! Clients that go, and the end of the server.

use std::io::{BufRead, BufReader, Read};

use serde_json::{Value, json};

use crate::{
    process::{Server, events},
    tiny::CONTEXT,
};

const COMPLETION: &str = "/v1/completions";

fn long(max_tokens: u32, stream: bool) -> String {
    let body: Value =
        json!({"prompt": "hello", "max_tokens": max_tokens, "stream": stream, "ignore_eos": true});
    body.to_string()
}

#[test]
fn who_hangs_up_is_no_longer_computed_for() {
    let server = Server::start(&["--max-num-seqs", "1"]);
    for streams in [true, false] {
        let body = long(CONTEXT - 10, streams);
        let running = server.begin("POST", COMPLETION, "", &body);
        server.until("running", |server| server.metric("vllm:num_requests_running") == 1.0);
        let waiting = server.begin("POST", COMPLETION, "", &body);
        server.until("waiting", |server| server.metric("vllm:num_requests_waiting") == 1.0);
        assert!(server.metric("vllm:kv_cache_usage_perc") < 0.9);
        drop(waiting);
        server.until("none waits", |server| server.metric("vllm:num_requests_waiting") == 0.0);
        drop(running);
        server.until("none runs", |server| server.metric("vllm:num_requests_running") == 0.0);
    }
    assert!(server.metric("vllm:generation_tokens_total") < f64::from(CONTEXT));
}

#[test]
fn what_is_under_way_at_the_end_is_answered() {
    let server = Server::start(&[]);
    let mut stream = BufReader::new(server.begin("POST", COMPLETION, "", &long(1000, true)));
    let mut text = String::new();
    while !text.contains("data: ") {
        stream.read_line(&mut text).unwrap();
    }
    server.terminate();
    server.until("it says that it ends", |server| server.get("/health").status == 503);
    let refused = server.send("POST", COMPLETION, "", &long(1, false));
    assert_eq!((refused.status, &refused.json()["error"]["type"]), (503, &json!("server_error")));
    stream.read_to_string(&mut text).unwrap();
    let (parts, done) = events(&text[text.find("data: ").unwrap()..]);
    assert!(done);
    assert_eq!(parts.last().unwrap()["choices"][0]["finish_reason"], "length");
    assert_eq!(server.wait().0, Some(0));
}

#[test]
fn flags_without_a_meaning_are_told_once_each() {
    let server = Server::start(&["--tensor-parallel-size", "4", "--enforce-eager"]);
    assert_eq!(server.get("/health").status, 200);
    server.terminate();
    let (code, said) = server.wait();
    assert_eq!(code, Some(0));
    for flag in ["--tensor-parallel-size", "--enforce-eager"] {
        let times =
            said.lines().filter(|line| line.contains(flag) && line.contains("WARN")).count();
        assert_eq!(times, 1, "{said}");
    }
}
