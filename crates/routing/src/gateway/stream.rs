//! Bodies that pass through: each frame as it comes, never more than one at a time.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep_until};

use super::upstream::{Lease, Upstream};
use crate::picker::{Cause, Open};

/// Why a body has not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("the other side has failed")]
    Upstream(#[from] hyper::Error),
    #[error("it took longer than the route allows")]
    TooLong,
}

/// Of a request on its way to an endpoint, and of an answer on its way back.
pub type Body = UnsyncBoxBody<Bytes, Broken>;

pub fn text(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never| match never {}).boxed_unsync()
}

/// The beginning that somebody has read already, then the rest if there is more.
pub fn resumed(read: Vec<Bytes>, rest: Option<Incoming>) -> Body {
    Resumed { read: read.into_iter(), rest }.boxed_unsync()
}

struct Resumed {
    read: std::vec::IntoIter<Bytes>,
    rest: Option<Incoming>,
}

impl hyper::body::Body for Resumed {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(read) = self.read.next() {
            return Poll::Ready(Some(Ok(Frame::data(read))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx).map_err(Broken::from),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.len() == 0 && self.rest.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let read: usize = self.read.as_slice().iter().map(Bytes::len).sum();
        let rest = self.rest.as_ref().map_or(Some(0), |rest| rest.size_hint().exact());
        match rest {
            Some(rest) => SizeHint::with_exact(rest.saturating_add(read as u64)),
            None => SizeHint::new(),
        }
    }
}

/// An answer, with what has to be told when it ends.
pub struct Answer {
    body: Incoming,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Gone when the body has ended.
    lease: Option<(Arc<Upstream>, Lease)>,
    open: Option<Open>,
}

impl Answer {
    pub fn new(body: Incoming, lease: (Arc<Upstream>, Lease), open: Option<Open>) -> Self {
        let mut answer = Self { body, deadline: None, lease: Some(lease), open };
        // Nobody will ask for the frames of a body that has none.
        if answer.body.is_end_stream() {
            answer.ended();
        }
        answer
    }

    /// If it may not take longer anyway.
    pub fn until(mut self, deadline: Option<Instant>) -> Self {
        let known = self.deadline.as_ref().map(|sleep| sleep.deadline().into_std());
        let first = known.into_iter().chain(deadline).min();
        self.deadline = first.map(|at| Box::pin(sleep_until(at.into())));
        self
    }

    fn ended(&mut self) {
        if let Some((upstream, lease)) = self.lease.take() {
            upstream.give_back(lease);
        }
        if let Some(open) = self.open.take() {
            open.done(Cause::Completed, Instant::now());
        }
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(Broken::TooLong)));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(open), Some(chunk)) = (&mut self.open, frame.data_ref()) {
                    open.on_chunk(chunk, Instant::now());
                }
            }
            // Dropping what is open tells that it was aborted.
            Some(Err(_)) => {}
            None => self.ended(),
        }
        if self.body.is_end_stream() {
            self.ended();
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Broken::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// When a limit is reached that counts from now on.
pub fn after(now: Instant, limit: Option<Duration>) -> Option<Instant> {
    now.checked_add(limit?)
}
