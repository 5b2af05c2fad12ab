//! Servers in the test behind the gateway, and clients in front of it.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full, combinators::BoxBody};
use hyper::{
    Request, Response, Uri, body::Incoming, client::conn, server::conn::http1, service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, pem::PemObject},
    },
};

use crate::running::Up;

pub(crate) type Body = BoxBody<Bytes, std::io::Error>;

pub(crate) fn said(text: impl Into<Bytes>) -> Response<Body> {
    Response::new(Full::new(text.into()).map_err(|never| match never {}).boxed())
}

/// Answers with what the function makes of a request.
pub(crate) async fn serve<F, A>(at: SocketAddr, answer: F) -> SocketAddr
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    let socket = TcpListener::bind(at).await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = socket.accept().await {
            let answer = answer.clone();
            let service = service_fn(move |request| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

pub(crate) fn anywhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Says its name, and what it was asked.
pub(crate) async fn named(name: &'static str) -> SocketAddr {
    let answer = move |request: Request<Incoming>| async move {
        let host = request.headers().get("host").and_then(|host| host.to_str().ok());
        said(format!("{name} {} {}", host.unwrap_or_default(), request.uri()))
    };
    serve(anywhere(), answer).await
}

/// How busy a model server says it is.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) waiting: AtomicU16,
    /// How much of its cache is in use, in percent.
    pub(crate) cache: AtomicU16,
    /// The model that it was asked for last.
    pub(crate) model: Mutex<String>,
}

/// One that looks like a model server with these figures.
pub(crate) async fn engine(at: SocketAddr, name: &'static str) -> Arc<Figures> {
    let figures = Arc::new(Figures::default());
    let said_of_it = figures.clone();
    let answer = move |request: Request<Incoming>| {
        let waiting = said_of_it.waiting.load(Ordering::Relaxed);
        let cache = f64::from(said_of_it.cache.load(Ordering::Relaxed)) / 100.0;
        let figures = said_of_it.clone();
        async move {
            match request.uri().path() {
                "/metrics" => said(format!(
                    "vllm:num_requests_waiting {waiting}\nvllm:kv_cache_usage_perc {cache}\n"
                )),
                _ => {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
                    let model = asked["model"].as_str().unwrap_or_default();
                    model.clone_into(&mut figures.model.lock().unwrap());
                    said(name)
                }
            }
        }
    };
    serve(at, answer).await;
    figures
}

/// As kubectl would.
pub(crate) async fn apply(client: &Client, object: Value) -> DynamicObject {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
    let gvk = GroupVersionKind::gvk(group, version, text("/kind"));
    let namespace = Some(text("/metadata/namespace")).filter(|name| !name.is_empty());
    let api = dynamic(client, &gvk, namespace);
    let params = PatchParams::apply("test").force();
    api.patch(text("/metadata/name"), &params, &Patch::Apply(&object)).await.unwrap()
}

/// Of the namespace `default` if it is not said.
pub(crate) fn dynamic(
    client: &Client,
    gvk: &GroupVersionKind,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    let cluster = ["Namespace", "GatewayClass", "CustomResourceDefinition"];
    let resource = ApiResource::from_gvk(gvk);
    match cluster.contains(&gvk.kind.as_str()) {
        true => Api::all_with(client.clone(), &resource),
        false => Api::namespaced_with(client.clone(), namespace.unwrap_or("default"), &resource),
    }
}

/// A Service that stands for a server of the test.
pub(crate) async fn service(client: &Client, name: &str, at: &[SocketAddr]) {
    service_in(client, "default", name, at).await;
}

pub(crate) async fn service_in(client: &Client, namespace: &str, name: &str, at: &[SocketAddr]) {
    let spec = json!({ "ports": [{ "port": 80 }] });
    let meta = json!({ "namespace": namespace, "name": name });
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec });
    apply(client, service).await;
    for (index, address) in at.iter().enumerate() {
        let labels = BTreeMap::from([("kubernetes.io/service-name", name)]);
        apply(
            client,
            json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": { "namespace": namespace, "name": format!("{name}-{index}"),
                    "labels": labels },
                "addressType": "IPv4", "ports": [{ "port": address.port() }],
                "endpoints": [{ "addresses": [address.ip().to_string()] }] }),
        )
        .await;
    }
}

pub(crate) fn route(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": { "name": name }, "spec": spec })
}

impl Up {
    pub(crate) fn gateway(&self) -> SocketAddr {
        let url = self.said.iter().find_map(|line| line.strip_prefix("models answer at http"));
        let url = url.unwrap_or_else(|| panic!("no gateway: {:?}", self.said));
        let (_, address) = url.split_once("://").unwrap();
        address.split(',').next().unwrap().parse().unwrap()
    }

    pub(crate) async fn ask(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let stream = TcpStream::connect(self.gateway()).await.unwrap();
        let (mut sender, connection) = conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    }

    pub(crate) async fn get(&self, host: &str, path: &str) -> (u16, String) {
        let request = Request::get(path).header("host", host).body(Full::default()).unwrap();
        text(self.ask(request).await).await
    }

    /// Over HTTP/2 without TLS and without asking first.
    pub(crate) async fn get_http2(&self, url: &str) -> (u16, String) {
        let stream = TcpStream::connect(self.gateway()).await.unwrap();
        let shaken = conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.unwrap();
        tokio::spawn(connection);
        let request = Request::get(url).body(Empty::<Bytes>::new()).unwrap();
        text(sender.send_request(request).await.unwrap()).await
    }

    /// For who trusts the authority of this file, or nobody.
    pub(crate) async fn get_tls(
        &self,
        authority: Option<&Path>,
        is_http2: bool,
        url: &str,
    ) -> std::io::Result<(u16, String)> {
        let url: Uri = url.parse().unwrap();
        let mut roots = RootCertStore::empty();
        if let Some(file) = authority {
            roots.add(CertificateDer::from_pem_file(file).unwrap()).unwrap();
        }
        let provider = Arc::new(ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let protocol = if is_http2 { "h2" } else { "http/1.1" };
        tls.alpn_protocols = vec![protocol.into()];
        let name = url.host().unwrap().to_owned().try_into().unwrap();
        let stream = TcpStream::connect(self.gateway()).await?;
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
        let stream = TokioIo::new(stream);
        let answer = if is_http2 {
            let shaken = conn::http2::handshake(TokioExecutor::new(), stream).await;
            let (mut sender, connection) = shaken.unwrap();
            tokio::spawn(connection);
            let request = Request::get(url).body(Empty::<Bytes>::new()).unwrap();
            sender.send_request(request).await
        } else {
            let (mut sender, connection) = conn::http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            let request = Request::get(url.path()).header("host", url.host().unwrap());
            sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await
        };
        Ok(text(answer.map_err(std::io::Error::other)?).await)
    }
}

pub(crate) async fn text(response: Response<Incoming>) -> (u16, String) {
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}
