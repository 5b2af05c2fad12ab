//! Registries elsewhere: asked as they want to be, and asked again where that may help.
//!
//! `send` (one request with its retries and its authorization) is beneath all; `blobs`, `upload` and
//! `manifests` are what is asked for.

use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};

use reqwest::Url;

mod auth;
mod blobs;
mod challenge;
pub mod credentials;
mod manifests;
mod reader;
mod referrers;
pub(crate) mod retry;
mod send;
mod source;
mod upload;

pub use credentials::Credential;
pub(crate) use manifests::next_page;
pub use reader::Reader;
pub use source::Source;
pub use upload::{Progress, Upload};

use auth::Auth;

#[derive(Clone, Debug)]
pub struct Settings {
    pub plain_http: bool,
    pub verify_tls: bool,
    pub ca_file: Option<PathBuf>,
    /// Certificate and key of ours.
    pub identity: Option<(PathBuf, PathBuf)>,
    pub proxy: Option<String>,
    /// How often something is tried in all.
    pub attempts: u32,
    /// Of uploads that can be resumed.
    pub chunk: u64,
    /// Files with credentials, the first that knows a registry counts.
    pub credentials: Vec<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            plain_http: false,
            verify_tls: true,
            ca_file: None,
            identity: None,
            proxy: None,
            attempts: 6,
            chunk: 64 << 20,
            credentials: Vec::new(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("cannot set up connections")]
    Setup(#[source] reqwest::Error),
    #[error("{0:?} is no registry")]
    Registry(String),
    #[error("{what} is not in {registry}")]
    NotFound { registry: String, what: String },
    #[error("{registry} does not let us {attempt}: {status}{told}; {source_of_credentials}")]
    Denied {
        registry: String,
        attempt: String,
        status: http::StatusCode,
        /// What the registry says itself.
        told: String,
        source_of_credentials: String,
    },
    #[error("{registry} has refused to {attempt}: {status}{told}")]
    Refused { registry: String, attempt: String, status: http::StatusCode, told: String },
    #[error("cannot {attempt} at {registry}, tried {attempts} times{told}")]
    Failed {
        registry: String,
        attempt: String,
        attempts: u32,
        told: String,
        #[source]
        source: Option<Trouble>,
    },
    #[error("{registry} sends something else than {wanted} for it: {is}")]
    Mismatch { registry: String, wanted: String, is: String },
    #[error("{registry} answers with nonsense: {what}")]
    Nonsense { registry: String, what: String },
    #[error("cannot read what is to be sent")]
    Source(#[source] io::Error),
}

/// Why there was no answer at all.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error(transparent)]
    Http(reqwest::Error),
    #[error("nothing goes on any more")]
    Silent,
}

/// One registry. Cheap to share.
#[derive(Clone)]
pub struct Remote {
    inner: Arc<Inner>,
}

struct Inner {
    http: reqwest::Client,
    /// For what has a body: only silence ends it, however long it takes.
    sending: reqwest::Client,
    registry: String,
    base: std::sync::RwLock<Url>,
    auth: Auth,
    settings: Settings,
}

/// Whoever says nothing for so long has gone.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

impl Remote {
    pub fn new(registry: &str, settings: &Settings) -> Result<Self, Error> {
        let scheme = if settings.plain_http { "http" } else { "https" };
        let host = match registry {
            "docker.io" | "index.docker.io" => "registry-1.docker.io",
            other => other,
        };
        let base = Url::parse(&format!("{scheme}://{host}/v2/"))
            .map_err(|_| Error::Registry(registry.to_owned()))?;
        Ok(Self {
            inner: Arc::new(Inner {
                http: client(settings, Redirects::Tell, Some(SILENCE))?,
                sending: client(settings, Redirects::Tell, None)?,
                registry: registry.to_owned(),
                base: std::sync::RwLock::new(base),
                auth: Auth::new(registry, settings.credentials.clone()),
                settings: settings.clone(),
            }),
        })
    }

    pub fn registry(&self) -> &str {
        &self.inner.registry
    }
}

/// What happens where a server sends us elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// Without telling another host who we are.
    Follow,
    Tell,
}

/// `silence` is how long an answer, or the next piece of one, may take.
pub(crate) fn client(
    settings: &Settings,
    redirects: Redirects,
    silence: Option<Duration>,
) -> Result<reqwest::Client, Error> {
    // Whoever was first has chosen it; there is but one.
    drop(rustls::crypto::ring::default_provider().install_default());
    let read = |path: &PathBuf| {
        fs::read(path).map_err(|source| Error::File { path: path.clone(), source })
    };
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_secs(15))
        .tcp_nodelay(true)
        .redirect(match redirects {
            Redirects::Follow => reqwest::redirect::Policy::limited(10),
            Redirects::Tell => reqwest::redirect::Policy::none(),
        })
        .danger_accept_invalid_certs(!settings.verify_tls);
    if let Some(silence) = silence {
        builder = builder.read_timeout(silence);
    }
    if let Some(path) = &settings.ca_file {
        let authorities = reqwest::Certificate::from_pem_bundle(&read(path)?);
        for authority in authorities.map_err(Error::Setup)? {
            builder = builder.add_root_certificate(authority);
        }
    }
    if let Some((certificate, key)) = &settings.identity {
        let mut pem = read(certificate)?;
        pem.extend(read(key)?);
        builder = builder.identity(reqwest::Identity::from_pem(&pem).map_err(Error::Setup)?);
    }
    if let Some(proxy) = &settings.proxy {
        builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(Error::Setup)?);
    }
    builder.build().map_err(Error::Setup)
}

#[cfg(test)]
mod tests;
