//! One request: signed, redirected, and repeated where that may help.

use http::{HeaderMap, Method, StatusCode, header};
use reqwest::{Response, Url};
use serde::Deserialize;
use tokio::time::sleep;

use super::{
    Error, Remote, challenge, retry,
    source::{self, Fault, Source},
};

/// How many redirects are followed.
const HOPS: usize = 5;
/// What Go's servers answer to a client that forgets about TLS.
const WANTS_TLS: &str = "HTTP request to an HTTPS server";
/// Of an error's text.
const WORDS: usize = 300;

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
        source: std::sync::Arc<dyn Source>,
        from: u64,
        count: u64,
        seen: Seen,
    },
}

/// Told of every piece that leaves.
pub(super) type Seen = std::sync::Arc<dyn Fn(&[u8]) + Send + Sync>;

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
        let mut failures = 0;
        let mut challenged = false;
        loop {
            let (outcome, fault) = self.once(call, sent).await;
            if let Some(error) = fault.and_then(|fault| fault.take()) {
                return Err(Error::Source(error));
            }
            let asked = match outcome {
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
                Ok(response) if !retry::is_passing(response.status()) => return Ok(response),
                outcome => {
                    failures += 1;
                    let header = outcome.as_ref().ok().and_then(|response| {
                        response.headers().get(header::RETRY_AFTER)?.to_str().ok()
                    });
                    let wait = retry::wait(failures, retry::asked(header), jitter());
                    match wait.filter(|_| failures < self.inner.settings.attempts) {
                        Some(wait) => wait,
                        None => return Err(self.failed(call, failures, outcome).await),
                    }
                }
            };
            tracing::debug!(attempt = call.attempt, failures, "tried again");
            sleep(asked).await;
        }
    }

    async fn once(
        &self,
        call: &Call<'_>,
        sent: &Sent,
    ) -> (Result<Response, reqwest::Error>, Option<Fault>) {
        let mut url = call.url.clone();
        for _ in 0..=HOPS {
            let mut request = self
                .inner
                .http
                .request(call.method.clone(), url.clone())
                .headers(call.headers.clone());
            // Nobody else may learn who we are.
            if self.is_own(&url) {
                request = self.inner.auth.sign(request, call.scope).await;
            }
            let mut fault = None;
            if let Sent::Part { source, from, count, seen } = sent {
                let seen = seen.clone();
                let made = source::body(source.clone(), *from, *count, move |piece| seen(piece));
                request = request.header(header::CONTENT_LENGTH, *count).body(made.0);
                fault = Some(made.1);
            }
            let response = match request.send().await {
                Ok(response) => response,
                Err(error) => return (Err(error), fault),
            };
            match elsewhere(&call.method, &url, &response) {
                Some(next) => url = next,
                None => return (Ok(response), fault),
            }
        }
        (self.inner.http.get(url).send().await, None)
    }

    fn is_own(&self, url: &Url) -> bool {
        let base = self.inner.base.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let place = |url: &Url| (url.host_str().map(str::to_owned), url.port_or_known_default());
        base.scheme() == url.scheme() && place(&base) == place(url)
    }

    async fn answer(&self, call: &Call<'_>, response: &Response) -> Result<bool, Error> {
        self.inner.auth.forget(call.scope);
        let headers = response.headers().get_all(header::WWW_AUTHENTICATE).iter();
        let Some(challenge) = challenge::parse(headers.filter_map(|value| value.to_str().ok()))
        else {
            return Ok(false);
        };
        self.inner.auth.answer(&self.inner.http, &challenge, call.scope).await.map_err(|source| {
            Error::Failed {
                registry: self.inner.registry.clone(),
                attempt: format!("get a token to {}", call.attempt),
                attempts: 1,
                told: String::new(),
                source: Some(source.without_url()),
            }
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
        outcome: Result<Response, reqwest::Error>,
    ) -> Error {
        let (told, source) = match outcome {
            Ok(response) => (format!(": {}{}", response.status(), told(response).await), None),
            // Addresses may have secrets in their query.
            Err(error) => (String::new(), Some(error.without_url())),
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
    pub(super) fn turn_to_tls(&self, told: &str) -> bool {
        let mut base = self.inner.base.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_needed = base.scheme() == "http" && told.contains(WANTS_TLS);
        if is_needed && base.set_scheme("https").is_ok() {
            tracing::warn!(registry = self.inner.registry, "the registry wants TLS, so it gets it");
            return true;
        }
        false
    }
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
pub(super) async fn told(response: Response) -> String {
    let text = response.text().await.unwrap_or_default();
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

fn jitter() -> u8 {
    let mut random = [0];
    getrandom::fill(&mut random).map_or(0, |()| random[0])
}
