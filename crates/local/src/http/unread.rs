//! What an answer leaves unread of its request.
//!
//! HTTP/2 resets a request whose body nobody wants, HTTP/1 closes the connection, and clients that still
//! send it then report that instead of the answer. So the rest is taken in and forgotten, up to a limit.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Error,
    body::{Body, BodyDataStream, Bytes},
};
use futures::{Stream, StreamExt};
use tokio::{runtime::Handle, time::timeout};

/// Whoever sends more, or takes longer, sees the reset.
const MOST: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(30);

/// The same body, which is read to its end once it is dropped.
pub(super) fn taken_in(body: Body) -> Body {
    Body::from_stream(Taken { rest: Some(body.into_data_stream()) })
}

struct Taken {
    /// `None` after the end.
    rest: Option<BodyDataStream>,
}

impl Stream for Taken {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        let next = rest.poll_next_unpin(context);
        if !matches!(next, Poll::Pending | Poll::Ready(Some(Ok(_)))) {
            self.rest = None;
        }
        next
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let (Some(rest), Ok(runtime)) = (self.rest.take(), Handle::try_current()) {
            runtime.spawn(timeout(PATIENCE, forget(rest)));
        }
    }
}

async fn forget(mut rest: BodyDataStream) {
    let mut taken = 0;
    while let Some(Ok(bytes)) = rest.next().await {
        taken += bytes.len();
        if taken > MOST {
            return;
        }
    }
}
