//! The API of a local cluster: its store, its keys and its port, and who acts upon its objects.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    net::{Ipv4Addr, SocketAddr},
    panic,
    path::Path,
    sync::Arc,
};

use anyhow::{Context, anyhow};
use jiff::Timestamp;
use kube::config::Kubeconfig;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_rustls::rustls::ServerConfig;
use windlass_local::{
    auth::{Certificates, Tokens, kubeconfig},
    controllers::{self, Caches},
    http::{Access, Listener, Server, serve},
    node::usage::Meter,
    registry::{Registry, Settings, tend},
    store::{self, Store},
};

use super::{home::Home, node};

/// What the user may choose.
pub(super) struct Wanted {
    pub(super) port: Option<u16>,
    /// Whoever is known may do everything.
    pub(super) allows_everything: bool,
    /// Whether what pods ask for counts against what the machine has.
    pub(super) strict_resources: bool,
}

pub(super) struct Api {
    pub(super) server: Arc<Server>,
    pub(super) url: String,
    pub(super) address: SocketAddr,
    /// With the certificate of this machine.
    pub(super) tls: Arc<ServerConfig>,
    /// What the controllers know of the cluster.
    pub(super) caches: Arc<Caches>,
    /// Ends only by failing.
    pub(super) serving: JoinHandle<anyhow::Result<()>>,
}

pub(super) fn open_store(home: &Home) -> anyhow::Result<Store> {
    let clock: store::Clock = Arc::new(Timestamp::now);
    if home.is_ephemeral() {
        return Store::in_memory(clock).context("cannot make a store");
    }
    let advice = "nothing in it was changed: use the program that wrote it, move it away, or \
                  choose another --dir";
    // A damaged file can make the store panic inside; the error that comes of it says enough.
    let usual = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let opened = Store::open(&home.store(), clock);
    panic::set_hook(usual);
    opened.map_err(|error| match error {
        error @ store::Error::InUse { .. } => error.into(),
        error => anyhow!("{:#}; {advice}", anyhow::Error::new(error)),
    })
}

impl Api {
    /// Serves from now on, and is known to kubectl by its kubeconfig.
    pub(super) async fn start(home: &Home, store: Store, wanted: &Wanted) -> anyhow::Result<Self> {
        let dir = home.path();
        let socket = listen(wanted.port, home).await?;
        let address = socket.local_addr()?;
        let port = address.port();
        let certificates = Certificates::load_or_create(dir, Timestamp::now())?;
        let tokens = Tokens::load_or_create(dir)?;
        let settings = Settings {
            root_certificate: certificates.authority.clone(),
            port: Some(port),
            allows_everything: wanted.allows_everything,
        };
        let listener = Listener::new(socket, &certificates).context("cannot set up TLS")?;
        let registry = Registry::start(store, settings).await.context("cannot start the API")?;
        let url = format!("https://127.0.0.1:{port}");
        kubeconfig::write(&home.kubeconfig(), &url, &certificates.authority, tokens.admin())?;
        let server = Server::new(registry.clone(), Access { tokens: Some(tokens) });
        tokio::spawn(tend(registry));
        let settings = controllers::Settings {
            usage: Some(Arc::new(Meter::new(node::places(home)))),
            volumes: Some(dir.join("volumes")),
            strict_resources: wanted.strict_resources,
            ..controllers::Settings::default()
        };
        let caches = Arc::new(Caches::default());
        tokio::spawn(controllers::run_on(caches.clone(), server.clone(), settings));
        let tls = listener.tls.clone();
        let serving = serve(server.clone(), listener);
        let serving = tokio::spawn(async { serving.await.context("cannot go on serving") });
        Ok(Self { server, url, address, tls, caches, serving })
    }
}

/// On the port that is asked for, or else on the one that clients know from the last time.
async fn listen(wanted: Option<u16>, home: &Home) -> anyhow::Result<TcpListener> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    if let Some(port) = wanted {
        return bind(port)
            .await
            .with_context(|| format!("cannot listen on 127.0.0.1:{port} (--port)"));
    }
    for port in last_port(&home.kubeconfig()).into_iter().chain(usual_ports(home.path())) {
        if let Ok(listener) = bind(port).await {
            return Ok(listener);
        }
    }
    bind(0).await.context("cannot listen on 127.0.0.1")
}

/// The ports for a directory, below those that the system gives to whoever asks for any: one of these
/// would sooner or later be somebody else's when the cluster comes back.
fn usual_ports(dir: &Path) -> impl Iterator<Item = u16> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    const TRIES: u16 = 16;
    let mut hasher = DefaultHasher::new();
    dir.hash(&mut hasher);
    let start = (hasher.finish() % u64::from(COUNT)) as u16;
    (0..TRIES).map(move |tried| FIRST + (start + tried) % COUNT)
}

fn last_port(kubeconfig: &Path) -> Option<u16> {
    let known = Kubeconfig::read_from(kubeconfig).ok()?;
    let cluster = known.clusters.into_iter().next()?.cluster?;
    let url: http::Uri = cluster.server?.parse().ok()?;
    url.port_u16()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_its_own_ports_which_outgoing_connections_do_not_get() {
        let ports = |dir: &str| usual_ports(Path::new(dir)).collect::<Vec<_>>();
        assert_eq!(ports("/a"), ports("/a"));
        assert_ne!(ports("/a"), ports("/b"));
        for port in ports("/a") {
            assert!((20_000..32_768).contains(&port), "{port}");
        }
    }
}
