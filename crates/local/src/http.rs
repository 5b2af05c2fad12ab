//! The router: requests to calls of the registry, answers to bytes.

mod access;
mod answer;
mod body;
#[doc(hidden)]
pub mod fuzzing;
mod handle;
mod logs;
mod negotiate;
mod other;
mod path;
mod plain;
mod query;
mod serve;
mod stalled;
mod status;
mod stream;
mod unread;
mod watches;

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
};

use axum::{
    Extension, Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};

use futures::FutureExt;

use access::Identity;
use answer::json;
use handle::Asked;
use path::Path;
use query::Query;
use watches::Watches;

pub use logs::{LogOptions, LogRun, LogStream, Logs};
pub use serve::{Listener, serve, serve_within};
pub use status::status;

use crate::{
    auth::{Tokens, User},
    error::Error,
    registry::Registry,
};

/// The API, to be asked over the network or in the process.
pub struct Server {
    registry: Arc<Registry>,
    /// Without them nobody is let in from the network.
    tokens: Option<Arc<Tokens>>,
    watches: Watches,
    logs: OnceLock<Arc<dyn Logs>>,
    figures: OnceLock<Figures>,
}

/// What others of this process count, in the text form of Prometheus.
type Figures = Box<dyn Fn() -> String + Send + Sync>;

pub use access::Access;

impl Server {
    pub fn new(registry: Arc<Registry>, access: Access) -> Arc<Self> {
        let tokens = access.tokens.map(Arc::new);
        if let Some(tokens) = &tokens {
            registry.issue_with(tokens.clone());
        }
        Arc::new(Self {
            registry,
            tokens,
            watches: Watches::default(),
            logs: OnceLock::new(),
            figures: OnceLock::new(),
        })
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// These are shown among the metrics from now on; only the first who asks for it is heard.
    pub fn show_figures(&self, figures: impl Fn() -> String + Send + Sync + 'static) {
        let _ = self.figures.set(Box::new(figures));
    }

    /// For the network: every request has to prove who asks.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new().fallback(respond).with_state(self.clone())
    }

    /// For clients in this process, which ask as `user`.
    pub fn service(self: &Arc<Self>, user: User) -> Router {
        self.router().layer(Extension(Identity(user)))
    }
}

async fn respond(State(server): State<Arc<Server>>, request: Request) -> Response {
    // A mistake in answering one request must not reach the next one's client.
    let answered = AssertUnwindSafe(route(&server, request)).catch_unwind().await;
    answer::or_error(answered.unwrap_or_else(|_| {
        tracing::error!("an answer failed inside");
        Err(Error::Internal)
    }))
}

async fn route(server: &Arc<Server>, request: Request<Body>) -> Result<Response, Error> {
    let (parts, body) = request.into_parts();
    let path = path::parse(parts.uri.path());
    let query = Query::parse(parts.uri.query());
    let user = server.authenticate(&parts)?;
    server.authorise(&user, &parts, &path, &query)?;
    let asked = Asked { server, parts: &parts, query, user };
    match path {
        Path::Resource(resource) => handle::resource(asked, resource, body).await,
        path => plain::document(asked, path),
    }
}
