//! Tokens: asked for when a registry wants one, kept until they are about to end.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::Mutex,
    time::{Duration, Instant},
};

use reqwest::{Client, RequestBuilder, Response, Url};
use serde::Deserialize;
use tokio::{task::spawn_blocking, time::sleep};

use super::{
    Settings, Trouble,
    challenge::Challenge,
    credentials::{self, Credential, Found},
    retry,
    send::asked,
};

/// What registries mean if they say nothing.
const USUAL: u64 = 60;
/// Nobody believes in more.
const DAY: u64 = 24 * 60 * 60;
/// A token is not used in its last moments.
const MARGIN: Duration = Duration::from_secs(10);

pub(super) struct Auth {
    registry: String,
    files: Vec<PathBuf>,
    found: tokio::sync::OnceCell<Option<Found>>,
    known: Mutex<Known>,
    attempts: u32,
    plain_http: bool,
}

/// Who hands out tokens has not said anything of use, however often it was asked.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) attempts: u32,
    pub(super) told: String,
    pub(super) source: Option<Trouble>,
}

impl From<reqwest::Error> for Unanswered {
    fn from(error: reqwest::Error) -> Self {
        let source = Some(Trouble::Http(error.without_url()));
        Self { attempts: 1, told: String::new(), source }
    }
}

/// No token has more bytes.
const TOKEN: usize = 1 << 20;

#[derive(Default)]
struct Known {
    /// What the registry has asked for.
    challenge: Option<Challenge>,
    /// By scope.
    tokens: HashMap<String, (String, Instant)>,
}

#[derive(Deserialize)]
struct Granted {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
    expires_in: Option<u64>,
}

impl Auth {
    pub(super) fn new(registry: &str, settings: &Settings) -> Self {
        Self {
            registry: registry.to_owned(),
            files: settings.credentials.clone(),
            found: tokio::sync::OnceCell::new(),
            known: Mutex::default(),
            attempts: settings.attempts,
            plain_http: settings.plain_http,
        }
    }

    async fn credential(&self) -> Option<&Found> {
        let look = async || {
            let (files, registry) = (self.files.clone(), self.registry.clone());
            spawn_blocking(move || credentials::find(&files, &registry)).await.unwrap_or_default()
        };
        self.found.get_or_init(look).await.as_ref()
    }

