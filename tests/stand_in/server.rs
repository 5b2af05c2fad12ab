//! vLLM, zerfoo and what an AIM image holds: servers of the OpenAI API, with the paths that their
//! probes ask for.

use std::{
    convert::Infallible,
    env,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::{StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{Outcome, answers, arguments::Arguments};

/// What an AIM image prints when it is asked how it serves.
const DISCOVERY: &str = r#"[{"filename": "tiny-lm-mi300x-latency.yaml",
  "profile": {"model": "acme/tiny-lm-7b", "quantized_model": "acme/tiny-lm-7b-fp8",
    "metadata": {"engine": "vllm", "gpu": "MI300X", "precision": "fp8", "gpu_count": 2,
      "metric": "latency"},
    "engine_args": {"tensor-parallel-size": 2}, "env_vars": {"VLLM_USE_V1": "1"}},
  "models": [{"name": "acme/tiny-lm-7b-fp8", "source": "hf://acme/tiny-lm-7b-fp8",
    "size_gb": 12.5}]}]"#;
const USUAL_PORT: u16 = 8000;
const USUAL_TOKENS: u64 = 8;
/// A request says how long each of its tokens takes, in milliseconds.
const PAUSE: &str = "x-stand-in-pause";

/// Who answers.
struct Server {
    pod: String,
    model: String,
    version: String,
    running: AtomicUsize,
}

pub(crate) async fn run(arguments: &Arguments, stop: CancellationToken) -> Outcome {
    match arguments.others.first().map(String::as_str) {
        Some("dry-run") => {
            println!("[INFO] looking for profiles\n{DISCOVERY}");
            return Ok(());
        }
        // The cache of models is the program's own affair.
        Some("pull") => return Ok(()),
        _ => {}
    }
    let server = Arc::new(Server {
        pod: env::var("HOSTNAME").unwrap_or_default(),
        model: model(arguments),
        version: arguments.get("version").unwrap_or_default().to_owned(),
        running: AtomicUsize::new(0),
    });
    let healthy = || async { "ok" };
    let router = Router::new()
        .route("/", get(who))
        .route("/health", get(healthy))
        .route("/healthz", get(healthy))
        .route("/readyz", get(healthy))
        .route("/metrics", get(metrics))
        .route("/v1/models", get(models))
        .route("/v1/completions", post(complete))
        .route("/v1/chat/completions", post(complete))
        .with_state(server);
    let address = (arguments.host(), arguments.port("port", USUAL_PORT)?);
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await?;
    println!("all requests are answered");
    Ok(())
}

/// vLLM and AIM name it, zerfoo has it at its end.
fn model(arguments: &Arguments) -> String {
    let named = arguments.get("served-model-name").map(str::to_owned);
    let named = named.or_else(|| env::var("AIM_MODEL_ID").ok());
    named.or_else(|| arguments.others.last().cloned()).unwrap_or_default()
}

impl Server {
    fn signed(&self, response: impl IntoResponse) -> Response {
        let mut response = response.into_response();
        for (name, value) in
            [("pod", &self.pod), ("model", &self.model), ("version", &self.version)]
        {
            let name = HeaderName::try_from(format!("x-stand-in-{name}"));
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// A request as long as it runs.
struct Running(Arc<Server>);

impl Running {
    fn begin(server: &Arc<Server>) -> Self {
        server.running.fetch_add(1, Ordering::Relaxed);
        Self(server.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn who(State(server): State<Arc<Server>>) -> Response {
    let Server { pod, model, version, .. } = &*server;
    server.signed(as_json(&json!({"pod": pod, "model": model, "version": version})))
}

async fn models(State(server): State<Arc<Server>>) -> Response {
    let model = json!({"id": server.model, "object": "model", "owned_by": "stand-in"});
    server.signed(as_json(&json!({"object": "list", "data": [model]})))
}

async fn metrics(State(server): State<Arc<Server>>) -> String {
    answers::metrics(&server.model, server.running.load(Ordering::Relaxed))
}

async fn complete(State(server): State<Arc<Server>>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return server.signed(StatusCode::BAD_REQUEST);
    };
    let running = Running::begin(&server);
    let tokens = request["max_tokens"].as_u64().unwrap_or(USUAL_TOKENS);
    let pause = headers.get(PAUSE).and_then(|value| value.to_str().ok()?.parse().ok());
    let pause = Duration::from_millis(pause.unwrap_or(0));
    if request["stream"] != true {
        for _ in 0..tokens {
            wait(pause).await;
        }
        drop(running);
        return server.signed(as_json(&answers::completion(&server.model, tokens)));
    }
    let model = server.model.clone();
    let chunks = stream::iter(0..=tokens).then(move |at| {
        // Running until the last token has been fetched.
        let _ = &running;
        let text = match at < tokens {
            true => answers::chunk(&model, at),
            false => "[DONE]".to_owned(),
        };
        async move {
            wait(pause).await;
            Ok::<_, Infallible>(Bytes::from(format!("data: {text}\n\n")))
        }
    });
    let head = [(header::CONTENT_TYPE, "text/event-stream")];
    server.signed((head, Body::from_stream(chunks)))
}

fn as_json(value: &Value) -> impl IntoResponse + use<> {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string())
}

async fn wait(pause: Duration) {
    if !pause.is_zero() {
        windlass_tests::wait::pass(pause).await;
    }
}
