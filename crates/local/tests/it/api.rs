//! A server of its own for each test, and short ways to ask it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, BodyDataStream, Bytes, to_bytes},
    response::Response,
};
use futures::StreamExt;
use http::{HeaderMap, Method, Request, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{interval, timeout};
use tower::ServiceExt;
use windlass_local::{
    auth::User,
    http::{Access, Server},
    registry::{Registry, Settings, tend},
    store::Store,
};

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) struct Api {
    pub(crate) server: Arc<Server>,
    router: Router,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn is(self, code: u16) -> Self {
        assert_eq!(self.status.as_u16(), code, "{}", self.text);
        self
    }

    #[track_caller]
    pub(crate) fn fails(self, code: u16, reason: &str) -> Self {
        let answer = self.is(code);
        assert_eq!(answer.body["kind"], "Status", "{}", answer.text);
        assert_eq!(answer.body["reason"].as_str().unwrap_or_default(), reason, "{}", answer.text);
        answer
    }

    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    pub(crate) fn version(&self) -> u64 {
        self.body["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect()
    }
}

pub(crate) fn admin() -> User {
    User { name: "admin".into(), groups: vec!["system:masters".into()], ..User::default() }
}

impl Api {
    pub(crate) async fn new() -> Self {
        let store = Store::in_memory(Arc::new(Timestamp::now)).unwrap();
        Self::on(store).await
    }

    pub(crate) async fn on(store: Store) -> Self {
        Self::with(store, Access::default()).await
    }

    pub(crate) async fn with(store: Store, access: Access) -> Self {
        Self::start(store, access, Settings::default()).await
    }

    pub(crate) async fn start(store: Store, access: Access, settings: Settings) -> Self {
        let settings = Settings { root_certificate: "PEM".into(), ..settings };
        let registry = Registry::start(store, settings).await.unwrap();
        tokio::spawn(tend(registry.clone()));
        let server = Server::new(registry, access);
        let router = server.service(admin());
        Self { server, router }
    }

    /// The same server, asked by somebody else.
    pub(crate) fn as_user(&self, user: User) -> Self {
        Self { server: self.server.clone(), router: self.server.service(user) }
    }

    pub(crate) async fn raw(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        media: &str,
        body: impl Into<Body>,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .header("user-agent", "test/1")
            .body(body.into())
            .unwrap();
        self.ask(request).await
    }

    pub(crate) async fn ask(&self, request: Request<Body>) -> Answer {
        let response = self.raw(request).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Answer { status, headers, body, text }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "application/json", Body::empty()).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let request = Request::builder().uri(path).header("accept", accept);
        self.ask(request.body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, "application/json", body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, "application/json", body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, "application/json", Body::empty()).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: Value) -> Answer {
        self.send(Method::DELETE, path, "application/json", options.to_string()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PATCH, path, "application/merge-patch+json", body.to_string()).await
    }

    pub(crate) async fn apply(&self, path: &str, manager: &str, body: Value) -> Answer {
        let join = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{join}fieldManager={manager}");
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", body.to_string()).await
    }

    pub(crate) async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, "application/json").await
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        let request = Request::builder().uri(path).header("accept", accept);
        let response = self.raw(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        Watch { stream: response.into_body().into_data_stream(), rest: Vec::new() }
    }

    /// Asks until the answer is as wanted.
    pub(crate) async fn until(&self, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        // The machine may be busy; a passing test never waits that long.
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut pause = interval(Duration::from_millis(5));
        loop {
            pause.tick().await;
            let answer = self.get(path).await;
            if wanted(&answer) {
                return answer;
            }
            assert!(Instant::now() < deadline, "{path}: {}", answer.text);
        }
    }

    pub(crate) async fn until_gone(&self, path: &str) {
        self.until(path, |answer| answer.status == StatusCode::NOT_FOUND).await;
    }
}

/// The events of a watch, one by one.
pub(crate) struct Watch {
    stream: BodyDataStream,
    rest: Vec<u8>,
}

impl Watch {
    /// `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        self.next_within(Duration::from_secs(10)).await
    }

    pub(crate) async fn next_within(&mut self, patience: Duration) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let next = timeout(patience, self.stream.next()).await;
            let next = next.unwrap_or_else(|_| panic!("no event for {patience:?}"));
            let chunk: Bytes = next?.unwrap();
            self.rest.extend_from_slice(&chunk);
        }
    }

    /// Type, name and version of the next event.
    pub(crate) async fn event(&mut self) -> (String, String, u64) {
        let event = self.next().await.expect("the watch has ended");
        let metadata = &event["object"]["metadata"];
        (
            event["type"].as_str().unwrap().to_owned(),
            metadata["name"].as_str().unwrap_or_default().to_owned(),
            metadata["resourceVersion"].as_str().unwrap_or("0").parse().unwrap(),
        )
    }
}

pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}
