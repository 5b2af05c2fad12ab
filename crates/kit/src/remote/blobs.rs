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

impl Remote {
    pub async fn has_blob(&self, repository: &str, digest: &Digest) -> Result<bool, Error> {
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
            StatusCode::NOT_FOUND => Ok(false),
            status if status.is_success() => Ok(true),
            StatusCode::METHOD_NOT_ALLOWED => {
                // Not everybody understands this question; the first byte tells as well.
                let first = [(header::RANGE, HeaderValue::from_static("bytes=0-0"))];
                let headers = first.into_iter().collect();
                let call = Call { method: Method::GET, headers, ..call };
                Ok(self.send(&call, &Sent::Nothing).await?.status().is_success())
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
            StatusCode::PARTIAL_CONTENT => Ok(Part { from, response }),
            StatusCode::NOT_FOUND => Err(Error::NotFound {
                registry: self.registry().to_owned(),
                what: format!("{digest} of {repository}"),
            }),
            status if status.is_success() => Ok(Part { from: 0, response }),
            _ => Err(self.unexpected(&call.attempt, response).await),
        }
    }
}
