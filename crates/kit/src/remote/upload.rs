//! Blobs on their way out. What a registry has acknowledged is not sent again.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use reqwest::{Response, Url};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::{
    Error, Remote, Trouble,
    manifests::{pulling, pushing},
    retry,
    send::{Call, Seen, Sent},
    source::Source,
};
use crate::Digest;

/// From this size on an upload is sent in chunks, so that it can be resumed, even where the registry has
/// not said that it takes them.
const LARGE: u64 = 1 << 30;
/// Registries that do not take chunks, or not as the protocol says.
const WHOLE_ONLY: [&str; 6] =
    ["ghcr.io", ".pkg.dev", "gcr.io", ".gcr.io", ".amazonaws.com", ".amazonaws.com.cn"];

/// Of all parts of an upload but the last.
const LEAST: &str = "oci-chunk-min-length";

/// Told as it goes.
pub trait Progress: Send + Sync + 'static {
    fn sent(&self, bytes: u64);
    /// To be kept, so that a later run can go on from here.
    fn reached(&self, upload: &Upload);
}

/// An upload that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    pub location: Url,
    pub offset: u64,
    /// What the registry said at its beginning, and does not say again: how large parts must be. None if
    /// it said nothing.
    #[serde(default)]
    pub least_chunk: u64,
}

/// Whether a part says where it belongs. Not every registry takes what says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    Told,
    Untold,
}

/// How far it came.
enum Sending {
    Done,
    /// Not as hoped; to be sent as a whole.
    AsWhole,
}

