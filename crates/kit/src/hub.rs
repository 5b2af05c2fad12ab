//! The Hugging Face hub: one commit of a repository, listed, downloaded and verified.
//!
//! A revision is resolved once, and everything after that asks for its commit, so that no two states of
//! a branch are mixed.

use std::path::PathBuf;

use http::{HeaderMap, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reqwest::{Response, Url};
use serde::Deserialize;

use crate::{
    classify::Listed,
    fetch::{self, GaveUp, Unkept},
    remote,
};

mod download;

pub use download::Progress;

pub const ENDPOINT: &str = "https://huggingface.co";
/// Of a list there are at most so many bytes at once.
const PAGE: usize = 8 << 20;
/// Nobody wants these.
pub const SKIPPED: [&str; 2] = [".gitignore", ".gitattributes"];
/// Of an element of a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0:?} is no address of a hub")]
    Endpoint(String),
    #[error("{0:?} is no repository: it must be ORGANISATION/NAME or its address")]
    Repository(String),
    #[error(transparent)]
    Setup(#[from] remote::Error),
    #[error("repository '{0}' not found, or it is private and the token does not open it")]
    NoRepository(String),
    #[error("reference '{revision}' not found in {repository}")]
    NoRevision { repository: String, revision: String },
    #[error("access to {0} must be requested on its page first, and a token given")]
    Gated(String),
    #[error("the hub does not let us {attempt}: {status}")]
    Denied { attempt: String, status: StatusCode },
    #[error("the hub has refused to {attempt}: {status}")]
    Refused { attempt: String, status: StatusCode },
    #[error("cannot {attempt}, tried {attempts} times{told}")]
    Failed {
        attempt: String,
        attempts: u32,
        told: String,
        #[source]
        source: Option<reqwest::Error>,
    },
    #[error("the hub answers with nonsense to {attempt}: {what}")]
    Nonsense { attempt: String, what: String },
    #[error("{path} does not match: its {kind} is {is} instead of {wanted}")]
    Mismatch { path: String, kind: &'static str, wanted: String, is: String },
    #[error("cannot keep {}", path.display())]
    Keep { path: PathBuf, source: std::io::Error },
}

impl From<Unkept> for Error {
    fn from(Unkept { path, source }: Unkept) -> Self {
        Self::Keep { path, source }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    is_dataset: bool,
    name: String,
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub commit: String,
    pub files: Vec<File>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub path: String,
    pub size: u64,
    pub sum: Sum,
}

/// By what a file is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sum {
    Sha256(String),
    /// As git names it.
    Git(String),
}

#[derive(Deserialize)]
struct Revision {
    sha: String,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    type_: String,
    path: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    oid: String,
    lfs: Option<Large>,
}

#[derive(Deserialize)]
struct Large {
    oid: String,
    size: u64,
}

#[derive(Clone)]
pub struct Hub {
    http: reqwest::Client,
    endpoint: Url,
    token: Option<String>,
    /// How often something is asked for without getting a byte further.
    attempts: u32,
}

impl Repository {
    /// `organisation/name`, or the address of its page.
    pub fn parse(text: &str, endpoint: &str) -> Result<Self, Error> {
        let invalid = || Error::Repository(text.to_owned());
        let path = match text.strip_prefix(endpoint).or_else(|| text.strip_prefix(ENDPOINT)) {
            Some(rest) => rest.trim_matches('/'),
            None if text.contains("://") => return Err(invalid()),
            None => text,
        };
        let (is_dataset, name) = match path.strip_prefix("datasets/") {
            Some(name) => (true, name),
            None => (false, path),
        };
        let fits = |element: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            !element.is_empty() && !matches!(element, "." | "..") && element.chars().all(is_plain)
        };
        match name.split_once('/') {
            Some((organisation, repository)) if fits(organisation) && fits(repository) => {
                Ok(Self { is_dataset, name: name.to_owned() })
            }
            _ => Err(invalid()),
        }
    }

    /// The address of one file of it, as its page has it: with the revision and the path.
    pub fn parse_file(text: &str, endpoint: &str) -> Option<(Self, String, String)> {
        let text = text.split(['?', '#']).next()?;
        let (repository, rest) =
            ["/resolve/", "/blob/"].iter().find_map(|between| text.split_once(between))?;
        let repository = Self::parse(repository, endpoint).ok()?;
        let (revision, path) = rest.split_once('/')?;
        let plain = |text| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
        Some((repository, plain(revision)?, plain(path)?))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn api(&self) -> String {
        let kind = if self.is_dataset { "datasets" } else { "models" };
        format!("api/{kind}/{}", self.name)
    }

    fn files(&self) -> String {
        let kind = if self.is_dataset { "datasets/" } else { "" };
        format!("{kind}{}", self.name)
    }
}

impl Snapshot {
    pub fn listed(&self) -> Vec<Listed> {
        let listed = |file: &File| Listed { path: file.path.clone(), size: file.size };
        self.files.iter().map(listed).collect()
    }
}

impl Hub {
    /// The token is sent to the endpoint and to nobody else.
    pub fn new(endpoint: &str, token: Option<String>) -> Result<Self, Error> {
        Self::with(endpoint, token, &remote::Settings::default())
    }

    /// Reached as the settings say.
    pub fn with(
        endpoint: &str,
        token: Option<String>,
        settings: &remote::Settings,
    ) -> Result<Self, Error> {
        let address = format!("{}/", endpoint.trim_end_matches('/'));
        let parsed = Url::parse(&address).ok().filter(|url| url.host().is_some());
        Ok(Self {
            http: remote::client(settings, remote::Redirects::Follow, Some(remote::SILENCE))?,
            endpoint: parsed.ok_or_else(|| Error::Endpoint(endpoint.to_owned()))?,
            token,
            attempts: settings.attempts,
        })
    }

    pub async fn snapshot(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<Snapshot, Error> {
        let escaped = utf8_percent_encode(revision, ESCAPED);
        let url = self.url(&format!("{}/revision/{escaped}", repository.api()))?;
        let attempt = format!("find {revision} of {}", repository.name);
        let known = Asked { repository, revision, attempt: &attempt };
        let response = self.get(url, HeaderMap::new(), &known).await?;
        let Revision { sha } = read(response, &attempt).await?;
        if sha.is_empty() || !sha.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Error::Nonsense { attempt, what: format!("{sha:?} is no commit") });
        }
        let files = self.files(repository, &sha).await?;
        Ok(Snapshot { commit: sha, files })
    }

    /// All pages of the list.
    async fn files(&self, repository: &Repository, commit: &str) -> Result<Vec<File>, Error> {
        let attempt = format!("list the files of {}", repository.name);
        let mut url = self.url(&format!("{}/tree/{commit}?recursive=true", repository.api()))?;
        let mut files = Vec::new();
        loop {
            let known = Asked { repository, revision: commit, attempt: &attempt };
            let response = self.get(url.clone(), HeaderMap::new(), &known).await?;
            let link = response.headers().get(header::LINK).and_then(|value| value.to_str().ok());
            let next = link.and_then(remote::next_page).and_then(|next| url.join(next).ok());
            let items: Vec<Item> = read(response, &attempt).await?;
            let is_last = items.is_empty();
            for item in items {
                files.extend(file(item, &attempt)?);
            }
            match next.filter(|next| !is_last && *next != url) {
                Some(next) => url = next,
                None => return Ok(files),
            }
        }
    }

    fn url(&self, path: &str) -> Result<Url, Error> {
        self.endpoint.join(path).map_err(|_| Error::Endpoint(self.endpoint.to_string()))
    }

    async fn get(
        &self,
        url: Url,
        headers: HeaderMap,
        asked: &Asked<'_>,
    ) -> Result<Response, Error> {
        let is_ours = url.origin() == self.endpoint.origin();
        let outcome = fetch::ask(self.attempts, || {
            let request = self.http.get(url.clone()).headers(headers.clone());
            match self.token.as_ref().filter(|_| is_ours) {
                Some(token) => request.bearer_auth(token),
                None => request,
            }
        })
        .await;
        asked.judge(outcome)
    }
}

/// What is asked for, for errors.
struct Asked<'a> {
    repository: &'a Repository,
    revision: &'a str,
    attempt: &'a str,
}

