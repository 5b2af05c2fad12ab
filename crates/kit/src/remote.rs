//! Registries elsewhere: asked as they want to be, and asked again where that may help.
//!
//! `send` (one request with its retries and its authorization) is beneath all; `blobs`, `upload` and
//! `manifests` are what is asked for.

use std::{
    fs, io,
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use reqwest::Url;

mod auth;
mod blobs;
mod challenge;
pub mod credentials;
mod manifests;
mod one_pass;
mod ranges;
mod reader;
mod referrers;
pub(crate) mod retry;
mod room;
mod send;
mod source;
mod upload;

pub use credentials::Credential;
pub(crate) use manifests::next_page;
pub use ranges::Ranges;
pub use reader::Reader;
pub use source::Source;
pub use upload::{Progress, Upload};

use auth::Auth;
use room::Room;

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
    pub ranges: Ranges,
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
            ranges: Ranges::default(),
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

impl Error {
    /// Tried so often by whoever has asked, and not only as often as one request was.
    fn after(self, attempts: u32) -> Self {
        match self {
            Self::Failed { registry, attempt, told, source, .. } => {
                Self::Failed { registry, attempt, attempts, told, source }
            }
            other => other,
        }
    }
}

/// Why there was no answer at all.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error(transparent)]
    Http(reqwest::Error),
    #[error("nothing goes on any more")]
    Silent,
    #[error("it asks to wait for {} seconds", .0.as_secs())]
    Busy(Duration),
    #[error("{0} is to be asked without TLS, where anybody could answer")]
    Insecure(String),
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
    /// What the registry has asked for.
    least_chunk: AtomicU64,
    /// For what has come and was not read yet.
    room: Room,
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
                auth: Auth::new(registry, settings),
                settings: settings.clone(),
                least_chunk: AtomicU64::new(0),
                room: Room::new(ranges::AHEAD),
            }),
        })
    }

    pub fn registry(&self) -> &str {
        &self.inner.registry
    }
}

/// Whoever sends us on more often does so for ever.
const REDIRECTS: usize = 10;

/// What happens where a server sends us elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// Without telling another host who we are.
    Follow,
    Tell,
}

/// Not from TLS to where there is none, unless that was asked for.
fn followed(plain_http: bool) -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > REDIRECTS {
            return attempt.error("it is sent elsewhere again and again");
        }
        let from = attempt.previous().last();
        match from.is_none_or(|from| is_allowed(from, attempt.url(), plain_http)) {
            true => attempt.follow(),
            false => attempt.error("it is sent from TLS to where there is none"),
        }
    })
}

fn is_allowed(from: &Url, to: &Url, plain_http: bool) -> bool {
    plain_http || from.scheme() != "https" || to.scheme() != "http"
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
        // Addresses may have secrets in them, and where we were sent from concerns nobody.
        .referer(false)
        .redirect(match redirects {
            Redirects::Follow => followed(settings.plain_http),
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
