//! A proxy in front of the API server that answers some requests itself, as an ailing server would.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use kube::{Client, Config};
use serde_json::json;

use crate::Cluster;

/// Which requests to answer instead of passing them on.
#[derive(Clone, Debug)]
pub struct Fault {
    pub method: &'static str,
    /// Part of the path.
    pub path: &'static str,
    pub code: u16,
    pub reason: &'static str,
    pub times: usize,
}

#[derive(Clone)]
pub struct Faults {
    pub address: String,
    pending: Arc<Mutex<VecDeque<Fault>>>,
    injected: Arc<Mutex<Vec<u16>>>,
    client: Client,
}

impl Faults {
    pub async fn start(cluster: &Cluster) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let faults = Self {
            address: format!("http://{}", listener.local_addr().unwrap()),
            pending: Arc::default(),
            injected: Arc::default(),
            client: anonymous(cluster).await,
        };
        let router = Router::new().fallback(handle).with_state(faults.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        faults
    }

    pub fn inject(&self, fault: Fault) {
        self.pending.lock().unwrap().push_back(fault);
    }

    /// From now on everything is passed on.
    pub fn clear(&self) {
        self.pending.lock().unwrap().clear();
    }

    /// The codes of the answers given so far.
    pub fn injected(&self) -> Vec<u16> {
        self.injected.lock().unwrap().clone()
    }

    fn take(&self, request: &Request) -> Option<Fault> {
        let mut pending = self.pending.lock().unwrap();
        let at = pending.iter().position(|fault| {
            request.method().as_str() == fault.method && request.uri().path().contains(fault.path)
        })?;
        let fault = pending[at].clone();
        pending[at].times -= 1;
        if pending[at].times == 0 {
            pending.remove(at);
        }
        self.injected.lock().unwrap().push(fault.code);
        Some(fault)
    }
}

/// Passes on whatever credentials a request carries.
async fn anonymous(cluster: &Cluster) -> Client {
    let file = kube::config::Kubeconfig::read_from(&cluster.kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(file, &Default::default()).await.unwrap();
    config.auth_info = Default::default();
    Client::try_from(config).unwrap()
}

async fn handle(State(faults): State<Faults>, request: Request) -> Response {
    if let Some(fault) = faults.take(&request) {
        let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "code": fault.code, "reason": fault.reason, "message": "injected by the test" });
        return Response::builder()
            .status(fault.code)
            .header("content-type", "application/json")
            .body(Body::from(status.to_string()))
            .unwrap();
    }
    let (mut parts, body) = request.into_parts();
    // The client chooses its own host and connection.
    parts.headers.remove("host");
    parts.headers.remove("connection");
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let request = http::Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
    match faults.client.send(request).await {
        Ok(answer) => answer.map(Body::new),
        Err(error) => Response::builder().status(502).body(Body::from(error.to_string())).unwrap(),
    }
}
