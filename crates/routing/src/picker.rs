//! The decision.
//!
//! It does no I/O and takes the time from its caller.

use std::{
    net::SocketAddr,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::{body::Body, config::Config, endpoint::Endpoint};

#[derive(Clone, Debug)]
pub struct Settings {
    /// Restores the odd manners of the Go picker that clients may have come to expect.
    pub go_compat: bool,
    /// For decisions that can be repeated. Otherwise the system gives one.
    pub seed: Option<u64>,
    /// Whether [`Request::subset`] is honoured.
    pub subset: bool,
    /// How often the figures are read while requests flow.
    pub refresh: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { go_compat: false, seed: None, subset: true, refresh: Duration::from_millis(50) }
    }
}

/// The picker of one pool. A clone is the same picker.
#[derive(Clone)]
pub struct Picker(Arc<Inner>);

struct Inner {
    _config: Config,
    _settings: Settings,
}

/// A request as the picker sees it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub path: &'a str,
    pub headers: &'a HeaderMap,
    /// `None` if the request ended with its headers.
    pub body: Option<&'a Body>,
    /// The only addresses (`ip:port`) to choose from. `None`: the whole pool.
    pub subset: Option<&'a [String]>,
    pub now: Instant,
}

/// Where the request goes.
pub struct Picked {
    /// Never empty; the best first, the rest are for retries.
    pub destinations: Vec<SocketAddr>,
    /// For the request to the endpoint, overwriting what the client sent.
    pub set_headers: Vec<(HeaderName, HeaderValue)>,
    /// Headers of the client that must not go on.
    pub remove_headers: Vec<HeaderName>,
    /// The model name goes to the engine under another name.
    pub model_edit: Option<ModelEdit>,
    /// To be kept until the answer has ended.
    pub open: Open,
}

/// Bytes of the body to replace. `Content-Length` in `set_headers` is already the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEdit {
    pub range: Range<usize>,
    pub text: Bytes,
}

/// A request that was sent to an endpoint. Dropping it counts as [`Cause::Aborted`].
pub struct Open {
    _picker: Picker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Completed,
    /// The client has gone, or the endpoint failed.
    Aborted,
}

impl Open {
    /// The endpoint that answers, when it is not the first of the list.
    pub fn served_by(&mut self, _endpoint: SocketAddr) {}

    /// The headers of the answer have come. Returns those to set for the client.
    pub fn on_headers(
        &mut self,
        _status: StatusCode,
        _headers: &HeaderMap,
        _now: Instant,
    ) -> Vec<(HeaderName, HeaderValue)> {
        Vec::new()
    }

    /// A chunk of the answer. It only looks for figures of use.
    pub fn on_chunk(&mut self, _chunk: &[u8], _now: Instant) {}

    pub fn done(self, _cause: Cause, _now: Instant) {}
}

/// The request cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("inference gateway: {code} - {message}")]
pub struct Refused {
    pub status: StatusCode,
    /// `BadRequest`, `ServiceUnavailable`, `InferencePoolResourceExhausted` or `Internal`.
    pub code: &'static str,
    pub message: String,
    /// For the header `x-llm-d-request-dropped-reason`.
    pub dropped: Option<&'static str>,
}

impl Refused {
    /// As text/plain for the client.
    pub fn body(&self) -> String {
        self.to_string()
    }
}

impl Picker {
    pub fn new(config: Config, settings: Settings) -> Self {
        Self(Arc::new(Inner { _config: config, _settings: settings }))
    }

    /// The ready endpoints of the pool, all of them. Those that stay keep their figures.
    pub fn set_endpoints(&self, _endpoints: Vec<Endpoint>) {}

    pub fn pick(&self, _request: &Request<'_>) -> Result<Picked, Refused> {
        Err(Refused {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: "ServiceUnavailable",
            message: "failed to find candidate pods for serving the request".into(),
            dropped: Some("rejected-no-endpoints"),
        })
    }
}
