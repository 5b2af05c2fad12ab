//! Who asks what.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Path, Request, State},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::Bytes;
use http::{StatusCode, header};
use http_body_util::LengthLimitError;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::CancellationToken;
use windlass_inference::{
    Engine, Model,
    engine::{Figures, Limits},
};

use super::{
    answer::{self, Answer, Head, Times},
    body::{self, Kind},
    metrics::Metrics,
    refused::Refused,
};

/// A prompt of a few hundred thousand tokens; no model here takes more.
const LARGEST: usize = 4 << 20;

/// Written in any case.
const BEARER: &[u8] = b"Bearer ";
/// For a body to arrive.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many bodies are read and made tokens of at once; those of answers do not wait long for them.
const READING: usize = 4;

pub(super) struct Server {
    engine: Engine,
    model: Arc<Model>,
    /// Never empty.
    names: Vec<String>,
    limits: Limits,
    keys: Vec<String>,
    stop: CancellationToken,
    /// Bodies that are read at once.
    reading: Semaphore,
    metrics: Arc<Metrics>,
    created: i64,
    /// The part of the ids that tells this process from others.
    mark: i64,
    count: AtomicU64,
}

impl Server {
    pub(super) fn new(
        engine: Engine,
        model: Arc<Model>,
        names: Vec<String>,
        limits: Limits,
        keys: Vec<String>,
        stop: CancellationToken,
    ) -> Self {
        let now = Timestamp::now();
        let name = names.first().map_or("", String::as_str);
        Self {
            metrics: Arc::new(Metrics::new(name, limits.room(model.network.shape()))),
            engine,
            model,
            names,
            limits,
            keys,
            stop,
            reading: Semaphore::new(READING),
            created: now.as_second(),
            mark: now.as_microsecond(),
            count: AtomicU64::new(0),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    pub(super) fn is_alive(&self) -> bool {
        self.engine.is_alive()
    }

    /// When nothing is computed any more.
    pub(super) async fn failed(&self) {
        self.engine.ended().await;
    }

    pub(super) fn figures(&self) -> Figures {
        self.engine.figures()
    }

    fn describe(&self, name: &str) -> Value {
        json!({
            "id": name,
            "object": "model",
            "created": self.created,
            "owned_by": "windlass",
            "root": self.name(),
            "parent": null,
            "max_model_len": self.limits.tokens,
        })
    }

    /// The name to answer with.
    fn choose(&self, wanted: Option<&str>) -> Result<String, Refused> {
        let Some(wanted) = wanted else { return Ok(self.name().to_owned()) };
        if self.names.iter().any(|name| name == wanted) {
            return Ok(wanted.to_owned());
        }
        let text = format!("there is no model {wanted:?}");
        let refused = Refused::new(StatusCode::NOT_FOUND, "model_not_found", text);
        Err(Refused { param: Some("model".to_owned()), ..refused })
    }
}

pub(super) fn router(server: Arc<Server>) -> Router {
    Router::new()
        .route("/v1/models", get(models))
        .route("/v1/models/{*name}", get(model))
        .route("/v1/completions", post(completion))
        .route("/v1/chat/completions", post(chat))
        .layer(middleware::from_fn_with_state(Arc::clone(&server), who_knows_a_key))
        .route("/health", get(health))
        .route("/ping", get(health))
        .route("/version", get(version))
        .route("/metrics", get(metrics))
        .fallback(nothing)
        .method_not_allowed_fallback(other_method)
        .with_state(server)
}

async fn who_knows_a_key(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes());
    let given = given.and_then(|value| value.split_at_checked(BEARER.len()));
    let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(BEARER));
    let given = given.map_or(&[][..], |(_, key)| key);
    let known = server.keys.iter().fold(false, |known, key| known | is_same(key.as_bytes(), given));
    if server.keys.is_empty() || known {
        return next.run(request).await;
    }
    let text = "the API key is missing or wrong";
    Refused::new(StatusCode::UNAUTHORIZED, "invalid_api_key", text).into_response()
}