    /// For messages: where the credential is from, never what it is.
    pub(super) async fn source(&self) -> String {
        match self.credential().await {
            Some(found) => format!("the credentials are from {}", found.source.display()),
            None => format!("there are no credentials for {}", self.registry),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// With what is known to be wanted. A token that has ended is renewed before anything is sent.
    pub(super) async fn sign(
        &self,
        http: &Client,
        request: RequestBuilder,
        scope: &str,
    ) -> RequestBuilder {
        if let Some(token) = self.fresh(scope) {
            return request.bearer_auth(token);
        }
        let challenge = self.known().challenge.clone();
        if let Some(challenge @ Challenge::Bearer { .. }) = &challenge
            && self.answer(http, challenge, scope).await.is_ok_and(|is_answered| is_answered)
            && let Some(token) = self.fresh(scope)
        {
            return request.bearer_auth(token);
        }
        match self.credential().await.map(|found| &found.credential) {
            Some(Credential::Basic { user, password }) if challenge == Some(Challenge::Basic) => {
                request.basic_auth(user, Some(password))
            }
            Some(Credential::Token(token)) => request.bearer_auth(token),
            _ => request,
        }
    }

    fn fresh(&self, scope: &str) -> Option<String> {
        let known = self.known();
        let (token, until) = known.tokens.get(scope)?;
        (*until > Instant::now()).then(|| token.clone())
    }

    /// Does what a challenge asks for. Whether there is any sense in asking again.
    pub(super) async fn answer(
        &self,
        http: &Client,
        challenge: &Challenge,
        scope: &str,
    ) -> Result<bool, Unanswered> {
        self.known().challenge = Some(challenge.clone());
        match challenge {
            Challenge::Basic => Ok(matches!(
                self.credential().await.map(|found| &found.credential),
                Some(Credential::Basic { .. })
            )),
            Challenge::Bearer { realm, service, scope: asked } => {
                let Ok(realm) = Url::parse(realm) else { return Ok(false) };
                // The password goes there.
                if realm.scheme() != "https" && !self.plain_http {
                    let source = Some(Trouble::Insecure(authority(&realm)));
                    return Err(Unanswered { attempts: 1, told: String::new(), source });
                }
                let wanted =
                    if scope.is_empty() { asked.as_deref().unwrap_or_default() } else { scope };
                let granted = self.token(http, realm, service.as_deref(), wanted).await?;
                let Some(granted) = granted else { return Ok(false) };
                let lasts = Duration::from_secs(granted.expires_in.unwrap_or(USUAL).clamp(1, DAY));
                let until = Instant::now() + lasts.saturating_sub(MARGIN.min(lasts / 2));
                let token =
                    if granted.token.is_empty() { granted.access_token } else { granted.token };
                self.known().tokens.insert(scope.to_owned(), (token, until));
                Ok(true)
            }
        }
    }

    /// One that was refused is not used again.
    pub(super) fn forget(&self, scope: &str) {
        self.known().tokens.remove(scope);
    }

    async fn token(
        &self,
        http: &Client,
        realm: Url,
        service: Option<&str>,
        scope: &str,
    ) -> Result<Option<Granted>, Unanswered> {
        let mut fields = vec![("client_id", "windlass")];
        fields.extend(service.map(|service| ("service", service)));
        // Several are several fields here, and several words where they are sent.
        let scopes = scope.split(' ').map(|scope| ("scope", scope));
        let asked: Vec<_> = scopes.chain(fields.iter().copied()).collect();
        let credential = self.credential().await.map(|found| found.credential.clone());
        let request = match &credential {
            Some(Credential::Identity(identity)) => {
                fields.push(("scope", scope));
                fields.extend([("grant_type", "refresh_token"), ("refresh_token", identity)]);
                let form = "application/x-www-form-urlencoded";
                let body =
                    with_query(realm.clone(), &fields).query().unwrap_or_default().to_owned();
                http.post(realm).header("content-type", form).body(body)
            }
            Some(Credential::Basic { user, password }) => {
                http.get(with_query(realm, &asked)).basic_auth(user, Some(password))
            }
            Some(Credential::Token(_)) | None => http.get(with_query(realm, &asked)),
        };
        let mut answer = self.ask(request).await?;
        if !answer.status().is_success() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            if bytes.len() + piece.len() > TOKEN {
                return Ok(None);
            }
            bytes.extend(piece);
        }
        let granted = serde_json::from_slice::<Granted>(&bytes).ok();
        Ok(granted.filter(|granted| !granted.token.is_empty() || !granted.access_token.is_empty()))
    }

    /// Whoever hands out tokens may be busy as well.
    async fn ask(&self, request: RequestBuilder) -> Result<Response, Unanswered> {
        let mut attempts = 0;
        loop {
            // Its body is a text, so it can be sent again.
            let Some(once) = request.try_clone() else { return Ok(request.send().await?) };
            let (told, source) = match once.send().await {
                Ok(answer) if !retry::is_passing(answer.status()) => return Ok(answer),
                Ok(answer) => (format!(": {}", answer.status()), asked(&answer).map(Trouble::Busy)),
                Err(error) => (String::new(), Some(Trouble::Http(error.without_url()))),
            };
            attempts += 1;
            let wait = match source {
                Some(Trouble::Busy(wait)) => Some(wait),
                _ => None,
            };
            match retry::wait(attempts, wait, 0).filter(|_| attempts < self.attempts) {
                Some(wait) => sleep(wait).await,
                None => return Err(Unanswered { attempts, told, source }),
            }
        }
    }
}

/// Host and port, without anything that might be secret.
pub(super) fn authority(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", url.host_str().unwrap_or_default())
}

fn with_query(mut url: Url, fields: &[(&str, &str)]) -> Url {
    let filled = fields.iter().filter(|(_, value)| !value.is_empty());
    url.query_pairs_mut().extend_pairs(filled);
    url
}
