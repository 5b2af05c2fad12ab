//! The listener: HTTP/1.1 and HTTP/2 on one port.

use std::{io, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};

use super::proxy::{Client, Proxy};

/// Whoever says nothing must not hold a connection for ever.
const HEAD: Duration = Duration::from_secs(30);
/// Too many open files, as a rule: others have to end first.
const PAUSE: Duration = Duration::from_secs(1);

/// Serves until it is dropped.
pub async fn serve(proxy: Arc<Proxy>, socket: TcpListener) -> io::Result<()> {
    let port = socket.local_addr()?.port();
    loop {
        match socket.accept().await {
            Ok((stream, address)) => {
                let client = Client { address, scheme: "http", port };
                tokio::spawn(converse(proxy.clone(), stream, client));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn converse(proxy: Arc<Proxy>, stream: TcpStream, client: Client) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot send small packets at once");
    }
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    server.http2().timer(TokioTimer::new()).keep_alive_interval(HEAD);
    let service = service_fn(move |request| {
        let proxy = proxy.clone();
        async move { proxy.answer(client, request).await }
    });
    let ended = server.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}