impl Remote {
    /// Whether the registry could take it from another of its repositories.
    pub async fn mount(
        &self,
        repository: &str,
        digest: &Digest,
        from: &str,
    ) -> Result<bool, Error> {
        let path = format!("{repository}/blobs/uploads/?mount={digest}&from={from}");
        let attempt = format!("mount {digest} into {repository}");
        let scope = format!("{} {}", pushing(repository), pulling(from));
        let response = match self.post_as(&scope, &path, &attempt).await {
            Ok(response) => response,
            // It may want rights on the other one; then the blob is sent.
            Err(Error::Denied { .. } | Error::Refused { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        match response.status() {
            StatusCode::CREATED => Ok(true),
            StatusCode::ACCEPTED => {
                // It was taken for the beginning of an upload, which nobody wants.
                if let Ok(location) = self.location(&response) {
                    self.abandon(repository, location).await;
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// `begun` is where an earlier run came to.
    pub async fn upload(
        &self,
        repository: &str,
        digest: &Digest,
        source: Arc<dyn Source>,
        begun: Option<Upload>,
        progress: Arc<dyn Progress>,
    ) -> Result<(), Error> {
        let size = source.size();
        let takes_chunks = !self.takes_whole_only();
        if let Some(begun) = &begun {
            self.inner.least_chunk.fetch_max(begun.least_chunk, Ordering::Relaxed);
        }
        if let Some(begun) = begun
            && takes_chunks
            // Whatever is wrong with it, another one can be begun.
            && let Ok(Some(upload)) = self.state(repository, &begun.location).await
            && upload.offset <= size
            && matches!(
                self.chunks(repository, digest, &source, upload, &progress).await?,
                Sending::Done
            )
        {
            return Ok(());
        }
        let upload = self.begin(repository).await?;
        if !self.sends_chunks(size) {
            return self.whole(repository, digest, source, Some(upload), progress).await;
        }
        // A kill within the first chunk need not lose it.
        progress.reached(&upload);
        match self.chunks(repository, digest, &source, upload, &progress).await? {
            Sending::Done => Ok(()),
            Sending::AsWhole => self.whole(repository, digest, source, None, progress).await,
        }
    }

    /// Whether something of this size can be resumed on the way there, as far as one knows once an
    /// upload was begun.
    pub(super) fn sends_chunks(&self, size: u64) -> bool {
        let chunk = self.chunk();
        let is_large = match self.least_chunk() {
            // Who says how large chunks must be takes them.
            Some(_) => size > chunk,
            None => size >= LARGE.min(chunk.saturating_mul(16)),
        };
        is_large && !self.takes_whole_only()
    }

    /// How much is sent at once, at most and but for the end at least.
    pub(super) fn chunk(&self) -> u64 {
        self.inner.settings.chunk.max(self.least_chunk().unwrap_or(1)).max(1)
    }

    fn least_chunk(&self) -> Option<u64> {
        Some(self.inner.least_chunk.load(Ordering::Relaxed)).filter(|least| *least > 0)
    }

    pub(super) fn at(&self, location: Url, offset: u64) -> Upload {
        Upload { location, offset, least_chunk: self.least_chunk().unwrap_or(0) }
    }

    fn takes_whole_only(&self) -> bool {
        let host = self.registry().split(':').next().unwrap_or_default();
        WHOLE_ONLY
            .iter()
            .any(|known| host == *known || known.starts_with('.') && host.ends_with(known))
    }

    /// In one request. After a failure nobody knows what has come, so it begins anew.
    async fn whole(
        &self,
        repository: &str,
        digest: &Digest,
        source: Arc<dyn Source>,
        mut begun: Option<Upload>,
        progress: Arc<dyn Progress>,
    ) -> Result<(), Error> {
        let mut failures = 0;
        loop {
            let upload = match begun.take() {
                Some(upload) => upload,
                None => self.begin(repository).await?,
            };
            let scope = pushing(repository);
            let call = ending(upload, digest, &scope, format!("push {digest} to {repository}"));
            let (count, seen) = (source.size(), telling(&progress));
            let sent = Sent::Part { source: source.clone(), from: 0, count, seen };
            let error = match self.send_within(&call, &sent, 1).await {
                Ok(response) if response.status().is_success() => return Ok(()),
                Ok(response) => self.unexpected(&call.attempt, response).await,
                Err(error) => error,
            };
            failures += 1;
            match (&error, retry::wait(failures, asked_for(&error), 0)) {
                (Error::Failed { .. }, Some(wait)) if failures < self.inner.settings.attempts => {
                    sleep(wait).await;
                }
                _ => return Err(error.after(failures)),
            }
        }
    }

    async fn chunks(
        &self,
        repository: &str,
        digest: &Digest,
        source: &Arc<dyn Source>,
        mut upload: Upload,
        progress: &Arc<dyn Progress>,
    ) -> Result<Sending, Error> {
        let size = source.size();
        let mut failures = 0;
        while upload.offset < size {
            let count = self.chunk().min(size - upload.offset);
            let seen = telling(progress);
            let sent = self.patch(repository, source, &upload, count, Range::Told, seen).await;
            if let Some(reached) = self.taken(&sent, upload.offset + count) {
                (upload, failures) = (reached, 0);
                progress.reached(&upload);
                continue;
            }
            let is_passing = matches!(sent, Ok(_) | Err(Error::Failed { .. }));
            failures += 1;
            match retry::wait(failures, sent.as_ref().err().and_then(asked_for), 0) {
                Some(wait) if is_passing && failures < self.inner.settings.attempts => {
                    sleep(wait).await;
                }
                _ => {
                    let failed = |error: Error| error.after(failures);
                    return sent.map(|_| Sending::AsWhole).map_err(failed);
                }
            }
            // It has more or less than we think; where it has forgotten it, it begins anew.
            let begun = self.state(repository, &upload.location).await?;
            upload = match begun.filter(|begun| begun.offset <= size) {
                Some(begun) => begun,
                None => self.begin(repository).await?,
            };
        }
        let is_there = self.end(repository, digest, upload).await?;
        Ok(if is_there { Sending::Done } else { Sending::AsWhole })
    }

    /// What was uploaded becomes a blob. Whether it has.
    pub(super) async fn end(
        &self,
        repository: &str,
        digest: &Digest,
        upload: Upload,
    ) -> Result<bool, Error> {
        let scope = pushing(repository);
        let attempt = format!("end the push of {digest} to {repository}");
        let call = ending(upload, digest, &scope, attempt);
        let response = self.send(&call, &Sent::Nothing).await?;
        Ok(response.status().is_success() || self.has_blob(repository, digest).await?)
    }

    /// Where an upload is after a chunk, if the registry says that it has taken it.
    pub(super) fn taken(&self, sent: &Result<Response, Error>, expected: u64) -> Option<Upload> {
        let response = sent.as_ref().ok()?;
        let offset =
            received(response).filter(|reached| is_taken(response) && *reached == expected)?;
        Some(self.at(self.location(response).ok()?, offset))
    }

    pub(super) async fn patch(
        &self,
        repository: &str,
        source: &Arc<dyn Source>,
        upload: &Upload,
        count: u64,
        range: Range,
        seen: Seen,
    ) -> Result<Response, Error> {
        let scope = pushing(repository);
        let mut headers = binary();
        let told = format!("{}-{}", upload.offset, upload.offset + count - 1);
        if let (Ok(told), Range::Told) = (HeaderValue::from_str(&told), range) {
            headers.insert(header::CONTENT_RANGE, told);
        }
        let call = Call {
            method: Method::PATCH,
            url: upload.location.clone(),
            scope: &scope,
            headers,
            attempt: format!("push a part of a blob to {repository}"),
        };
        let sent = Sent::Part { source: source.clone(), from: upload.offset, count, seen };
        // What the registry has is asked for before anything is sent again.
        self.send_within(&call, &sent, 1).await
    }

    #[cfg(test)]
    pub(super) async fn begin_for_test(&self, repository: &str) -> Upload {
        self.begin(repository).await.unwrap()
    }

    pub(super) async fn begin(&self, repository: &str) -> Result<Upload, Error> {
        let attempt = format!("begin a push to {repository}");
        let path = format!("{repository}/blobs/uploads/");
        let response = self.post(repository, &path, &attempt).await?;
        match response.status() {
            StatusCode::ACCEPTED => {
                let least = response.headers().get(LEAST).and_then(|value| value.to_str().ok());
                let least = least.and_then(|text| text.trim().parse().ok());
                self.inner.least_chunk.fetch_max(least.unwrap_or(0), Ordering::Relaxed);
                Ok(self.at(self.location(&response)?, 0))
            }
            _ => Err(self.unexpected(&attempt, response).await),
        }
    }

    async fn post(&self, repository: &str, path: &str, attempt: &str) -> Result<Response, Error> {
        self.post_as(&pushing(repository), path, attempt).await
    }

    async fn post_as(&self, scope: &str, path: &str, attempt: &str) -> Result<Response, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(0));
        let (url, attempt) = (self.url(path)?, attempt.to_owned());
        let call = Call { method: Method::POST, url, scope, headers, attempt };
        self.send(&call, &Sent::Nothing).await
    }

    /// How much of an upload a registry has. Nothing if it does not know it.
    async fn state(&self, repository: &str, location: &Url) -> Result<Option<Upload>, Error> {
        let scope = pushing(repository);
        let call = Call {
            method: Method::GET,
            url: location.clone(),
            scope: &scope,
            headers: HeaderMap::new(),
            attempt: format!("ask how much of a push {repository} has"),
        };
        let response = self.send(&call, &Sent::Nothing).await?;
        if response.status() != StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let offset = received(&response).unwrap_or(0);
        let location = self.location(&response).unwrap_or_else(|_| location.clone());
        Ok(Some(self.at(location, offset)))
    }

    pub(super) async fn abandon(&self, repository: &str, url: Url) {
        let scope = pushing(repository);
        let (headers, attempt) = (HeaderMap::new(), "end a push that is not needed".to_owned());
        let call = Call { method: Method::DELETE, url, scope: &scope, headers, attempt };
        if let Err(error) = self.send(&call, &Sent::Nothing).await {
            tracing::debug!(%error, "an upload stays behind");
        }
    }

    /// Absolute or relative; always the newest.
    pub(super) fn location(&self, response: &Response) -> Result<Url, Error> {
        let header = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
        let location = header.and_then(|text| response.url().join(text).ok());
        location.ok_or_else(|| Error::Nonsense {
            registry: self.registry().to_owned(),
            what: "an upload without a Location".to_owned(),
        })
    }
}

/// What the registry wants us to wait.
fn asked_for(error: &Error) -> Option<Duration> {
    match error {
        Error::Failed { source: Some(Trouble::Busy(wait)), .. } => Some(*wait),
        _ => None,
    }
}

pub(super) fn is_taken(response: &Response) -> bool {
    let status = response.status();
    matches!(status, StatusCode::ACCEPTED | StatusCode::CREATED | StatusCode::NO_CONTENT)
}

fn telling(progress: &Arc<dyn Progress>) -> Seen {
    let progress = progress.clone();
    Arc::new(move |piece: &[u8]| progress.sent(piece.len() as u64))
}

fn binary() -> HeaderMap {
    let octets = HeaderValue::from_static("application/octet-stream");
    [(header::CONTENT_TYPE, octets)].into_iter().collect()
}

/// The request that makes a blob of an upload.
fn ending<'a>(upload: Upload, digest: &Digest, scope: &'a str, attempt: String) -> Call<'a> {
    let mut url = upload.location;
    url.query_pairs_mut().append_pair("digest", digest.as_str());
    Call { method: Method::PUT, url, scope, headers: binary(), attempt }
}

/// `Range: 0-99` is a hundred bytes. `0-0` is none where nothing was sent yet, as registries do not tell
/// it from one byte.
fn received(response: &Response) -> Option<u64> {
    let header = response.headers().get(header::RANGE)?.to_str().ok()?;
    let header = header.strip_prefix("bytes=").unwrap_or(header);
    let (_, last) = header.split_once('-')?;
    let last: u64 = last.parse().ok()?;
    Some(if last == 0 { 0 } else { last + 1 })
}
