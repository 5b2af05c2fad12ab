//! A single file at an address, resumed where it was cut as long as it is still the same file.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use http::{HeaderMap, StatusCode, header};
use percent_encoding::percent_decode_str;
use reqwest::{Response, Url};
use serde::{Deserialize, Serialize};

use crate::{
    fetch::{self, GaveUp, Hash, Part, Unkept},
    remote, whole,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0:?} is no address of a file")]
    Address(String),
    #[error(transparent)]
    Setup(#[from] remote::Error),
    #[error("{0} is not there")]
    NotFound(String),
    #[error("{address} is not for us: {status}")]
    Denied { address: String, status: StatusCode },
    #[error("{address} is refused: {status}")]
    Refused { address: String, status: StatusCode },
    #[error("{0} is a page and no file: its server may want a login, or another address")]
    Page(String),
    #[error("cannot read {address}, tried {attempts} times{told}")]
    Failed {
        address: String,
        attempts: u32,
        told: String,
        #[source]
        source: Option<reqwest::Error>,
    },
    #[error("{address} does not match: its SHA-256 is {is} instead of {wanted}")]
    Mismatch { address: String, wanted: String, is: String },
    #[error("cannot keep {}", path.display())]
    Keep { path: PathBuf, source: std::io::Error },
}

impl From<Unkept> for Error {
    fn from(Unkept { path, source }: Unkept) -> Self {
        Self::Keep { path, source }
    }
}

/// Of HTTP, ending in the name of a file. It is shown without user and query, which may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    url: Url,
    name: String,
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut shown = text.split('?').next().unwrap_or_default().to_owned();
        if let (Some(begin), Some(end)) = (shown.find("://"), shown.find('@')) {
            shown.replace_range((begin + 3).min(end)..=end, "");
        }
        let invalid = || Error::Address(shown.clone());
        let url = Url::parse(text).map_err(|_| invalid())?;
        let last = url.path_segments().and_then(|mut segments| segments.next_back());
        let name = percent_decode_str(last.unwrap_or_default()).decode_utf8();
        let name = name.map_err(|_| invalid())?.into_owned();
        let is_file = crate::kitfile::Path::parse(&name)
            .is_ok_and(|path| path.as_str() == name && !path.is_whole() && !name.contains('/'));
        match is_file && matches!(url.scheme(), "http" | "https") && url.has_host() {
            true => Ok(Self { url, name }),
            false => Err(invalid()),
        }
    }

    /// Of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// With everything that is secret in it.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        write!(f, "{}://{host}{port}{}", self.url.scheme(), self.url.path())
    }
}

/// Told as it goes.
pub trait Progress: Send + Sync {
    /// Where the server says it.
    fn expected(&self, name: &str, size: u64);
    fn received(&self, name: &str, bytes: u64);
    /// They are there from an earlier run.
    fn resumed(&self, name: &str, bytes: u64) {
        self.received(name, bytes);
    }
}

/// Which of the files that were ever at the address it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Version {
    /// An ETag, or the time of the last change. Without one a part is of no use.
    validator: Option<String>,
    size: Option<u64>,
}

pub struct Web {
    http: reqwest::Client,
    address: Address,
    token: Option<String>,
    /// How often it is asked for without getting a byte further.
    attempts: u32,
}

/// A file that has come.
#[derive(Debug)]
pub struct Downloaded {
    pub path: PathBuf,
    pub size: u64,
    /// In digits.
    pub sha256: String,
}

impl Web {
    /// The token is sent to this host and to nobody else.
    pub fn new(
        address: Address,
        token: Option<String>,
        settings: &remote::Settings,
    ) -> Result<Self, Error> {
        let http = remote::client(settings, remote::Redirects::Follow, Some(remote::SILENCE))?;
        Ok(Self { http, address, token, attempts: settings.attempts })
    }

    /// How large it is, if the server says that.
    pub async fn size(&self) -> Result<Option<u64>, Error> {
        let response = self.get(HeaderMap::new()).await?;
        self.judge(&response)?;
        Ok(Version::of(&response).size)
    }

