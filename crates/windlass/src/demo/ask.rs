//! A question through the gateway, and the answer piece by piece.

use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout},
};

/// Of an answer, in tokens.
const LONGEST: u32 = 160;
/// How a stream ends.
const END: &str = "data: [DONE]";
/// For the first piece, and for each after it.
const SILENCE: Duration = Duration::from_secs(60);
/// For the gateway to know a service that is ready.
const ROUTED: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Question<'a> {
    /// Of the gateway, as in `http://127.0.0.1:8080`.
    pub(super) gateway: &'a str,
    pub(super) path: &'a str,
    /// By which the route knows whom it is for.
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) model: Option<&'a str>,
    pub(super) text: &'a str,
}

/// What is worth telling of an answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) model: String,
    pub(super) pieces: u32,
    pub(super) first: Duration,
    pub(super) whole: Duration,
}

impl Answer {
    /// After the first.
    pub(super) fn rate(&self) -> f32 {
        let seconds = (self.whole - self.first).as_secs_f32().max(f32::EPSILON);
        self.pieces.saturating_sub(1) as f32 / seconds
    }
}

impl Question<'_> {
    fn body(&self) -> Value {
        let mut body = json!({
            "messages": [{"role": "user", "content": self.text}],
            "stream": true, "max_tokens": LONGEST, "temperature": 0,
        });
        if let Some(model) = self.model {
            body["model"] = model.into();
        }
        body
    }
}

/// Asks again while nobody is there to answer: a route is known to the gateway a moment after its
/// service is ready.
pub(super) async fn ask(
    question: &Question<'_>,
    mut piece: impl FnMut(&str),
) -> anyhow::Result<Answer> {
    let deadline = Instant::now() + ROUTED;
    loop {
        let asked = Instant::now();
        match question.send().await? {
            Asked::Answers(body) => return listen(body, asked, &mut piece).await,
            Asked::Refused(status, _) if is_early(status) && Instant::now() < deadline => {
                tokio::time::sleep(PAUSE).await;
            }
            Asked::Refused(status, text) => bail!("the gateway has answered {status}: {text}"),
        }
    }
}

enum Asked {
    Answers(Incoming),
    Refused(StatusCode, String),
}

fn is_early(status: StatusCode) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE)
}

impl Question<'_> {
    async fn send(&self) -> anyhow::Result<Asked> {
        let address = self.gateway.strip_prefix("http://").unwrap_or(self.gateway);
        let cannot = || format!("cannot ask {}", self.gateway);
        let stream = in_time(TcpStream::connect(address)).await?.with_context(cannot)?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.with_context(cannot)?;
        tokio::spawn(connection);
        let mut request = Request::post(self.path).header(header::CONTENT_TYPE, "application/json");
        for (name, value) in self.headers {
            request = request.header(*name, *value);
        }
        if !self.headers.iter().any(|(name, _)| *name == "Host") {
            request = request.header(header::HOST, address);
        }
        let request = request.body(Full::new(Bytes::from(self.body().to_string())))?;
        let response = in_time(sender.send_request(request)).await?.with_context(cannot)?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(Asked::Answers(response.into_body()));
        }
        let text =
            in_time(response.into_body().collect()).await?.context("the answer was cut off")?;
        Ok(Asked::Refused(status, String::from_utf8_lossy(&text.to_bytes()).trim().to_owned()))
    }
}

async fn listen(
    mut body: Incoming,
    asked: Instant,
    piece: &mut impl FnMut(&str),
) -> anyhow::Result<Answer> {
    let (mut answer, mut lines, mut is_whole) = (Answer::default(), Lines::default(), false);
    while let Some(frame) = in_time(body.frame()).await? {
        let frame = frame.context("the answer was cut off")?;
        for line in frame.data_ref().map(|data| lines.add(data)).unwrap_or_default() {
            is_whole |= line == END;
            let Some(said) = Said::of(&line)? else { continue };
            if answer.pieces == 0 {
                answer.first = asked.elapsed();
            }
            answer.pieces += 1;
            answer.text += &said.text;
            answer.model = said.model;
            piece(&said.text);
        }
    }
    if !is_whole {
        bail!("the answer was cut off: its last line is not {END:?}");
    }
    if answer.text.trim().is_empty() {
        bail!("the answer was empty");
    }
    answer.whole = asked.elapsed();
    Ok(answer)
}

/// Nobody waits for ever, least of all a program.
async fn in_time<T>(what: impl Future<Output = T>) -> anyhow::Result<T> {
    let silent = || format!("the model has said nothing for {} s", SILENCE.as_secs());
    timeout(SILENCE, what).await.with_context(silent)
}

/// Bytes that come in pieces, as lines.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn add(&mut self, bytes: &[u8]) -> Vec<String> {
        self.0.extend(bytes);
        let mut lines = Vec::new();
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.0.drain(..=end).collect();
            lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        lines
    }
}

/// One event of a stream.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    text: String,
    model: String,
}

impl Said {
    /// None if it has no text, as the first and the last have.
    fn of(line: &str) -> anyhow::Result<Option<Self>> {
        let Some(data) = line.strip_prefix("data: ").filter(|_| line != END) else {
            return Ok(None);
        };
        let event: Value = serde_json::from_str(data).context("the answer makes no sense")?;
        if let Some(error) = event.get("error") {
            bail!("the model has failed: {}", error["message"].as_str().unwrap_or(data));
        }
        let text = event["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
        let model = event["model"].as_str().unwrap_or_default();
        let said = Self { text: text.to_owned(), model: model.to_owned() };
        Ok(Some(said).filter(|said| !said.text.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_understood_however_they_are_cut() {
        let stream = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n\
            data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"né\"}}]}\r\n\r\n\
            data: [DONE]\n\n";
        for size in [1, 7, 1000] {
            let mut lines = Lines::default();
            let all = stream.as_bytes().chunks(size).flat_map(|piece| lines.add(piece));
            let said: Vec<_> = all.filter_map(|line| Said::of(&line).unwrap()).collect();
            assert_eq!(said, [Said { text: "né".to_owned(), model: "m".to_owned() }], "{size}");
        }
        let error = Said::of("data: {\"error\":{\"message\":\"no room\"}}").unwrap_err();
        assert_eq!(error.to_string(), "the model has failed: no room");
        assert!(Said::of("data: {").is_err());
    }
}
