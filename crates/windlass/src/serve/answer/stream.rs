//! Server-sent events, each as soon as it is known.

use std::{collections::VecDeque, convert::Infallible};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::stream;
use http::header;
use serde_json::Value;

use super::{Answer, Next};

const DONE: &str = "data: [DONE]\n\n";

struct Streaming {
    answer: Answer,
    tells_usage: bool,
    ready: VecDeque<String>,
    over: bool,
}

pub(crate) fn stream(answer: Answer, tells_usage: bool) -> Response {
    let ready = answer.head.first().iter().map(event).collect();
    let streaming = Streaming { answer, tells_usage, ready, over: false };
    let parts = stream::unfold(streaming, |mut streaming| async {
        let part = streaming.part().await?;
        Some((Ok::<_, Infallible>(Bytes::from(part)), streaming))
    });
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(parts)).into_response()
}

impl Streaming {
    async fn part(&mut self) -> Option<String> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Some(part);
            }
            if self.over {
                return None;
            }
            match self.answer.next().await {
                // Half a character, or what may become a stop.
                Next::Text(text) if text.is_empty() => {}
                Next::Text(text) => self.ready.push_back(event(&self.answer.head.text(&text))),
                Next::End(reason) => {
                    self.ready.push_back(event(&self.answer.head.end(reason)));
                    if self.tells_usage {
                        let usage = self.answer.head.usage_part(self.answer.tokens());
                        self.ready.push_back(event(&usage));
                    }
                    self.end();
                }
                Next::Failed(refused) => {
                    self.ready.push_back(event(&refused.body()));
                    self.end();
                }
            }
        }
    }

    fn end(&mut self) {
        self.ready.push_back(DONE.to_owned());
        self.over = true;
    }
}

fn event(body: &Value) -> String {
    format!("data: {body}\n\n")
}
