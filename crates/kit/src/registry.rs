//! A registry for one machine: what OCI clients push, on a disk, for whoever may reach it.
//!
//! `route` (what is asked for) → `blobs`, `uploads`, `manifests` (each its part of the protocol) →
//! `disk` (files that are whole or not there). `sweep` removes what nothing leads to any more.

use std::{
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

mod auth;
mod blobs;
mod disk;
mod error;
mod guard;
mod listing;
mod manifests;
mod range;
mod route;
mod sweep;
mod uploads;

pub use auth::Account;
pub use sweep::Swept;

use disk::Disk;
use error::Refused;
use route::{Query, Target};
use uploads::Uploads;

#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub root: PathBuf,
    /// Who may ask; without one everybody.
    pub account: Option<Account>,
    pub read_only: bool,
    /// Nobody but the clients of this machine is answered.
    pub only_here: bool,
}

/// Everything it serves; cheap to share.
pub struct Registry {
    disk: Arc<Disk>,
    uploads: Arc<Uploads>,
    account: Option<Account>,
    read_only: bool,
    only_here: bool,
}

impl Registry {
    pub fn open(settings: Settings) -> io::Result<Arc<Self>> {
        let Settings { root, account, read_only, only_here } = settings;
        let disk = Arc::new(Disk::open(root)?);
        let uploads = Arc::new(Uploads::open(disk.uploads()));
        Ok(Arc::new(Self { disk, uploads, account, read_only, only_here }))
    }

    pub fn router(self: &Arc<Self>) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }

    /// Removes blobs that nothing leads to and that are as old as this: younger ones may belong to a
    /// push that is under way. With `dry_run` it only tells.
    pub async fn sweep(&self, now: SystemTime, age: Duration, dry_run: bool) -> io::Result<Swept> {
        sweep::run(&self.disk, &self.uploads, now, age, dry_run).await
    }

    async fn serve(&self, request: Request) -> Result<Response, Refused> {
        if self.only_here {
            guard::check(request.uri(), request.headers())?;
        }
        auth::check(self.account.as_ref(), request.headers())?;
        let (parts, body) = request.into_parts();
        let (method, query) = (&parts.method, Query::parse(parts.uri.query().unwrap_or_default()));
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        if self.read_only && !is_read {
            return Err(Refused::read_only());
        }
        match (method, route::parse(parts.uri.path())?) {
            (&Method::GET | &Method::HEAD, Target::Base) => Ok(empty(StatusCode::OK)),
            (&Method::GET, Target::Catalog) => listing::catalog(&self.disk, &query).await,
            (&Method::GET, Target::Tags { name }) => listing::tags(&self.disk, &name, &query).await,
            (&Method::GET, Target::Referrers { name, digest }) => {
                listing::referrers(&self.disk, &name, &digest, &query).await
            }
            (&Method::GET | &Method::HEAD, Target::Blob { digest, .. }) => {
                blobs::get(&self.disk, method, &digest, &parts.headers).await
            }
            (&Method::DELETE, Target::Blob { digest, .. }) => {
                blobs::delete(&self.disk, &digest).await
            }
            (&Method::POST, Target::Uploads { name }) => {
                uploads::start(&self.disk, &self.uploads, &name, &query, body).await
            }
            (&Method::GET, Target::Upload { name, id }) => {
                uploads::state(&self.uploads, &name, &id).await
            }
            (&Method::PATCH, Target::Upload { name, id }) => {
                uploads::append(&self.uploads, &name, &id, &parts.headers, body).await
            }
            (&Method::PUT, Target::Upload { name, id }) => {
                let asked = uploads::Finish { query: &query, headers: &parts.headers };
                uploads::finish(&self.disk, &self.uploads, &name, &id, asked, body).await
            }
            (&Method::DELETE, Target::Upload { id, .. }) => {
                uploads::cancel(&self.uploads, &id).await
            }
            (&Method::GET | &Method::HEAD, Target::Manifest { name, reference }) => {
                manifests::get(&self.disk, method, &name, &reference).await
            }
            (&Method::PUT, Target::Manifest { name, reference }) => {
                manifests::put(&self.disk, &name, &reference, &parts.headers, body).await
            }
            (&Method::DELETE, Target::Manifest { name, reference }) => {
                manifests::delete(&self.disk, &name, &reference).await
            }
            _ => Err(Refused::method()),
        }
    }
}

async fn answer(State(registry): State<Arc<Registry>>, request: Request) -> Response {
    let mut response = registry.serve(request).await.unwrap_or_else(Refused::into_response);
    let version = HeaderValue::from_static("registry/2.0");
    response.headers_mut().insert("docker-distribution-api-version", version);
    response
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(0));
    response
}

/// What has no place in a header is left out.
fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests;
