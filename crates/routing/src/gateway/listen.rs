//! The listener: HTTP/1.1 and HTTP/2 on one port, with TLS or without.

use std::{io, pin::pin, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Notify, Semaphore},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

use super::proxy::{Client, Proxy};

/// Whoever says nothing must not hold a connection for ever.
const HEAD: Duration = Duration::from_secs(30);
/// Too many open files, as a rule: others have to end first.
const PAUSE: Duration = Duration::from_secs(1);
/// Who comes when there are so many has to wait.
const CONNECTIONS: usize = 1024;

/// What addresses of the listener begin with.
pub fn scheme(has_tls: bool) -> &'static str {
    if has_tls { "https" } else { "http" }
}

/// Serves until it is dropped.
pub async fn serve(
    proxy: Arc<Proxy>,
    socket: TcpListener,
    tls: Option<Arc<ServerConfig>>,
) -> io::Result<()> {
    serve_some(proxy, socket, tls, CONNECTIONS).await
}

/// Never more than `at_once`.
async fn serve_some(
    proxy: Arc<Proxy>,
    socket: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    at_once: usize,
) -> io::Result<()> {
    let port = socket.local_addr()?.port();
    let scheme = scheme(tls.is_some());
    let tls = tls.map(TlsAcceptor::from);
    let places = Arc::new(Semaphore::new(at_once));
    loop {
        let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
        match socket.accept().await {
            Ok((stream, address)) => {
                let client = Client { address, scheme, port };
                let conversation = welcome(proxy.clone(), stream, client, tls.clone());
                tokio::spawn(async move {
                    conversation.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn welcome(proxy: Arc<Proxy>, stream: TcpStream, client: Client, tls: Option<TlsAcceptor>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot send small packets at once");
    }
    let Some(tls) = tls else { return converse(proxy, stream, client).await };
    match timeout(HEAD, tls.accept(stream)).await {
        Ok(Ok(stream)) => converse(proxy, stream, client).await,
        Ok(Err(error)) => tracing::debug!(%error, "handshake failed"),
        Err(_) => tracing::debug!("handshake took too long"),
    }
}

async fn converse<S>(proxy: Arc<Proxy>, stream: S, client: Client)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    server.http2().timer(TokioTimer::new()).keep_alive_interval(HEAD);
    let asked = Arc::new(Notify::new());
    let asking = asked.clone();
    let service = service_fn(move |request| {
        asking.notify_one();
        let proxy = proxy.clone();
        async move { proxy.answer(client, request).await }
    });
    let ended = server.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut ended = pin!(ended);
    // The server's own limit begins only when it knows which HTTP is spoken.
    let ended = tokio::select! {
        ended = &mut ended => ended,
        () = asked.notified() => ended.await,
        () = sleep(HEAD) => return tracing::debug!("a connection was not used"),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

#[cfg(test)]
mod tests;
