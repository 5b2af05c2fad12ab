//! Blobs on their way out. What a registry has acknowledged is not sent again.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use reqwest::{Response, Url};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::{
    Error, Remote,
    manifests::pushing,
    retry,
    send::{Call, Sent},
    source::Source,
};
use crate::Digest;

/// From this size on an upload is sent in chunks, so that it can be resumed.
const LARGE: u64 = 1 << 30;
/// Registries that do not take chunks, or not as the protocol says.
const WHOLE_ONLY: [&str; 6] =
    ["ghcr.io", ".pkg.dev", "gcr.io", ".gcr.io", ".amazonaws.com", ".amazonaws.com.cn"];

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
        let response = match self.post(repository, &path, &attempt).await {
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
        if size >= LARGE.min(self.inner.settings.chunk.saturating_mul(16)) && takes_chunks {
            let upload = self.begin(repository).await?;
            let sending = self.chunks(repository, digest, &source, upload, &progress).await?;
            if matches!(sending, Sending::Done) {
                return Ok(());
            }
        }
        self.whole(repository, digest, source, progress).await
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
        progress: Arc<dyn Progress>,
    ) -> Result<(), Error> {
        let mut failures = 0;
        loop {
            let upload = self.begin(repository).await?;
            let scope = pushing(repository);
            let call = ending(upload, digest, &scope, format!("push {digest} to {repository}"));
            let seen = {
                let progress = progress.clone();
                Arc::new(move |piece: &[u8]| progress.sent(piece.len() as u64))
            };
            let count = source.size();
            let sent = Sent::Part { source: source.clone(), from: 0, count, seen };
            let error = match self.send_within(&call, &sent, 1).await {
                Ok(response) if response.status().is_success() => return Ok(()),
                Ok(response) => self.unexpected(&call.attempt, response).await,
                Err(error) => error,
            };
            failures += 1;
            match (&error, retry::wait(failures, None, 0)) {
                (Error::Failed { .. }, Some(wait)) if failures < self.inner.settings.attempts => {
                    sleep(wait).await;
                }
                _ => return Err(error),
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
            let count = self.inner.settings.chunk.max(1).min(size - upload.offset);
            let sent = self.chunk(repository, source, &upload, count, progress).await;
            if let Some(reached) = self.taken(&sent, upload.offset + count) {
                (upload, failures) = (reached, 0);
                progress.reached(&upload);
                continue;
            }
            let is_passing = matches!(sent, Ok(_) | Err(Error::Failed { .. }));
            failures += 1;
            match retry::wait(failures, None, 0) {
                Some(wait) if is_passing && failures < self.inner.settings.attempts => {
                    sleep(wait).await;
                }
                _ => return sent.map(|_| Sending::AsWhole),
            }
            // It has more or less than we think; where it has forgotten it, it begins anew.
            let begun = self.state(repository, &upload.location).await?;
            upload = match begun.filter(|begun| begun.offset <= size) {
                Some(begun) => begun,
                None => self.begin(repository).await?,
            };
        }
        let scope = pushing(repository);
        let attempt = format!("end the push of {digest} to {repository}");
        let call = ending(upload, digest, &scope, attempt);
        let response = self.send(&call, &Sent::Nothing).await?;
        let is_there = response.status().is_success() || self.has_blob(repository, digest).await?;
        Ok(if is_there { Sending::Done } else { Sending::AsWhole })
    }

    /// Where an upload is after a chunk, if the registry says that it has taken it.
    fn taken(&self, sent: &Result<Response, Error>, expected: u64) -> Option<Upload> {
        let response = sent.as_ref().ok()?;
        let is_taken = matches!(
            response.status(),
            StatusCode::ACCEPTED | StatusCode::CREATED | StatusCode::NO_CONTENT
        );
        let offset = received(response).filter(|reached| is_taken && *reached == expected)?;
        Some(Upload { location: self.location(response).ok()?, offset })
    }

    async fn chunk(
        &self,
        repository: &str,
        source: &Arc<dyn Source>,
        upload: &Upload,
        count: u64,
        progress: &Arc<dyn Progress>,
    ) -> Result<Response, Error> {
        let scope = pushing(repository);
        let mut headers = binary();
        let range = format!("{}-{}", upload.offset, upload.offset + count - 1);
        if let Ok(range) = HeaderValue::from_str(&range) {
            headers.insert(header::CONTENT_RANGE, range);
        }
        let call = Call {
            method: Method::PATCH,
            url: upload.location.clone(),
            scope: &scope,
            headers,
            attempt: format!("push a part of a blob to {repository}"),
        };
        let progress = progress.clone();
        let seen = Arc::new(move |piece: &[u8]| progress.sent(piece.len() as u64));
        let sent = Sent::Part { source: source.clone(), from: upload.offset, count, seen };
        // What the registry has is asked for before anything is sent again.
        self.send_within(&call, &sent, 1).await
    }

    #[cfg(test)]
    pub(super) async fn begin_for_test(&self, repository: &str) -> Upload {
        self.begin(repository).await.unwrap()
    }

    async fn begin(&self, repository: &str) -> Result<Upload, Error> {
        let attempt = format!("begin a push to {repository}");
        let path = format!("{repository}/blobs/uploads/");
        let response = self.post(repository, &path, &attempt).await?;
        match response.status() {
            StatusCode::ACCEPTED => Ok(Upload { location: self.location(&response)?, offset: 0 }),
            _ => Err(self.unexpected(&attempt, response).await),
        }
    }

    async fn post(&self, repository: &str, path: &str, attempt: &str) -> Result<Response, Error> {
        let scope = pushing(repository);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(0));
        let (url, attempt) = (self.url(path)?, attempt.to_owned());
        let call = Call { method: Method::POST, url, scope: &scope, headers, attempt };
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
        Ok(Some(Upload { location, offset }))
    }

    async fn abandon(&self, repository: &str, url: Url) {
        let scope = pushing(repository);
        let (headers, attempt) = (HeaderMap::new(), "end a push that is not needed".to_owned());
        let call = Call { method: Method::DELETE, url, scope: &scope, headers, attempt };
        if let Err(error) = self.send(&call, &Sent::Nothing).await {
            tracing::debug!(%error, "an upload stays behind");
        }
    }

    /// Absolute or relative; always the newest.
    fn location(&self, response: &Response) -> Result<Url, Error> {
        let header = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
        let location = header.and_then(|text| response.url().join(text).ok());
        location.ok_or_else(|| Error::Nonsense {
            registry: self.registry().to_owned(),
            what: "an upload without a Location".to_owned(),
        })
    }
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
