//! The engine's events as JSON, whole or in parts.

mod shape;
mod stream;

use std::{sync::Arc, time::Instant};

use axum::response::{IntoResponse, Response};
use http::header;
use tokio::sync::mpsc::UnboundedReceiver;
use windlass_inference::engine::{Event, Reason};

use super::{metrics::Metrics, refused::Refused};
pub(super) use shape::{Head, name};
pub(super) use stream::stream;

/// An answer that is under way. Whoever drops it is no longer computed for.
pub(super) struct Answer {
    pub(super) head: Head,
    pub(super) events: UnboundedReceiver<Event>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) times: Times,
}

/// When things happened.
pub(super) struct Times {
    asked: Instant,
    first: Option<Instant>,
    tokens: usize,
}

impl Times {
    pub(super) fn new() -> Self {
        Self { asked: Instant::now(), first: None, tokens: 0 }
    }
}

/// What has come next.
enum Next {
    Text(String),
    End(Reason),
    Failed(Refused),
}

impl Answer {
    async fn next(&mut self) -> Next {
        match self.events.recv().await {
            Some(Event::Text { text, tokens }) => {
                self.times.tokens += tokens;
                if self.times.first.is_none() {
                    self.times.first = Some(Instant::now());
                    self.metrics.first_token(self.times.asked.elapsed());
                }
                Next::Text(text)
            }
            Some(Event::Finished(reason)) => {
                let since_first = self.times.first.map(|first| first.elapsed());
                let tokens = self.times.tokens;
                self.metrics.finished(reason, self.times.asked.elapsed(), since_first, tokens);
                Next::End(reason)
            }
            Some(Event::Failed(why)) => Next::Failed(Refused::failed(why)),
            None => Next::Failed(Refused::failed("the engine has ended")),
        }
    }

    fn tokens(&self) -> usize {
        self.times.tokens
    }
}

pub(super) async fn whole(mut answer: Answer) -> Result<Response, Refused> {
    let mut text = String::new();
    loop {
        match answer.next().await {
            Next::Text(more) => text.push_str(&more),
            Next::End(reason) => {
                let body = answer.head.whole(&text, reason, answer.tokens());
                let kind = [(header::CONTENT_TYPE, "application/json")];
                return Ok((kind, body.to_string()).into_response());
            }
            Next::Failed(refused) => return Err(refused),
        }
    }
}
