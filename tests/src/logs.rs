//! Plays the part of the kubelet that hands out logs: the API server asks it for those of pods on its
//! node.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, State},
    http::StatusCode,
    routing::get,
    serve::Listener,
};
use futures::stream;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
    server::TlsStream,
};

use crate::Space;

/// What each pod has printed, by namespace and name.
type Outputs = Arc<Mutex<HashMap<(String, String), Output>>>;

/// What a pod has printed: parts, each so many times. It is made while it is read, so that it may be
/// longer than anybody would keep.
#[derive(Clone)]
pub struct Output(pub Vec<(Bytes, usize)>);

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self(vec![(text.into(), 1)])
    }
}

impl From<&'static str> for Output {
    fn from(text: &'static str) -> Self {
        Self(vec![(text.into(), 1)])
    }
}

/// A node whose kubelet has nothing but logs. Ends with the test.
pub struct LogNode {
    pub name: String,
    outputs: Outputs,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for LogNode {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl LogNode {
    pub async fn start(space: &Space) -> Self {
        let outputs = Outputs::default();
        let listener = TlsListener::bind().await;
        let port = listener.tcp.local_addr().unwrap().port();
        let router = Router::new()
            .route("/containerLogs/{namespace}/{pod}/{container}", get(output))
            .with_state(outputs.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let name = format!("logs-{}", space.name);
        let nodes: Api<Node> = Api::all(space.client.clone());
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
        let node = serde_json::from_value(node).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let status = json!({ "status": {
            "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": port } },
        }});
        let patch = Patch::Merge(&status);
        nodes.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
        Self { name, outputs, serving }
    }

    /// From now on this is the log of the pod.
    pub fn print(&self, namespace: &str, pod: &str, output: impl Into<Output>) {
        let key = (namespace.to_owned(), pod.to_owned());
        self.outputs.lock().unwrap().insert(key, output.into());
    }
}

async fn output(
    State(outputs): State<Outputs>,
    Path((namespace, pod, _container)): Path<(String, String, String)>,
) -> Result<Body, StatusCode> {
    let outputs = outputs.lock().unwrap();
    let Output(parts) = outputs.get(&(namespace, pod)).cloned().ok_or(StatusCode::NOT_FOUND)?;
    let parts = parts.into_iter().flat_map(|(part, times)| std::iter::repeat_n(part, times));
    Ok(Body::from_stream(stream::iter(parts.map(Ok::<_, Infallible>))))
}

/// The API server speaks TLS to kubelets, and here checks no certificate.
struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl TlsListener {
    async fn bind() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        Self {
            tcp: TcpListener::bind("127.0.0.1:0").await.unwrap(),
            acceptor: TlsAcceptor::from(Arc::new(config)),
        }
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            // Whoever hangs up during the handshake has said nothing.
            if let Ok((stream, address)) = self.tcp.accept().await
                && let Ok(stream) = self.acceptor.accept(stream).await
            {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