    /// Into a folder. `sha256` is what it must be, in digits.
    pub async fn download(
        &self,
        folder: &Path,
        sha256: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Downloaded, Error> {
        let name = self.address.name.as_str();
        let memory = folder.with_extension("version");
        let mut version = recall(&memory);
        let limit = version.size.unwrap_or(u64::MAX);
        let mut part = Part::open(folder, name, Hash::sha256(), limit).await?;
        let (mut failures, mut furthest) = (0, 0);
        loop {
            if version.validator.is_none() && part.size > 0 {
                part = part.restart().await?;
            }
            let before = part.size;
            let response = self.get(headers(before, &version)).await?;
            let broken = match response.status() {
                // It is still the same, and nothing is missing.
                StatusCode::RANGE_NOT_SATISFIABLE if version.size == Some(before) => break,
                // It has become another, or its server is confused.
                StatusCode::RANGE_NOT_SATISFIABLE => {
                    version = Version::default();
                    None
                }
                _ => {
                    self.judge(&response)?;
                    if !starts_at(&response, before) {
                        part = part.restart().await?;
                        version = Version::of(&response);
                        keep(&memory, &version)?;
                    }
                    progress.expected(name, version.size.unwrap_or(0));
                    progress.resumed(name, part.size);
                    let broken;
                    (part, broken) = self.rest(response, part, progress).await?;
                    if broken.is_none() && version.size.is_none_or(|size| size == part.size) {
                        break;
                    }
                    broken
                }
            };
            let is_too_large = version.size.is_some_and(|size| part.size > size);
            if is_too_large {
                version = Version::default();
            }
            let is_further = part.size > furthest && !is_too_large;
            (failures, furthest) =
                (if is_further { 0 } else { failures + 1 }, part.size.max(furthest));
            if failures >= self.attempts {
                let source = broken.map(reqwest::Error::without_url);
                let (address, told) = (self.address.to_string(), String::new());
                return Err(Error::Failed { address, attempts: failures, told, source });
            }
        }
        self.finish(part, folder.join(name), sha256).await
    }

    /// As far as the connection holds.
    async fn rest(
        &self,
        mut response: Response,
        mut part: Part,
        progress: &dyn Progress,
    ) -> Result<(Part, Option<reqwest::Error>), Error> {
        loop {
            match response.chunk().await {
                Ok(Some(piece)) => {
                    progress.received(&self.address.name, piece.len() as u64);
                    part = part.append(piece).await?;
                }
                Ok(None) => return Ok((part, None)),
                Err(error) => return Ok((part, Some(error))),
            }
        }
    }

    async fn finish(
        &self,
        part: Part,
        whole: PathBuf,
        sha256: Option<&str>,
    ) -> Result<Downloaded, Error> {
        let (is, size) = (part.sum(), part.size);
        if let Some(wanted) = sha256.filter(|wanted| *wanted != is) {
            part.discard().await?;
            let (address, wanted) = (self.address.to_string(), wanted.to_owned());
            return Err(Error::Mismatch { address, wanted, is });
        }
        let path = part.finish(whole).await?;
        Ok(Downloaded { path, size, sha256: is })
    }

    async fn get(&self, headers: HeaderMap) -> Result<Response, Error> {
        let asked = fetch::ask(self.attempts, || {
            let request = self.http.get(self.address.url.clone()).headers(headers.clone());
            match &self.token {
                Some(token) => request.bearer_auth(token),
                None => request,
            }
        });
        asked.await.map_err(|GaveUp { attempts, told, source }| {
            let address = self.address.to_string();
            Error::Failed { address, attempts, told, source }
        })
    }

    fn judge(&self, response: &Response) -> Result<(), Error> {
        let (address, status) = (self.address.to_string(), response.status());
        let kind = response.headers().get(header::CONTENT_TYPE);
        let is_page = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
        match status {
            // Whoever asks for a model and gets a page to log in must not pack that.
            _ if status.is_success() && is_page && !self.address.name.contains(".htm") => {
                Err(Error::Page(address))
            }
            _ if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(Error::NotFound(address)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(Error::Denied { address, status })
            }
            _ => Err(Error::Refused { address, status }),
        }
    }
}

impl Version {
    fn of(response: &Response) -> Self {
        let text = |name| response.headers().get(name)?.to_str().ok().map(str::to_owned);
        // A weak one is not of the bytes.
        let etag = text(header::ETAG).filter(|etag| !etag.starts_with("W/"));
        let length = text(header::CONTENT_LENGTH).filter(|_| response.status() == StatusCode::OK);
        Self {
            validator: etag.or_else(|| text(header::LAST_MODIFIED)),
            size: length.and_then(|length| length.parse().ok()),
        }
    }
}

/// The rest, if it is still the rest of what has come.
fn headers(from: u64, version: &Version) -> HeaderMap {
    let mut headers = fetch::range(from);
    let validator = version.validator.as_ref().and_then(|text| text.parse().ok());
    if let Some(validator) = validator.filter(|_| from > 0) {
        headers.insert(header::IF_RANGE, validator);
    }
    headers
}

fn starts_at(response: &Response, from: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {from}-")))
}

fn recall(memory: &Path) -> Version {
    let kept = fs::read(memory).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    kept.unwrap_or_default()
}

fn keep(memory: &Path, version: &Version) -> Result<(), Error> {
    let failed = |source| Error::Keep { path: memory.to_owned(), source };
    let bytes = serde_json::to_vec(version).map_err(|error| failed(error.into()))?;
    whole::write(memory, &bytes).map_err(failed)
}

#[cfg(test)]
mod tests;
