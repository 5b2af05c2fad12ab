//! The router: requests to calls of the registry, answers to bytes.

mod access;
mod answer;
mod body;
mod handle;
mod negotiate;
mod other;
mod path;
mod plain;
mod query;
mod serve;
mod status;
mod stream;
mod watches;

use std::{panic::AssertUnwindSafe, sync::Arc};

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
    access: access::Access,
    watches: Watches,
}

pub use access::Access;

impl Server {
    pub fn new(registry: Arc<Registry>, access: Access) -> Arc<Self> {
        Arc::new(Self { registry, access, watches: Watches::default() })
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// What tokens of accounts are made with, if anybody is let in by them.
    pub fn tokens(&self) -> Option<&Tokens> {
        self.access.tokens.as_ref()
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
