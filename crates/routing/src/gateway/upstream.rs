//! Connections to endpoints, kept open for the next request where that is possible.

use std::{
    collections::{HashMap, HashSet},
    error::Error as _,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use hyper::{
    body::{Body as _, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    time::{self, sleep, timeout_at},
};

use super::stream::{self, Body};

/// Endpoints are on this machine or near it.
const CONNECT: Duration = Duration::from_secs(5);
/// Of one endpoint.
const IDLE: usize = 32;
/// Python servers close what is idle after five seconds: whoever writes at that moment loses.
const IDLE_FOR: Duration = Duration::from_secs(4);
const SWEEP: Duration = Duration::from_secs(1);

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
    #[error("{endpoint} has not answered in time")]
    TooLate { endpoint: SocketAddr },
}

#[derive(Default)]
pub struct Upstream {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// To others nothing is kept.
    endpoints: HashSet<SocketAddr>,
    idle: HashMap<SocketAddr, Vec<Idle>>,
    /// Whether somebody closes what is idle for too long.
    is_swept: bool,
}

struct Idle {
    sender: SendRequest<Body>,
    since: time::Instant,
}

impl Idle {
    fn is_fresh(&self) -> bool {
        !self.sender.is_closed() && self.since.elapsed() < IDLE_FOR
    }
}

/// A connection that goes back to the others when its answer has ended.
pub struct Lease {
    endpoint: SocketAddr,
    sender: SendRequest<Body>,
}

impl Upstream {
    /// Sends a request. A connection that the endpoint has closed meanwhile costs nothing: what was not
    /// sent, or does no harm twice, goes out on a new one.
    pub async fn send(
        &self,
        endpoint: SocketAddr,
        mut request: http::Request<Body>,
        deadline: Option<Instant>,
    ) -> Result<(http::Response<Incoming>, Lease), Failed> {
        let too_late = || Failed::TooLate { endpoint };
        while let Some(mut sender) = self.take(endpoint) {
            let again = repeated(&request);
            let sent = within(deadline, sender.try_send_request(request)).await;
            let mut error = match sent.ok_or_else(too_late)? {
                Ok(response) => return Ok((response, Lease { endpoint, sender })),
                Err(error) => error,
            };
            let unsent = error.take_message();
            let source = error.into_error();
            request = match unsent.or_else(|| again.filter(|_| broke_off(&source))) {
                Some(request) => request,
                None => return Err(Failed::Send { endpoint, source }),
            };
        }
        let stream = match connect(endpoint, deadline).await {
            Ok(stream) => stream,
            Err(source) => {
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
        let sent = within(deadline, sender.send_request(request)).await;
        let response = sent.ok_or_else(too_late)?.map_err(failed)?;
        Ok((response, Lease { endpoint, sender }))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, endpoint: SocketAddr) -> Option<SendRequest<Body>> {
        let mut kept = self.kept();
        let known = kept.idle.get_mut(&endpoint)?;
        loop {
            match known.pop() {
                Some(idle) if idle.is_fresh() && idle.sender.is_ready() => {
                    return Some(idle.sender);
                }
                Some(_) => {}
                None => {
                    kept.idle.remove(&endpoint);
                    return None;
                }
            }
        }
    }

    /// Once the answer has been read to its end.
    pub fn give_back(self: &Arc<Self>, lease: Lease) {
        let Lease { endpoint, mut sender } = lease;
        if sender.is_ready() {
            return self.keep(endpoint, sender);
        }
        // The end was seen here before the connection has noticed it itself.
        let upstream = self.clone();
        tokio::spawn(async move {
            if sender.ready().await.is_ok() {
                upstream.keep(endpoint, sender);
            }
        });
    }

    fn keep(self: &Arc<Self>, endpoint: SocketAddr, sender: SendRequest<Body>) {
        let mut kept = self.kept();
        if !kept.endpoints.contains(&endpoint) {
            return;
        }
        let known = kept.idle.entry(endpoint).or_default();
        if known.len() < IDLE {
            known.push(Idle { sender, since: time::Instant::now() });
        }
        if !kept.is_swept {
            kept.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Forgets endpoints that are no longer there.
    pub fn serve_only(&self, endpoints: HashSet<SocketAddr>) {
        let mut kept = self.kept();
        kept.idle.retain(|endpoint, _| endpoints.contains(endpoint));
        kept.endpoints = endpoints;
    }
}

/// Closes what nobody uses, until there is nothing more.
async fn sweep(upstream: Weak<Upstream>) {
    loop {
        sleep(SWEEP).await;
        let Some(upstream) = upstream.upgrade() else { return };
        let mut kept = upstream.kept();
        kept.idle.retain(|_, known| {
            known.retain(Idle::is_fresh);
            !known.is_empty()
        });
        if kept.idle.is_empty() {
            kept.is_swept = false;
            return;
        }
    }
}

/// One that fails takes no more of the time than it has.
async fn connect(endpoint: SocketAddr, deadline: Option<Instant>) -> io::Result<TcpStream> {
    let usual = Instant::now().checked_add(CONNECT);
    let first = usual.into_iter().chain(deadline).min();
    let connected = within(first, TcpStream::connect(endpoint)).await;
    connected.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
}

/// `None` if it took too long.
async fn within<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(at) => timeout_at(at.into(), work).await.ok(),
        None => Some(work.await),
    }
}

/// The same once more, if that does no harm and nothing of it is used up.
fn repeated(request: &http::Request<Body>) -> Option<http::Request<Body>> {
    if !request.method().is_idempotent() || !request.body().is_end_stream() {
        return None;
    }
    let mut again = http::Request::new(stream::text(""));
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    *again.version_mut() = request.version();
    *again.headers_mut() = request.headers().clone();
    Some(again)
}

/// Whether the connection ended instead of an answer.
fn broke_off(error: &hyper::Error) -> bool {
    error.is_incomplete_message()
        || error.is_canceled()
        || error.is_closed()
        || error.source().is_some_and(|source| source.is::<io::Error>())
}

#[cfg(test)]
mod tests;