impl Asked<'_> {
    fn judge(&self, outcome: Result<Response, GaveUp>) -> Result<Response, Error> {
        let response = match outcome {
            Ok(response) if response.status().is_success() => return Ok(response),
            Ok(response) => response,
            Err(GaveUp { attempts, told, source }) => {
                let attempt = self.attempt.to_owned();
                return Err(Error::Failed { attempt, attempts, told, source });
            }
        };
        let (status, attempt) = (response.status(), self.attempt.to_owned());
        let code = response.headers().get("x-error-code").and_then(|value| value.to_str().ok());
        Err(match (code, status) {
            (Some("GatedRepo"), _) => Error::Gated(self.repository.name.clone()),
            (Some("RevisionNotFound"), _) => Error::NoRevision {
                repository: self.repository.name.clone(),
                revision: self.revision.to_owned(),
            },
            (Some("RepoNotFound"), _) | (_, StatusCode::NOT_FOUND) => {
                Error::NoRepository(self.repository.name.clone())
            }
            (_, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Error::Denied { attempt, status }
            }
            _ => Error::Refused { attempt, status },
        })
    }
}

fn file(item: Item, attempt: &str) -> Result<Option<File>, Error> {
    let nonsense = |what: String| Error::Nonsense { attempt: attempt.to_owned(), what };
    match item.type_.as_str() {
        "directory" => return Ok(None),
        "file" => {}
        other => return Err(nonsense(format!("{} is of type {other:?}", item.path))),
    }
    let is_legal = crate::kitfile::Path::parse(&item.path)
        .is_ok_and(|path| path.as_str() == item.path && !path.is_whole());
    if !is_legal {
        return Err(nonsense(format!("{:?} is no path", item.path)));
    }
    if SKIPPED.contains(&item.path.as_str()) {
        return Ok(None);
    }
    let (size, sum) = match item.lfs {
        Some(large) => {
            let sum = large.oid.strip_prefix("sha256:").unwrap_or(&large.oid).to_owned();
            (large.size, Sum::Sha256(sum))
        }
        None => (item.size, Sum::Git(item.oid)),
    };
    Ok(Some(File { path: item.path, size, sum }))
}

async fn read<T: serde::de::DeserializeOwned>(
    mut response: Response,
    attempt: &str,
) -> Result<T, Error> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|source| Error::Failed {
        attempt: attempt.to_owned(),
        attempts: 1,
        told: String::new(),
        source: Some(source.without_url()),
    })? {
        if bytes.len() + piece.len() > PAGE {
            let what = format!("more than {PAGE} bytes");
            return Err(Error::Nonsense { attempt: attempt.to_owned(), what });
        }
        bytes.extend(piece);
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::Nonsense { attempt: attempt.to_owned(), what: error.to_string() })
}

#[cfg(test)]
mod tests;
