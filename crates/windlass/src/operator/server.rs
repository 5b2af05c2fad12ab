//! `/healthz`, `/readyz` and `/metrics`.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use anyhow::Context;
use axum::{Router, extract::State, http::StatusCode, routing::get};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::exit::BadInput;

type Check = Box<dyn Fn() -> bool + Send + Sync>;

/// Whether the operator could act; unknown until the caches exist.
#[derive(Clone, Default)]
pub(super) struct Readiness(Arc<OnceLock<Check>>);

impl Readiness {
    pub(super) fn set(&self, check: impl Fn() -> bool + Send + Sync + 'static) {
        // Set once, at start.
        let _ = self.0.set(Box::new(check));
    }

    fn is_ready(&self) -> bool {
        self.0.get().is_some_and(|check| check())
    }
}

pub(super) async fn serve_probes(address: &str, readiness: Readiness) -> anyhow::Result<()> {
    let ready = |State(readiness): State<Readiness>| async move {
        if readiness.is_ready() {
            (StatusCode::OK, "ok")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "caches are not filled yet")
        }
    };
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .with_state(readiness);
    serve("probes", "--health-probe-bind-address", address, router).await
}

pub(super) async fn serve_metrics(address: &str, registry: Registry) -> anyhow::Result<()> {
    let metrics = |State(registry): State<Arc<Registry>>| async move {
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &registry) {
            Ok(()) => (StatusCode::OK, text),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    };
    let router = Router::new().route("/metrics", get(metrics)).with_state(Arc::new(registry));
    serve("metrics", "--metrics-bind-address", address, router).await
}

async fn serve(
    what: &'static str,
    flag: &str,
    address: &str,
    router: Router,
) -> anyhow::Result<()> {
    let Some(address) = parse(flag, address)? else { return Ok(()) };
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} for {what} ({flag})"))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "serving {what}");
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, what, "server ended");
        }
    });
    Ok(())
}

/// `host:port`, `:port` for all interfaces, `0` for none, as the Go originals have it.
fn parse(flag: &str, address: &str) -> Result<Option<SocketAddr>, BadInput> {
    if address == "0" || address.is_empty() {
        return Ok(None);
    }
    let full = match address.strip_prefix(':') {
        Some(port) => format!("0.0.0.0:{port}"),
        None => address.to_owned(),
    };
    full.parse()
        .map(Some)
        .map_err(|_| BadInput(format!("{flag} must be HOST:PORT, :PORT or 0, got {address:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_in_go() {
        for (given, want) in [
            ("0", Some(None)),
            (":8081", Some(Some("0.0.0.0:8081"))),
            ("127.0.0.1:0", Some(Some("127.0.0.1:0"))),
            ("[::1]:80", Some(Some("[::1]:80"))),
            ("nonsense", None),
            (":port", None),
        ] {
            let got = parse("--x", given).ok().map(|a| a.map(|a| a.to_string()));
            assert_eq!(got, want.map(|w| w.map(str::to_owned)), "{given}");
        }
    }
}
