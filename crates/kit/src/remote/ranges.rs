//! A large blob by several requests at once. Its bytes come in their order all the same, so whoever reads
//! them verifies them as ever.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use http::StatusCode;
use tokio::{sync::mpsc, time::sleep};

use super::{
    Error, Remote, Trouble,
    reader::{PAUSE, TRIES},
};
use crate::Digest;

/// How blobs are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Ranges {
    /// What is smaller comes by one request.
    pub large: u64,
    /// Of each request of a larger one.
    pub size: u64,
    pub at_once: usize,
}

impl Default for Ranges {
    fn default() -> Self {
        Self { large: 256 << 20, size: 4 << 20, at_once: 4 }
    }
}

/// Of all blobs together so many ranges may be in memory, which with all else must stay under 64 MB.
pub(super) const AHEAD: usize = 5;

impl Remote {
    pub(super) async fn feed_ranges(
        &self,
        repository: &str,
        digest: &Digest,
        size: u64,
        to: &mpsc::Sender<Result<Bytes, Error>>,
    ) -> Result<(), Error> {
        let Ranges { size: most, at_once, .. } = self.inner.settings.ranges;
        let most = most.max(1);
        // The first alone: who knows no ranges would send everything as often as it is asked.
        let Some(first) = self.range(repository, digest, 0, most.min(size)).await? else {
            return self.feed(repository, digest, size, to).await;
        };
        if to.send(Ok(first)).await.is_err() {
            return Ok(());
        }
        let count = size.div_ceil(most);
        let ranges = stream::iter(1..count).map(async |number| {
            let from = number * most;
            let piece = self.range(repository, digest, from, most.min(size - from)).await?;
            piece.ok_or_else(|| Error::Nonsense {
                registry: self.registry().to_owned(),
                what: format!("ranges of {digest} at first, and then all of it"),
            })
        });
        let mut pieces = ranges.buffered(at_once.max(1));
        while let Some(piece) = pieces.try_next().await? {
            // Who does not listen any more has no use for the rest.
            if to.send(Ok(piece)).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Nothing from a server that knows no ranges.
    async fn range(
        &self,
        repository: &str,
        digest: &Digest,
        from: u64,
        count: u64,
    ) -> Result<Option<Bytes>, Error> {
        let mut buffer = self.inner.room.buffer(usize::try_from(count).unwrap_or_default()).await;
        let mut failures = 0;
        loop {
            let reached = buffer.bytes.len() as u64;
            let left = Some(count - reached);
            let mut part = self.blob(repository, digest, from + reached, left).await?;
            if part.response.status() != StatusCode::PARTIAL_CONTENT {
                return Ok(None);
            }
            let broken = loop {
                match part.response.chunk().await {
                    Ok(Some(piece)) if (buffer.bytes.len() + piece.len()) as u64 <= count => {
                        buffer.bytes.extend_from_slice(&piece);
                    }
                    Ok(Some(_)) => {
                        let what = format!("more of {digest} than was asked for");
                        return Err(Error::Nonsense { registry: self.registry().to_owned(), what });
                    }
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            if buffer.bytes.len() as u64 == count {
                return Ok(Some(buffer.into()));
            }
            failures = if buffer.bytes.len() as u64 > reached { 0 } else { failures + 1 };
            if failures >= TRIES {
                return Err(Error::Failed {
                    registry: self.registry().to_owned(),
                    attempt: format!("read {digest} of {repository}"),
                    attempts: failures,
                    told: format!(": the connection breaks off at {} bytes", from + reached),
                    source: broken.map(|error| Trouble::Http(error.without_url())),
                });
            }
            sleep(PAUSE * failures).await;
        }
    }
}
