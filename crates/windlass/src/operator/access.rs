//! Who may read the metrics: the API server is asked whose a token is and what its owner may do.
//! Answers are those of controller-runtime, save that a token nobody knows gives 401 and not 500.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::Semaphore;
use windlass_engine::error::chain;

/// How long an answer holds. Who was refused may have been given the right meanwhile.
const GRANTED_FOR: Duration = Duration::from_secs(60);
const REFUSED_FOR: Duration = Duration::from_secs(10);
/// Questions under way at once, so that a flood of made-up tokens is none for the API server.
const AT_ONCE: usize = 4;
/// Answers that are kept.
const KEPT: usize = 1000;

pub(super) struct Access {
    client: Client,
    asking: Semaphore,
    answers: Mutex<HashMap<Question, (Verdict, Instant)>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Question {
    token: String,
    verb: String,
    path: String,
}

#[derive(Clone)]
enum Verdict {
    Granted,
    Unknown,
    Refused { user: String },
}

/// Lets through who may do this.
pub(super) async fn guard(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(token) = bearer(request.headers()) else { return unauthorized() };
    let question = Question {
        token: token.to_owned(),
        verb: request.method().as_str().to_lowercase(),
        path: request.uri().path().to_owned(),
    };
    match access.judge(question).await {
        Ok(Verdict::Granted) => next.run(request).await,
        Ok(Verdict::Unknown) => unauthorized(),
        Ok(Verdict::Refused { user }) => {
            let text = format!("Authorization denied for user {user}");
            (StatusCode::FORBIDDEN, text).into_response()
        }
        Err(error) => {
            tracing::warn!(error = chain(&error), "cannot ask the API who reads the metrics");
            (StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed").into_response()
        }
    }
}

fn unauthorized() -> Response {
    let scheme = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, scheme, "Unauthorized").into_response()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut words = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_whitespace();
    let scheme = words.next()?;
    words.next().filter(|_| scheme.eq_ignore_ascii_case("bearer"))
}

impl Access {
    pub(super) fn new(client: Client) -> Self {
        Self { client, asking: Semaphore::new(AT_ONCE), answers: Mutex::default() }
    }

    async fn judge(&self, question: Question) -> Result<Verdict, kube::Error> {
        if let Some(verdict) = self.known(&question) {
            return Ok(verdict);
        }
        // It is never closed, so there is always a turn.
        let _turn = self.asking.acquire().await;
        // Whoever was before us may have asked the same.
        if let Some(verdict) = self.known(&question) {
            return Ok(verdict);
        }
        let verdict = self.ask(&question).await?;
        let lasts = if matches!(verdict, Verdict::Granted) { GRANTED_FOR } else { REFUSED_FOR };
        let now = Instant::now();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|_, (_, until)| *until > now);
        if answers.len() < KEPT {
            answers.insert(question, (verdict.clone(), now + lasts));
        }
        Ok(verdict)
    }

    fn known(&self, question: &Question) -> Option<Verdict> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (verdict, until) = answers.get(question)?;
        (*until > Instant::now()).then(|| verdict.clone())
    }

    async fn ask(&self, question: &Question) -> Result<Verdict, kube::Error> {
        let Some(user) = self.owner(&question.token).await? else { return Ok(Verdict::Unknown) };
        let name = user.username.clone().unwrap_or_default();
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(question.path.clone()),
                    verb: Some(question.verb.clone()),
                }),
                ..Default::default()
            },
            ..Default::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        let allowed = answer.status.is_some_and(|status| status.allowed);
        Ok(if allowed { Verdict::Granted } else { Verdict::Refused { user: name } })
    }

    async fn owner(&self, token: &str) -> Result<Option<UserInfo>, kube::Error> {
        let review = TokenReview {
            spec: TokenReviewSpec { token: Some(token.to_owned()), ..Default::default() },
            ..Default::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        let status = answer.status.filter(|status| status.authenticated == Some(true));
        Ok(status.and_then(|status| status.user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_what_follows_the_word_bearer() {
        for (header, want) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Basic abc", None),
            ("Bearer", None),
            ("Bearer ", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, header.parse().unwrap())]);
            assert_eq!(bearer(&headers), want, "{header:?}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
