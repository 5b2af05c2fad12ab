//! Blobs whose digest nobody knows yet: read once, and hashed while they are sent.

use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use super::{
    Error, Progress, Remote, Source, Upload,
    upload::{Range, is_taken},
};
use crate::Digest;

/// What has been read so far.
#[derive(Default)]
struct Hashed {
    hash: Sha256,
    count: u64,
}

impl Remote {
    /// Returns its digest. Nothing if it was cut or refused on the way; then it can still be uploaded by
    /// its digest, from where `progress` was told that it is.
    pub async fn upload_unknown(
        &self,
        repository: &str,
        source: Arc<dyn Source>,
        progress: Arc<dyn Progress>,
    ) -> Result<Option<Digest>, Error> {
        let size = source.size();
        let mut upload = self.begin(repository).await?;
        let (most, range) = match self.sends_chunks(size) {
            true => (self.chunk(), Range::Told),
            false => (size, Range::Untold),
        };
        if range == Range::Told {
            // A kill within the first chunk need not lose it.
            progress.reached(&upload);
        }
        let hashed = Arc::new(Mutex::new(Hashed::default()));
        while upload.offset < size {
            let count = most.min(size - upload.offset);
            let (hashed, progress) = (hashed.clone(), progress.clone());
            let seen = Arc::new({
                let progress = progress.clone();
                move |piece: &[u8]| {
                    let mut hashed = hashed.lock().unwrap_or_else(PoisonError::into_inner);
                    hashed.hash.update(piece);
                    hashed.count += piece.len() as u64;
                    progress.sent(piece.len() as u64);
                }
            });
            let sent = self.patch(repository, &source, &upload, count, range, seen).await;
            let reached = match range {
                Range::Told => self.taken(&sent, upload.offset + count),
                Range::Untold => self.taken_whole(&sent, count),
            };
            match (reached, sent) {
                (Some(reached), _) if range == Range::Told => {
                    upload = reached;
                    progress.reached(&upload);
                }
                (Some(reached), _) => upload = reached,
                (None, Ok(_) | Err(Error::Failed { .. })) => return Ok(None),
                (None, Err(error)) => return Err(error),
            }
        }
        let Some(digest) = digest(&hashed, size) else {
            self.abandon(repository, upload.location).await;
            return Ok(None);
        };
        Ok(self.end(repository, &digest, upload).await?.then_some(digest))
    }

    /// Not every registry tells how much that was.
    fn taken_whole(&self, sent: &Result<reqwest::Response, Error>, count: u64) -> Option<Upload> {
        let response = sent.as_ref().ok().filter(|response| is_taken(response))?;
        Some(self.at(self.location(response).ok()?, count))
    }
}

/// A piece may have been sent, and so hashed, twice: where a registry asks who we are in the middle.
fn digest(hashed: &Mutex<Hashed>, size: u64) -> Option<Digest> {
    let hashed = hashed.lock().unwrap_or_else(PoisonError::into_inner);
    (hashed.count == size).then(|| Digest::finish(hashed.hash.clone()))
}
