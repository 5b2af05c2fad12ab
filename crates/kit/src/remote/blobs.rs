//! Blobs that a registry has.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::{
    Error, Remote,
    manifests::pulling,
    send::{Call, Sent},
};
use crate::Digest;

/// A part of a blob, from a byte on.
pub struct Part {
    pub from: u64,
    pub response: reqwest::Response,
}

/// A blob that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Not every registry tells it.
    pub size: Option<u64>,
}

impl Remote {
    pub async fn has_blob(&self, repository: &str, digest: &Digest) -> Result<bool, Error> {
        Ok(self.find_blob(repository, digest).await?.is_some())
    }

    pub async fn find_blob(
        &self,
        repository: &str,
        digest: &Digest,
    ) -> Result<Option<Found>, Error> {
        let scope = super::manifests::pushing(repository);
        let call = Call {
            method: Method::HEAD,
            url: self.url(&format!("{repository}/blobs/{digest}"))?,
            scope: &scope,
            headers: HeaderMap::new(),
            attempt: format!("look for {digest} in {repository}"),
        };
        let response = self.send(&call, &Sent::Nothing).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => Ok(Some(Found { size: length(&response) })),
            StatusCode::METHOD_NOT_ALLOWED => {
                // Not everybody understands this question; the first byte tells as well.
                let first = [(header::RANGE, HeaderValue::from_static("bytes=0-0"))];
                let headers = first.into_iter().collect();
                let call = Call { method: Method::GET, headers, ..call };
                let response = self.send(&call, &Sent::Nothing).await?;
                let size = match response.status() {
                    StatusCode::PARTIAL_CONTENT => whole(&response),
                    _ => length(&response),
                };
                Ok(response.status().is_success().then_some(Found { size }))
            }
            _ => Err(self.unexpected(&call.attempt, response).await),
        }
    }

    /// From this byte on, up to `count` of them. A server without ranges sends everything, from the first.
    pub async fn blob(
        &self,
        repository: &str,
        digest: &Digest,
        from: u64,
        count: Option<u64>,
    ) -> Result<Part, Error> {
        let scope = pulling(repository);
        let mut headers = HeaderMap::new();
        let end = count.map(|count| (from + count).saturating_sub(1).to_string());
        if (from > 0 || count.is_some())
            && let Ok(range) =
                HeaderValue::from_str(&format!("bytes={from}-{}", end.unwrap_or_default()))
        {
            headers.insert(header::RANGE, range);
        }
        let call = Call {
            method: Method::GET,
            url: self.url(&format!("{repository}/blobs/{digest}"))?,
            scope: &scope,
            headers,
            attempt: format!("read {digest} of {repository}"),
        };
        let response = self.send(&call, &Sent::Nothing).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT => match begins(&response) {
                Some(0) => Ok(Part { from: 0, response }),
                Some(is) if is != from => Err(Error::Nonsense {
                    registry: self.registry().to_owned(),
                    what: format!("{digest} from byte {is} on instead of {from}"),
                }),
                _ => Ok(Part { from, response }),
            },
            StatusCode::NOT_FOUND => Err(Error::NotFound {
                registry: self.registry().to_owned(),
                what: format!("{digest} of {repository}"),
            }),
            status if status.is_success() => Ok(Part { from: 0, response }),
            _ => Err(self.unexpected(&call.attempt, response).await),
        }
    }
}

/// Of an answer to `HEAD` too, which has no body.
fn length(response: &reqwest::Response) -> Option<u64> {
    response.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// Of what a part belongs to, as far as it is told: `bytes 7-13/100`.
fn whole(response: &reqwest::Response) -> Option<u64> {
    let range = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.rsplit_once('/')?.1.trim().parse().ok()
}

/// Where a part begins, as far as it is told: `bytes 7-13/100`.
fn begins(response: &reqwest::Response) -> Option<u64> {
    let range = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (from, _) = range.trim().strip_prefix("bytes")?.trim().split_once('-')?;
    from.parse().ok()
}
