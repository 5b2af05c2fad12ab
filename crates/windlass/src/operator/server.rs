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

/// What the controllers say of themselves.
pub(super) trait Vitals: Send + Sync {
    /// Nothing has ended that should run for ever.
    fn is_alive(&self) -> bool;
    /// The caches are filled, so that the operator could act.
    fn is_ready(&self) -> bool;
}

/// Unknown until there are controllers: alive, but not ready.
#[derive(Clone, Default)]
pub(super) struct Pulse(Arc<OnceLock<Box<dyn Vitals>>>);

impl Pulse {
    pub(super) fn of(&self, vitals: impl Vitals + 'static) {
        // Set once, at start.
        let _ = self.0.set(Box::new(vitals));
    }
}

pub(super) async fn serve_probes(address: &str, pulse: Pulse) -> anyhow::Result<()> {
    let health = |State(Pulse(vitals)): State<Pulse>| async move {
        answer(vitals.get().is_none_or(|vitals| vitals.is_alive()), "a watch has ended")
    };
    let ready = |State(Pulse(vitals)): State<Pulse>| async move {
        answer(vitals.get().is_some_and(|vitals| vitals.is_ready()), "caches are not filled yet")
    };
    let router =
        Router::new().route("/healthz", get(health)).route("/readyz", get(ready)).with_state(pulse);
    serve("probes", "--health-probe-bind-address", address, router).await
}

fn answer(good: bool, otherwise: &'static str) -> (StatusCode, &'static str) {
    if good { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, otherwise) }
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
