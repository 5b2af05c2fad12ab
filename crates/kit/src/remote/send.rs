//! One request: signed, redirected, and repeated where that may help.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, Method, StatusCode, header};
use reqwest::{Response, Url};
use serde::Deserialize;
use tokio::time::sleep;

use super::{
    Error, Remote, SILENCE, Trouble,
    auth::{Unanswered, authority},
    challenge, retry,
    source::{self, Fault, Source},
};

/// How many redirects are followed.
const HOPS: usize = 5;
/// What Go's servers answer to a client that forgets about TLS.
const WANTS_TLS: &str = "HTTP request to an HTTPS server";
/// Of an error's text, read and told.
const TEXT: usize = 64 << 10;
const WORDS: usize = 300;
/// What a registry may take to make a blob of what it has: it hashes and syncs.
const MAKING: Duration = Duration::from_secs(15 * 60);

pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) scope: &'a str,
    pub(super) headers: HeaderMap,
    /// In words, after "cannot".
    pub(super) attempt: String,
}

/// What goes with it, made anew for each try.
#[derive(Clone, Default)]
pub(super) enum Sent {
    #[default]
    Nothing,
    Part {
        source: Arc<dyn Source>,
        from: u64,
        count: u64,
        seen: Seen,
    },
}

/// Told of every piece that leaves.
pub(super) type Seen = Arc<dyn Fn(&[u8]) + Send + Sync>;

#[derive(Deserialize)]
struct Errors {
    errors: Vec<Told>,
}

