//! Connections to endpoints, kept open for the next request where that is possible.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};

use super::stream::Body;

/// Endpoints are on this machine or near it.
const CONNECT: Duration = Duration::from_secs(5);
/// Of one endpoint.
const IDLE: usize = 32;

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Nothing of the request has been sent.
    #[error("cannot connect to {endpoint}")]
    Connect {
        endpoint: SocketAddr,
        source: io::Error,
        /// To be sent to somebody else.
        request: Box<http::Request<Body>>,
    },
    #[error("{endpoint} has not answered")]
    Send { endpoint: SocketAddr, source: hyper::Error },
}

#[derive(Default)]
pub struct Upstream {
    idle: Mutex<HashMap<SocketAddr, Vec<SendRequest<Body>>>>,
}

/// A connection that goes back to the others when its answer has ended.
pub struct Lease {
    endpoint: SocketAddr,
    sender: SendRequest<Body>,
}

impl Upstream {
    /// Sends a request. A connection that the endpoint has closed meanwhile costs nothing: what was not
    /// sent goes out on a new one.
    pub async fn send(
        &self,
        endpoint: SocketAddr,
        mut request: http::Request<Body>,
    ) -> Result<(http::Response<Incoming>, Lease), Failed> {
        while let Some(mut sender) = self.take(endpoint) {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, Lease { endpoint, sender })),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(Failed::Send { endpoint, source: error.into_error() }),
                },
            }
        }
        let stream = match timeout(CONNECT, TcpStream::connect(endpoint)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(source)) => {
                return Err(Failed::Connect { endpoint, source, request: Box::new(request) });
            }
            Err(_) => {
                let source = io::Error::from(io::ErrorKind::TimedOut);
                return Err(Failed::Connect { endpoint, source, request: Box::new(request) });
            }
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot send small packets at once");
        }
        let failed = |source| Failed::Send { endpoint, source };
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, %endpoint, "connection ended early");
            }
        });
        let response = sender.send_request(request).await.map_err(failed)?;
        Ok((response, Lease { endpoint, sender }))
    }

    fn take(&self, endpoint: SocketAddr) -> Option<SendRequest<Body>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let known = idle.get_mut(&endpoint)?;
        loop {
            match known.pop() {
                Some(sender) if sender.is_ready() => return Some(sender),
                Some(_) => {}
                None => {
                    idle.remove(&endpoint);
                    return None;
                }
            }
        }
    }

    /// Once the answer has been read to its end.
    pub fn give_back(&self, lease: Lease) {
        let Lease { endpoint, sender } = lease;
        if sender.is_closed() {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let known = idle.entry(endpoint).or_default();
        if known.len() < IDLE {
            known.push(sender);
        }
    }

    /// Forgets endpoints that are no longer there.
    pub fn retain(&self, is_there: impl Fn(&SocketAddr) -> bool) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|endpoint, _| is_there(endpoint));
    }
}
