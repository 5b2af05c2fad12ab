//! `/healthz`, `/readyz` and `/metrics`.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, OnceLock},
};

use anyhow::Context;
use axum::{Router, extract::State, http::StatusCode, middleware, routing::get};
use clap::{ArgAction, Args};
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use super::{
    access::{self, Access},
    tls::{self, Certificate, Files},
};
use crate::exit::BadInput;

/// How the metrics are served, with the names and defaults of the Go originals.
#[derive(Debug, Clone, Args)]
#[group(id = "metrics")]
pub(super) struct MetricsFlags {
    /// Address for /metrics; 0 for none
    #[arg(
        long = "metrics-bind-address",
        env = "WINDLASS_METRICS_BIND_ADDRESS",
        default_value = "0"
    )]
    address: String,
    /// Serve the metrics over HTTPS, to those who may `get` /metrics
    #[arg(
        long = "metrics-secure", env = "WINDLASS_METRICS_SECURE", num_args = 0..=1,
        require_equals = true, default_missing_value = "true", default_value_t = true,
        action = ArgAction::Set
    )]
    secure: bool,
    /// Directory of the certificate for that; one of the operator's own making if empty
    #[arg(
        long = "metrics-cert-path",
        env = "WINDLASS_METRICS_CERT_PATH",
        value_name = "DIRECTORY",
        default_value = "",
        hide_default_value = true
    )]
    cert_path: String,
    /// File of the certificate in it
    #[arg(
        long = "metrics-cert-name",
        env = "WINDLASS_METRICS_CERT_NAME",
        value_name = "FILE",
        default_value = "tls.crt"
    )]
    cert_name: String,
    /// File of its key
    #[arg(
        long = "metrics-cert-key",
        env = "WINDLASS_METRICS_CERT_KEY",
        value_name = "FILE",
        default_value = "tls.key"
    )]
    cert_key: String,
    /// Offer HTTP/2 too, on the metrics over HTTPS
    #[arg(
        long, env = "WINDLASS_ENABLE_HTTP2", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = false, action = ArgAction::Set
    )]
    enable_http2: bool,
}

impl MetricsFlags {
    fn certificate(&self) -> anyhow::Result<Arc<Certificate>> {
        if self.cert_path.is_empty() {
            return Certificate::self_signed();
        }
        let folder = Path::new(&self.cert_path);
        let files = Files { chain: folder.join(&self.cert_name), key: folder.join(&self.cert_key) };
        let certificate = Certificate::read(&files)?;
        tokio::spawn(certificate.clone().follow(files));
        Ok(certificate)
    }
}

/// What the controllers say of themselves.
pub(super) trait Vitals: Send + Sync {
    /// Nothing has ended that should run for ever.
    fn is_alive(&self) -> bool;
    /// The caches are filled, so that the operator could act.
    fn is_ready(&self) -> bool;
    /// Kinds that the API does not serve, and that the operator does without as long as that is so.
    fn missing(&self) -> Vec<String>;
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
        answer(vitals.get().is_none_or(|vitals| vitals.is_alive()), "a watch has ended", &[])
    };
    let ready = |State(Pulse(vitals)): State<Pulse>| async move {
        let missing = vitals.get().map(|vitals| vitals.missing()).unwrap_or_default();
        let ready = vitals.get().is_some_and(|vitals| vitals.is_ready());
        answer(ready, "caches are not filled yet", &missing)
    };
    let router =
        Router::new().route("/healthz", get(health)).route("/readyz", get(ready)).with_state(pulse);
    serve("probes", "--health-probe-bind-address", address, router).await
}

/// Who reads more than the code also learns what is missing; it is no reason to be unready, as it may
/// never come.
fn answer(good: bool, otherwise: &str, missing: &[String]) -> (StatusCode, String) {
    let (code, word) =
        if good { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, otherwise) };
    match missing {
        [] => (code, word.to_owned()),
        missing => (code, format!("{word}\nnot served by the API: {}", missing.join(", "))),
    }
}

pub(super) async fn serve_metrics(
    flags: &MetricsFlags,
    registry: Registry,
    client: Client,
) -> anyhow::Result<()> {
    let metrics = |State(registry): State<Arc<Registry>>| async move {
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &registry) {
            Ok(()) => (StatusCode::OK, text),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    };
    let router = Router::new().route("/metrics", get(metrics)).with_state(Arc::new(registry));
    let (what, flag) = ("metrics", "--metrics-bind-address");
    if !flags.secure {
        return serve(what, flag, &flags.address, router).await;
    }
    let Some(listener) = listen(what, flag, &flags.address).await? else { return Ok(()) };
    let guard = middleware::from_fn_with_state(Arc::new(Access::new(client)), access::guard);
    let config = tls::config(flags.certificate()?, flags.enable_http2)?;
    tokio::spawn(tls::serve(listener, config, router.layer(guard)));
    Ok(())
}

async fn serve(
    what: &'static str,
    flag: &str,
    address: &str,
    router: Router,
) -> anyhow::Result<()> {
    let Some(listener) = listen(what, flag, address).await? else { return Ok(()) };
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, what, "server ended");
        }
    });
    Ok(())
}

async fn listen(
    what: &'static str,
    flag: &str,
    address: &str,
) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = parse(flag, address)? else { return Ok(None) };
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} for {what} ({flag})"))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "serving {what}");
    Ok(Some(listener))
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
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        metrics: MetricsFlags,
    }

    #[test]
    fn w30_readiness_tells_which_apis_are_missing() {
        let missing = ["HTTPRoute of gateway.networking.k8s.io/v1".to_owned()];
        let told = "not served by the API: HTTPRoute of gateway.networking.k8s.io/v1";
        assert_eq!(answer(true, "no", &missing), (StatusCode::OK, format!("ok\n{told}")));
        assert_eq!(answer(true, "no", &[]), (StatusCode::OK, "ok".to_owned()));
        let unready = (StatusCode::SERVICE_UNAVAILABLE, format!("no\n{told}"));
        assert_eq!(answer(false, "no", &missing), unready);
    }

    #[test]
    fn metrics_are_protected_unless_told_otherwise() {
        for (given, want) in [
            (&["x"][..], true),
            (&["x", "--metrics-secure"], true),
            (&["x", "--metrics-secure=false"], false),
        ] {
            let Command { metrics } = Command::parse_from(given);
            assert_eq!((metrics.secure, metrics.enable_http2), (want, false), "{given:?}");
        }
    }

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
