//! A blob as it comes, for a thread that reads it. Where the connection breaks it goes on from there.

use std::{
    io::{self, Read},
    time::Duration,
};

use bytes::Bytes;
use tokio::{sync::mpsc, time::sleep};

use super::{Error, Remote, Trouble};
use crate::{Digest, manifest::Descriptor};

/// A connection that breaks without having brought a byte is made again so often.
pub(super) const TRIES: u32 = 6;
pub(super) const PAUSE: Duration = Duration::from_millis(250);
/// Pieces that came and were not read yet, of each blob. One may be of some hundred kilobytes.
const AHEAD: usize = 4;

pub struct Reader {
    pieces: mpsc::Receiver<Result<Bytes, Error>>,
    piece: Bytes,
}

impl Remote {
    /// Its bytes are for the caller to verify. Must be called within a runtime, and read outside of it.
    pub fn reader(&self, repository: &str, digest: &Digest, size: u64) -> Reader {
        let (sender, pieces) = mpsc::channel(AHEAD);
        let (remote, repository) = (self.clone(), repository.to_owned());
        let digest = digest.clone();
        tokio::spawn(async move {
            let fed = match size >= remote.inner.settings.ranges.large {
                true => remote.feed_ranges(&repository, &digest, size, &sender).await,
                false => remote.feed(&repository, &digest, size, &sender).await,
            };
            if let Err(error) = fed {
                // Who does not listen any more has no use for it.
                drop(sender.send(Err(error)).await);
            }
        });
        Reader { pieces, piece: Bytes::new() }
    }

    /// Something small, such as a config; its bytes are what its digest says.
    pub async fn small_blob(&self, repository: &str, blob: &Descriptor) -> Result<Bytes, Error> {
        let attempt = format!("read {} of {repository}", blob.digest);
        let part = self.blob(repository, &blob.digest, 0, None).await?;
        let bytes = self.read_small(part.response, &attempt).await?;
        let is = Digest::of(&bytes);
        match is == blob.digest {
            true => Ok(bytes),
            false => Err(Error::Mismatch {
                registry: self.registry().to_owned(),
                wanted: blob.digest.to_string(),
                is: is.to_string(),
            }),
        }
    }

    pub(super) async fn feed(
        &self,
        repository: &str,
        digest: &Digest,
        size: u64,
        to: &mpsc::Sender<Result<Bytes, Error>>,
    ) -> Result<(), Error> {
        let (mut reached, mut failures) = (0, 0);
        loop {
            let before = reached;
            let mut part = self.blob(repository, digest, reached, None).await?;
            // Who knows no ranges sends everything once more.
            let mut again = reached - part.from.min(reached);
            let broken = loop {
                let mut piece = match part.response.chunk().await {
                    Ok(Some(piece)) => piece,
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                };
                let known = usize::try_from(again).unwrap_or(usize::MAX).min(piece.len());
                again -= known as u64;
                let piece = piece.split_off(known);
                reached += piece.len() as u64;
                if !piece.is_empty() && to.send(Ok(piece)).await.is_err() {
                    return Ok(());
                }
            };
            if reached >= size {
                return Ok(());
            }
            failures = if reached > before { 0 } else { failures + 1 };
            if failures >= TRIES {
                return Err(Error::Failed {
                    registry: self.registry().to_owned(),
                    attempt: format!("read {digest} of {repository}"),
                    attempts: failures,
                    told: format!(": the connection breaks off at {reached} of {size} bytes"),
                    source: broken.map(|error| Trouble::Http(error.without_url())),
                });
            }
            sleep(PAUSE * failures).await;
        }
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            // What is read makes room; others may be waiting for it, and we for them.
            self.piece = Bytes::new();
            match self.pieces.blocking_recv() {
                Some(Ok(piece)) => self.piece = piece,
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(0),
            }
        }
        let count = self.piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}