#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl Remote {
    pub(super) fn url(&self, path: &str) -> Result<Url, Error> {
        let base = self.inner.base.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        base.join(path).map_err(|_| Error::Registry(self.inner.registry.clone()))
    }

    /// Everything but what may pass, and what is forbidden, is for the caller to judge.
    pub(super) async fn send(&self, call: &Call<'_>, sent: &Sent) -> Result<Response, Error> {
        self.send_within(call, sent, self.inner.settings.attempts).await
    }

    /// With so many tries. What cannot simply be repeated has one.
    pub(super) async fn send_within(
        &self,
        call: &Call<'_>,
        sent: &Sent,
        attempts: u32,
    ) -> Result<Response, Error> {
        let mut failures = 0;
        let mut challenged = false;
        loop {
            let (outcome, fault) = self.once(call, sent).await;
            if let Some(error) = fault.and_then(|fault| fault.take()) {
                return Err(Error::Source(error));
            }
            match outcome {
                Ok(response) if response.status() == StatusCode::UNAUTHORIZED => {
                    if !std::mem::replace(&mut challenged, true)
                        && self.answer(call, &response).await?
                    {
                        continue;
                    }
                    return Err(self.denied(call, response).await);
                }
                Ok(response) if response.status() == StatusCode::FORBIDDEN => {
                    return Err(self.denied(call, response).await);
                }
                Ok(response) if self.may_want_tls(&response) => {
                    let (registry, attempt) = (self.inner.registry.clone(), call.attempt.clone());
                    let (status, mut told) = (response.status(), told(response).await);
                    if call.method == Method::HEAD {
                        told = self.told_to_get().await;
                    }
                    if !self.turn_to_tls(&told) {
                        return Err(Error::Refused { registry, attempt, status, told });
                    }
                }
                Ok(response) if !retry::is_passing(response.status()) => return Ok(response),
                Err(Trouble::Insecure(_)) => return Err(self.failed(call, 1, outcome).await),
                outcome => {
                    failures += 1;
                    // Whatever was granted before may have ended meanwhile.
                    challenged = false;
                    let asked = outcome.as_ref().ok().and_then(asked);
                    let wait = retry::wait(failures, asked, jitter());
                    match wait.filter(|_| failures < attempts) {
                        Some(wait) => {
                            tracing::debug!(attempt = call.attempt, failures, "tried again");
                            sleep(wait).await;
                        }
                        None => return Err(self.failed(call, failures, outcome).await),
                    }
                }
            }
        }
    }

    async fn once(
        &self,
        call: &Call<'_>,
        sent: &Sent,
    ) -> (Result<Response, Trouble>, Option<Fault>) {
        let mut url = self.as_asked(call.url.clone());
        let has_body = matches!(sent, Sent::Part { .. }) || call.method == Method::PUT;
        let http = if has_body { &self.inner.sending } else { &self.inner.http };
        for _ in 0..=HOPS {
            let mut request =
                http.request(call.method.clone(), url.clone()).headers(call.headers.clone());
            // Nobody else may learn who we are.
            if self.is_own(&url) {
                request = self.inner.auth.sign(&self.inner.http, request, call.scope).await;
            }
            let (mut fault, mut left) = (None, Left::default());
            if let Sent::Part { source, from, count, seen } = sent {
                let (seen, gone) = (seen.clone(), left.begin(*count));
                let made = source::body(source.clone(), *from, *count, move |piece| {
                    seen(piece);
                    gone.fetch_sub(piece.len() as u64, Ordering::Relaxed);
                });
                request = request.header(header::CONTENT_LENGTH, *count).body(made.0);
                fault = Some(made.1);
            }
            let sending = async { request.send().await.map_err(Trouble::Http) };
            let response = match has_body {
                true => tokio::select! {
                    outcome = sending => outcome,
                    () = left.stands_still() => Err(Trouble::Silent),
                },
                false => sending.await,
            };
            let response = match response {
                Ok(response) => response,
                Err(trouble) => return (Err(trouble), fault),
            };
            match elsewhere(&call.method, &url, &response) {
                Some(next) if !self.may_follow(&url, &next) => {
                    return (Err(Trouble::Insecure(authority(&next))), fault);
                }
                Some(next) => {
                    self.follow_to_tls(&url, &next);
                    url = next;
                }
                None => return (Ok(response), fault),
            }
        }
        let last = self.inner.http.get(url).send().await;
        (last.map_err(Trouble::Http), None)
    }

    /// By TLS, if the registry has asked for it meanwhile.
    fn as_asked(&self, mut url: Url) -> Url {
        let base = self.inner.base.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        if base.scheme() == "https" && url.scheme() == "http" && base.host_str() == url.host_str() {
            // It cannot fail between these two.
            let _ = url.set_scheme("https");
        }
        url
    }

    /// What a tag means is for the registry to say, and not for whoever is on the way. Blobs are known by
    /// their digests, wherever they come from.
    pub(super) fn may_follow(&self, from: &Url, to: &Url) -> bool {
        let is_worse = from.scheme() == "https" && to.scheme() == "http";
        !is_worse || self.inner.settings.plain_http || from.path().contains("/blobs/")
    }

    /// A registry that sends us from HTTP to HTTPS of the same host is still ours.
    fn follow_to_tls(&self, from: &Url, to: &Url) {
        let is_same = from.host_str() == to.host_str() && self.is_own(from);
        if is_same && from.scheme() == "http" && to.scheme() == "https" {
            let mut base =
                self.inner.base.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            let is_set = base.set_scheme("https").is_ok() && base.set_port(to.port()).is_ok();
            tracing::warn!(registry = self.inner.registry, is_set, "the registry wants TLS");
        }
    }

    fn may_want_tls(&self, response: &Response) -> bool {
        let header = response.headers().get(header::CONTENT_TYPE);
        let is_plain = header.is_none_or(|value| value.as_bytes().starts_with(b"text/plain"));
        response.status() == StatusCode::BAD_REQUEST
            && response.url().scheme() == "http"
            && is_plain
    }

    /// What it says to whoever asks for nothing: an answer to HEAD has no words.
    async fn told_to_get(&self) -> String {
        let Ok(url) = self.url("") else { return String::new() };
        match self.inner.http.get(url).send().await {
            Ok(response) => told(response).await,
            Err(_) => String::new(),
        }
    }

    fn is_own(&self, url: &Url) -> bool {
        let base = self.inner.base.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let place = |url: &Url| (url.host_str().map(str::to_owned), url.port_or_known_default());
        base.scheme() == url.scheme() && place(&base) == place(url)
    }

    async fn answer(&self, call: &Call<'_>, response: &Response) -> Result<bool, Error> {
        // Somebody to whom we were sent must not ask for our password.
        if !self.is_own(response.url()) {
            return Ok(false);
        }
        self.inner.auth.forget(call.scope);
        let headers = response.headers().get_all(header::WWW_AUTHENTICATE).iter();
        let Some(challenge) = challenge::parse(headers.filter_map(|value| value.to_str().ok()))
        else {
            return Ok(false);
        };
        let answered = self.inner.auth.answer(&self.inner.http, &challenge, call.scope).await;
        answered.map_err(|Unanswered { attempts, told, source }| Error::Failed {
            registry: self.inner.registry.clone(),
            attempt: format!("get a token to {}", call.attempt),
            attempts,
            told,
            source,
        })
    }

    async fn denied(&self, call: &Call<'_>, response: Response) -> Error {
        Error::Denied {
            registry: self.inner.registry.clone(),
            attempt: call.attempt.clone(),
            status: response.status(),
            told: told(response).await,
            source_of_credentials: self.inner.auth.source().await,
        }
    }

    async fn failed(
        &self,
        call: &Call<'_>,
        attempts: u32,
        outcome: Result<Response, Trouble>,
    ) -> Error {
        let (told, source) = match outcome {
            Ok(response) => {
                let busy = asked(&response).map(Trouble::Busy);
                (format!(": {}{}", response.status(), told(response).await), busy)
            }
            // Addresses may have secrets in their query.
            Err(Trouble::Http(error)) => (String::new(), Some(Trouble::Http(error.without_url()))),
            Err(trouble) => (String::new(), Some(trouble)),
        };
        let (registry, attempt) = (self.inner.registry.clone(), call.attempt.clone());
        Error::Failed { registry, attempt, attempts, told, source }
    }

    /// For an answer that nobody expects.
    pub(super) async fn unexpected(&self, attempt: &str, response: Response) -> Error {
        let (registry, attempt, status) =
            (self.inner.registry.clone(), attempt.to_owned(), response.status());
        Error::Refused { registry, attempt, status, told: told(response).await }
    }

    /// Who asked without TLS may be told to ask with it.
    fn turn_to_tls(&self, told: &str) -> bool {
        let mut base = self.inner.base.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_needed = base.scheme() == "http" && told.contains(WANTS_TLS);
        if is_needed && base.set_scheme("https").is_ok() {
            tracing::warn!(registry = self.inner.registry, "the registry wants TLS, so it gets it");
            return true;
        }
        false
    }
}