/// Takes as long wherever they differ.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    let differing = left.iter().zip(right).fold(0, |bits, (left, right)| bits | (left ^ right));
    left.len() == right.len() && differing == 0
}

async fn models(State(server): State<Arc<Server>>) -> Response {
    let models: Vec<Value> = server.names.iter().map(|name| server.describe(name)).collect();
    json_of(&json!({"object": "list", "data": models}))
}

async fn model(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Result<Response, Refused> {
    // A name may be a path.
    let name = server.choose(Some(&name)).or_else(|_| server.choose(Some(&format!("/{name}"))))?;
    Ok(json_of(&server.describe(&name)))
}

async fn completion(state: State<Arc<Server>>, body: Body) -> Result<Response, Refused> {
    ask(state, Kind::Completion, body).await
}

async fn chat(state: State<Arc<Server>>, body: Body) -> Result<Response, Refused> {
    ask(state, Kind::Chat, body).await
}

async fn ask(
    State(server): State<Arc<Server>>,
    kind: Kind,
    body: Body,
) -> Result<Response, Refused> {
    if server.stop.is_cancelled() {
        let text = "the server is about to end";
        return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", text));
    }
    let times = Times::new();
    let bytes = whole(body).await?;
    let failed = |error: &dyn std::fmt::Display| Refused::failed(error.to_string());
    // Long bodies take long: those who ask for the health do not wait for them.
    let reading = server.reading.acquire().await.map_err(|error| failed(&error))?;
    let reader = Arc::clone(&server);
    let understand = move || {
        let body = body::Body::read(&bytes)?;
        let name = reader.choose(body.model.as_deref())?;
        let asked = body.understand(kind, &reader.model, reader.limits, Timestamp::now())?;
        Ok::<_, Refused>((name, asked))
    };
    let (name, asked) =
        tokio::task::spawn_blocking(understand).await.map_err(|error| failed(&error))??;
    drop(reading);
    let head = Head {
        kind,
        id: server.id(kind),
        created: Timestamp::now().as_second(),
        model: name,
        prompt_tokens: asked.request.prompt.len(),
    };
    let metrics = Arc::clone(&server.metrics);
    let events = server.engine.submit(asked.request);
    let answer = Answer { head, events, metrics, times };
    if asked.streams {
        return Ok(answer::stream(answer, asked.tells_usage));
    }
    answer::whole(answer).await
}

/// The bytes of a body that is not too long, and does not take too long.
async fn whole(body: Body) -> Result<Bytes, Refused> {
    let Ok(read) = timeout(PATIENCE, to_bytes(body, LARGEST)).await else {
        let text = format!("the body did not come within {} seconds", PATIENCE.as_secs());
        return Err(Refused::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", text));
    };
    read.map_err(|error| {
        let source = std::error::Error::source(&error);
        if source.is_some_and(|source| source.is::<LengthLimitError>()) {
            let text = format!("the body may have at most {LARGEST} bytes");
            return Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text);
        }
        Refused::bad("", format!("cannot read the body: {error}"))
    })
}

impl Server {
    fn id(&self, kind: Kind) -> String {
        let start = match kind {
            Kind::Chat => "chatcmpl",
            Kind::Completion => "cmpl",
        };
        format!("{start}-{:x}-{:x}", self.mark, self.count.fetch_add(1, Relaxed))
    }
}

async fn health(State(server): State<Arc<Server>>) -> StatusCode {
    if server.stop.is_cancelled() || !server.is_alive() {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    }
}

async fn version() -> Response {
    json_of(&json!({"version": env!("CARGO_PKG_VERSION")}))
}

async fn metrics(State(server): State<Arc<Server>>) -> Result<Response, Refused> {
    let text = server.metrics.text(server.figures());
    let text = text.map_err(|error| Refused::failed(error.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

async fn nothing(request: Request) -> Refused {
    let text = format!("there is nothing at {}", request.uri().path());
    Refused::new(StatusCode::NOT_FOUND, "not_found", text)
}

async fn other_method(request: Request) -> Refused {
    let text = format!("{} does not take {}", request.uri().path(), request.method());
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", text)
}

fn json_of(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}
