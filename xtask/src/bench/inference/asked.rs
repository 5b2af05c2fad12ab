//! A request whose answer comes in parts, and when they came.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Whatever takes so long will never come.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Asked {
    /// Until the first part.
    pub(super) first: Duration,
    /// From there to the last.
    pub(super) rest: Duration,
    pub(super) prompt_tokens: u64,
    pub(super) tokens: u64,
    pub(super) text: String,
}

impl Asked {
    pub(super) fn tokens_per_second(&self) -> f64 {
        (self.tokens.saturating_sub(1)) as f64 / self.rest.as_secs_f64()
    }
}

/// Streams, and tells how many tokens there were.
pub(super) fn ask(address: SocketAddr, path: &str, mut body: Value) -> Result<Asked> {
    body["stream"] = true.into();
    body["stream_options"] = serde_json::json!({"include_usage": true});
    let body = body.to_string();
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).context("cannot reach the server")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.0\r\ncontent-length: {length}\r\n\r\n{body}")?;
    let (mut first, mut last, mut usage, mut text) = (None, begun, Value::Null, String::new());
    let mut all = String::new();
    for line in BufReader::new(stream).lines() {
        let line = line.context("the answer has been cut off")?;
        let Some(event) = line.strip_prefix("data: ").filter(|event| *event != "[DONE]") else {
            all += &line;
            continue;
        };
        let event: Value = serde_json::from_str(event).context("cannot read a part")?;
        let choice = &event["choices"][0];
        let more = choice["text"].as_str().or_else(|| choice["delta"]["content"].as_str());
        match more {
            // Who speaks comes before anything is computed.
            Some(more) if !more.is_empty() => {
                last = Instant::now();
                first.get_or_insert(last);
                text += more;
            }
            _ if choice["finish_reason"].is_string() => last = Instant::now(),
            _ => {}
        }
        if event["usage"].is_object() {
            usage = event["usage"].clone();
        }
    }
    let Some((first, tokens)) = first.zip(usage["completion_tokens"].as_u64()) else {
        bail!("there was no answer: {all}");
    };
    let prompt_tokens = usage["prompt_tokens"].as_u64().unwrap_or_default();
    Ok(Asked { first: first - begun, rest: last - first, prompt_tokens, tokens, text })
}