/// How long to wait, where it says so.
pub(super) fn asked(response: &Response) -> Option<Duration> {
    let header = response.headers().get(header::RETRY_AFTER);
    retry::asked(header.and_then(|value| value.to_str().ok()))
}

/// Only what has no body is sent somewhere else.
fn elsewhere(method: &Method, url: &Url, response: &Response) -> Option<Url> {
    if !response.status().is_redirection() || !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let next = response.headers().get(header::LOCATION)?.to_str().ok()?;
    url.join(next).ok()
}

/// What a registry says of an error, cut to a bearable length.
pub(super) async fn told(mut response: Response) -> String {
    let mut text = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await
        && text.len() < TEXT
    {
        text.extend(piece);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let text = match serde_json::from_str::<Errors>(&text) {
        Ok(Errors { errors }) => {
            let one = |told: Told| format!("{} {}", told.code, told.message).trim().to_owned();
            errors.into_iter().map(one).collect::<Vec<_>>().join("; ")
        }
        Err(_) => text.lines().next().unwrap_or_default().to_owned(),
    };
    let text: String = text.chars().filter(|c| !c.is_control()).take(WORDS).collect();
    if text.is_empty() { text } else { format!(": {text}") }
}

/// How much of a body has not left yet.
#[derive(Default)]
struct Left(Arc<AtomicU64>);

impl Left {
    fn begin(&mut self, count: u64) -> Arc<AtomicU64> {
        self.0.store(count, Ordering::Relaxed);
        self.0.clone()
    }

    /// Until nothing has left for too long, or no answer has come after all has.
    async fn stands_still(&self) {
        let mut before = self.0.load(Ordering::Relaxed);
        loop {
            sleep(if before == 0 { MAKING } else { SILENCE }).await;
            let now = self.0.load(Ordering::Relaxed);
            if now == before {
                return;
            }
            before = now;
        }
    }
}

fn jitter() -> u8 {
    let mut random = [0];
    getrandom::fill(&mut random).map_or(0, |()| random[0])
}
