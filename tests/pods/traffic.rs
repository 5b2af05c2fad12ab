//! Requests through the gateway, as many clients send them.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::body::Body;
use futures::future::join_all;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpStream, task::JoinHandle};

const PATIENCE: Duration = Duration::from_secs(60);
const TOKENS: u64 = 5;

/// Where requests go: an address, and what the route looks at.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) gateway: SocketAddr,
    pub(crate) host: String,
    /// What all paths begin with.
    pub(crate) base: &'static str,
    pub(crate) model: &'static str,
}

/// One that keeps its connection.
pub(crate) struct Client {
    target: Target,
    sender: Option<http1::SendRequest<Body>>,
}

/// What a request has brought.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) headers: HeaderMap,
    /// The text, and when each part of it came.
    pub(crate) text: String,
    pub(crate) parts: Vec<Instant>,
}

impl Answer {
    /// What the stand-in says of itself.
    pub(crate) fn says(&self, what: &str) -> &str {
        self.is_said(what).unwrap_or_else(|| panic!("it does not say its {what}: {self:?}"))
    }

    /// The same, of an answer that may be somebody else's.
    pub(crate) fn is_said(&self, what: &str) -> Option<&str> {
        self.headers.get(format!("x-stand-in-{what}"))?.to_str().ok()
    }
}

impl Client {
    pub(crate) fn new(target: &Target) -> Self {
        Self { target: target.clone(), sender: None }
    }

    /// A completion; each token takes the given time.
    pub(crate) async fn complete(
        &mut self,
        tokens: u64,
        streamed: bool,
        pause: Duration,
    ) -> Result<Answer, String> {
        let body = json!({
            "model": "any", "prompt": "a b c", "max_tokens": tokens, "stream": streamed,
        });
        let answer = self.post(&body, pause).await?;
        let whole = match streamed {
            true => {
                answer.text.matches("data: {").count() as u64 == tokens
                    && answer.text.ends_with("data: [DONE]\n\n")
            }
            false => answer.text.contains(&format!("\"completion_tokens\":{tokens}")),
        };
        if whole { Ok(answer) } else { Err(format!("not whole: {}", answer.text)) }
    }

    /// One token in answer to a prompt.
    pub(crate) async fn prompt(&mut self, prompt: &str) -> Result<Answer, String> {
        let body = json!({"model": "any", "prompt": prompt, "max_tokens": 1});
        self.post(&body, Duration::ZERO).await
    }

    async fn post(&mut self, body: &Value, pause: Duration) -> Result<Answer, String> {
        let request = Request::post(format!("{}/v1/completions", self.target.base))
            .header("content-type", "application/json")
            .header("x-stand-in-pause", pause.as_millis().to_string())
            .body(Body::from(body.to_string()));
        self.ask(request.unwrap()).await
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer, String> {
        let path = format!("{}{path}", self.target.base);
        self.ask(Request::get(path).body(Body::empty()).unwrap()).await
    }

    async fn ask(&mut self, mut request: Request<Body>) -> Result<Answer, String> {
        let headers = request.headers_mut();
        headers.insert("host", self.target.host.parse().unwrap());
        headers.insert("OtterScale-Model-Name", self.target.model.parse().unwrap());
        let answer = tokio::time::timeout(PATIENCE, self.send(request)).await;
        answer.unwrap_or_else(|_| Err(format!("no answer within {PATIENCE:?}")))
    }

    async fn send(&mut self, request: Request<Body>) -> Result<Answer, String> {
        let mut sender = match self.sender.take().filter(|sender| !sender.is_closed()) {
            Some(sender) => sender,
            None => self.connect().await.map_err(|error| format!("connect: {error}"))?,
        };
        sender.ready().await.map_err(|error| format!("ready: {error}"))?;
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| format!("request: {error:?}"))?;
        let (head, body) = response.into_parts();
        let (text, parts) = read(body).await?;
        self.sender = Some(sender);
        match head.status {
            StatusCode::OK => Ok(Answer { headers: head.headers, text, parts }),
            status => Err(format!("{status}: {text}")),
        }
    }

    async fn connect(
        &self,
    ) -> Result<http1::SendRequest<Body>, Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(self.target.gateway).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

async fn read(mut body: Incoming) -> Result<(String, Vec<Instant>), String> {
    let (mut text, mut parts) = (String::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| format!("body: {error:?}"))?;
        if let Some(data) = frame.data_ref() {
            text.push_str(&String::from_utf8_lossy(data));
            parts.push(Instant::now());
        }
    }
    Ok((text, parts))
}

/// Asks `count` times, several at once; how often each value came of what servers say of themselves.
pub(crate) async fn ask_many(
    target: &Target,
    count: u64,
    at_once: usize,
    what: &'static str,
) -> BTreeMap<String, u64> {
    let left = Arc::new(AtomicU64::new(count));
    let clients = (0..at_once).map(|_| {
        let (left, mut client) = (left.clone(), Client::new(target));
        tokio::spawn(async move {
            let mut seen = BTreeMap::<String, u64>::new();
            let take = |left: u64| left.checked_sub(1);
            while left.try_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                let answer = client.get("/v1/models").await.unwrap();
                *seen.entry(answer.says(what).to_owned()).or_default() += 1;
            }
            seen
        })
    });
    let mut all = BTreeMap::<String, u64>::new();
    for seen in join_all(clients).await {
        for (value, times) in seen.unwrap() {
            *all.entry(value).or_default() += times;
        }
    }
    all
}

/// Clients that ask without pause until told to stop; every other one has its answers streamed.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Sum>>,
}

/// What all clients have seen.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    pub(crate) plain: u64,
    pub(crate) streamed: u64,
    pub(crate) failures: Vec<String>,
    /// How often each version has answered.
    pub(crate) versions: BTreeMap<String, u64>,
}

impl Load {
    pub(crate) fn start(target: &Target, clients: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicU64::new(0));
        let client = |at: usize| {
            let client = Client::new(target);
            tokio::spawn(work(client, at.is_multiple_of(2), stop.clone(), answered.clone()))
        };
        Self { clients: (0..clients).map(client).collect(), stop, answered }
    }

    /// So many requests more have been answered.
    pub(crate) async fn go_on(&self, more: u64) {
        let wanted = self.answered.load(Ordering::Relaxed) + more;
        let count = || async { self.answered.load(Ordering::Relaxed) };
        windlass_tests::eventually("more answers", count, |count| *count >= wanted).await;
    }

    pub(crate) async fn end(self) -> Sum {
        self.stop.store(true, Ordering::Relaxed);
        let mut sum = Sum::default();
        for client in join_all(self.clients).await {
            let one = client.unwrap();
            sum.plain += one.plain;
            sum.streamed += one.streamed;
            sum.failures.extend(one.failures);
            for (version, times) in one.versions {
                *sum.versions.entry(version).or_default() += times;
            }
        }
        sum
    }
}

async fn work(
    mut client: Client,
    streamed: bool,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
) -> Sum {
    let mut sum = Sum::default();
    let started = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let answer = client.complete(TOKENS, streamed, Duration::from_millis(10)).await;
        answered.fetch_add(1, Ordering::Relaxed);
        match answer {
            Ok(answer) => {
                *sum.versions.entry(answer.says("version").to_owned()).or_default() += 1;
                if streamed { sum.streamed += 1 } else { sum.plain += 1 }
            }
            Err(why) => {
                sum.failures.push(format!("{:.3} s: {why}", started.elapsed().as_secs_f32()));
            }
        }
    }
    sum
}
