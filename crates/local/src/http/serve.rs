//! The listener: TLS on loopback.

use std::{future::pending, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::Request,
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use http::header;
use hyper::server::conn::{http1, http2};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::{sleep, timeout},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer},
    },
};

use tower::util::MapRequestLayer;

use super::{Server, stalled::Attended, unread};
use crate::{auth::Certificates, error::Error};

/// Whoever says nothing must not hold a connection for ever.
const HANDSHAKE: Duration = Duration::from_secs(10);
const HEAD: Duration = Duration::from_secs(32);
const HEADERS: usize = 64;
const HEADER_BYTES: u32 = 64 * 1024;

/// A bound port with its certificate.
pub struct Listener {
    pub socket: TcpListener,
    pub tls: Arc<ServerConfig>,
}

impl Listener {
    /// With the certificate made for it.
    pub fn new(socket: TcpListener, certificates: &Certificates) -> Result<Self, rustls::Error> {
        let chain = certificates.chain.iter().map(|der| CertificateDer::from(der.clone()));
        let key = PrivateKeyDer::Pkcs8(certificates.key.clone().into());
        let mut tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain.collect(), key)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { socket, tls: Arc::new(tls) })
    }
}

/// Serves until the store stops.
pub async fn serve(server: Arc<Server>, listener: Listener) -> io::Result<()> {
    serve_within(server, listener, |router| router).await
}

/// Serves with layers around the router, which see requests before anybody knows who asks.
pub async fn serve_within(
    server: Arc<Server>,
    listener: Listener,
    layers: impl FnOnce(Router) -> Router,
) -> io::Result<()> {
    let address = listener.socket.local_addr()?;
    let router = layers(guarded(&server, address));
    let acceptor = TlsAcceptor::from(listener.tls);
    let store = server.registry().store().clone();
    let stopped = store.stopped();
    tokio::pin!(stopped);
    loop {
        let accepted = tokio::select! {
            accepted = listener.socket.accept() => accepted,
            () = &mut stopped => return Err(io::Error::other("the store cannot write")),
        };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(converse(acceptor.clone(), stream, router.clone()));
            }
            // Too many open files, as a rule: others have to end first.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

/// Only under our own names: a page in a browser could otherwise reach us under one of its own.
fn guarded(server: &Arc<Server>, address: SocketAddr) -> Router {
    let port = address.port();
    let guard = move |request: Request, next: Next| async move {
        match is_ours(&request, port) {
            true => next.run(request).await,
            false => refuse(),
        }
    };
    server.router().layer(middleware::from_fn(guard))
}

fn refuse() -> Response {
    Error::Misdirected.into_response()
}

fn is_ours(request: &Request, port: u16) -> bool {
    let header = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    // HTTP/2 has it in the address.
    let Some(host) = request.uri().authority().map(|host| host.as_str()).or(header) else {
        return false;
    };
    let (name, given) = match host.rsplit_once(':') {
        Some((name, given)) if !given.contains(']') => (name, given.parse().ok()),
        _ => (host, Some(443)),
    };
    let known = ["localhost", "127.0.0.1", "[::1]", "kubernetes.default.svc"];
    known.contains(&name) && given == Some(port)
}

async fn converse(acceptor: TlsAcceptor, mut stream: TcpStream, router: Router) {
    // Events of a watch are small and must not wait for company.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot send small packets at once");
    }
    match timeout(HANDSHAKE, is_plain(&stream)).await {
        Ok(true) => {
            let told = timeout(HANDSHAKE, tell_of_tls(&mut stream)).await;
            return tracing::debug!(?told, "a client does without TLS");
        }
        Ok(false) => {}
        Err(_) => return tracing::debug!("a client says nothing"),
    }
    let stream = match timeout(HANDSHAKE, acceptor.accept(Attended::new(stream))).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "handshake failed"),
        Err(_) => return tracing::debug!("handshake took too long"),
    };
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let stream = TokioIo::new(stream);
    let asked = Arc::new(Notify::new());
    let first = asked.clone();
    let router = router.layer(MapRequestLayer::new(move |request: Request| {
        asked.notify_one();
        request.map(unread::taken_in)
    }));
    let ended = if http2 {
        let mut server = http2::Builder::new(TokioExecutor::new());
        server
            .timer(TokioTimer::new())
            .keep_alive_interval(HEAD)
            .max_header_list_size(HEADER_BYTES);
        tokio::select! {
            ended = server.serve_connection(stream, TowerToHyperService::new(router)) => ended,
            () = silence(&first) => return tracing::debug!("a client asks nothing"),
        }
    } else {
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_headers(HEADERS);
        server.serve_connection(stream, TowerToHyperService::new(router)).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

/// Until there should have been a first request. Before that, HTTP/2 knows of no limit: its pings
/// begin with its settings.
async fn silence(asked: &Notify) {
    if timeout(HEAD, asked.notified()).await.is_ok() {
        pending::<()>().await;
    }
}

/// Whether it begins as requests do, and no handshake.
async fn is_plain(stream: &TcpStream) -> bool {
    let mut first = [0];
    stream.peek(&mut first).await.is_ok() && first[0].is_ascii_uppercase()
}

async fn tell_of_tls(stream: &mut TcpStream) -> io::Result<()> {
    // What is not read when we close would take the answer with it.
    let _read = stream.read(&mut [0; 4096]).await?;
    let answer =
        "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn only_loopback_names_with_our_port_are_ours() {
        for (host, want) in [
            ("127.0.0.1:6443", true),
            ("localhost:6443", true),
            ("[::1]:6443", true),
            ("kubernetes.default.svc:6443", true),
            ("127.0.0.1:80", false),
            ("127.0.0.1", false),
            ("evil.example:6443", false),
            ("127.0.0.1.evil.example:6443", false),
            ("", false),
        ] {
            let request = Request::builder().header("host", host).body(Body::empty()).unwrap();
            assert_eq!(is_ours(&request, 6443), want, "{host}");
        }
    }
}
