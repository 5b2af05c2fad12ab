//! The gateway of a local cluster: requests from this machine to the pods behind HTTPRoutes.
//!
//! `follow` keeps what is known of routes and gateways; what the controllers know of pods and Services
//! is theirs and shared. Each change leads to a new table, made by `windlass_routing`, which takes the
//! place of the old one as a whole.

mod around;
mod follow;
mod pools;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::{ArgAction, Args};
use futures::FutureExt;
use kube::Client;
use tokio::{
    net::TcpListener,
    sync::{Notify, oneshot, watch},
    task::JoinSet,
    time::sleep,
};
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use windlass_local::{
    auth::{MASTERS, User},
    controllers::Caches,
    http::Server,
};
use windlass_routing::gateway::{
    Proxy,
    assemble::{self, Settings},
    listed::{Kind, Listed},
    listen,
    status::{Change, changes},
};

use pools::Pools;

const PORTS: RangeInclusive<u16> = 8080..=8099;
/// Where `windlass operator` answers probes: the two may run side by side.
const PROBES: u16 = 8081;
const ACCOUNT: &str = "windlass-gateway";
/// Changes come in swarms; the first is heeded at once, the others together.
const PAUSE: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, Args)]
#[group(id = "gateway")]
pub(super) struct Flags {
    /// Port of the gateway on 127.0.0.1; if not given, 8080 or the next free one
    #[arg(long, value_name = "PORT")]
    gateway_port: Option<u16>,
    /// Serve the HTTPRoutes of any Gateway, even of one that is missing
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = true, action = ArgAction::Set
    )]
    gateway_accept_any: bool,
    /// Serve HTTPS, with a certificate of the cluster's own authority
    #[arg(long)]
    gateway_tls: bool,
}

/// A port that nobody is answered on yet.
pub(super) struct Gateway {
    socket: TcpListener,
    settings: Settings,
    is_usual: bool,
    has_tls: bool,
}

/// What watches have brought.
#[derive(Default)]
struct Known {
    listed: Mutex<Listed>,
    /// Of the kinds that are watched.
    versions: Mutex<BTreeMap<Kind, &'static str>>,
    coming: Mutex<Coming>,
    changed: Notify,
}

/// What has to come before anything can be said of what is missing.
#[derive(Default)]
struct Coming {
    /// Whether it is known which kinds are defined.
    definitions_known: bool,
    /// Kinds whose objects have not all come yet.
    lists: BTreeSet<Kind>,
}

impl Known {
    fn coming(&self) -> MutexGuard<'_, Coming> {
        self.coming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(&self, kind: Kind) {
        self.coming().lists.insert(kind);
    }

    /// All objects of the kind have come, or none can be had.
    fn came(&self, kind: Kind) {
        self.coming().lists.remove(&kind);
        self.changed.notify_one();
    }

    fn know_definitions(&self) {
        self.coming().definitions_known = true;
        self.changed.notify_one();
    }

    fn is_complete(&self) -> bool {
        let coming = self.coming();
        coming.definitions_known && coming.lists.is_empty()
    }

    fn listed(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Listed)) {
        change(&mut self.listed());
        self.changed.notify_one();
    }

    fn versions(&self) -> MutexGuard<'_, BTreeMap<Kind, &'static str>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn version(&self, kind: Kind) -> Option<&'static str> {
        self.versions().get(&kind).copied()
    }
}

impl Gateway {
    /// A port that the user names has to be free; otherwise any will do.
    pub(super) async fn bind(flags: &Flags) -> anyhow::Result<Self> {
        let socket = match flags.gateway_port {
            Some(port) => bind(port)
                .await
                .with_context(|| format!("cannot listen on 127.0.0.1:{port} (--gateway-port)"))?,
            None => bind_any().await.context("cannot listen on 127.0.0.1")?,
        };
        let address = socket.local_addr()?;
        let is_usual = flags.gateway_port.is_some() || address.port() == *PORTS.start();
        let has_tls = flags.gateway_tls;
        let accepts_any = flags.gateway_accept_any;
        let settings = Settings { accepts_any, scheme: listen::scheme(has_tls), address };
        Ok(Self { socket, settings, is_usual, has_tls })
    }

    /// Answers until told to stop. What then still runs ends with its pods. The future is over when
    /// the routes are known that were there before.
    pub(super) fn start(
        self,
        server: &Arc<Server>,
        caches: Arc<Caches>,
        tls: Arc<ServerConfig>,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + use<> {
        let Self { socket, settings, has_tls, .. } = self;
        let mut user = User::account("kube-system", ACCOUNT, "");
        user.groups.push(MASTERS.to_owned());
        let client = Client::new(server.service(user), "default");
        let proxy = Arc::new(Proxy::default());
        let listening = listen::serve(proxy.clone(), socket, has_tls.then_some(tls));
        let counted = proxy.clone();
        server.show_figures(move || counted.routing().backends.metrics(Instant::now()));
        let known = Arc::new(Known::default());
        tell(&caches, &known);
        let (statuses, newest) = watch::channel(Vec::new());
        let (told, routed) = oneshot::channel();
        // Each is a task of its own: where requests go must not wait for what is said of it. None goes
        // on without the others.
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            if let Err(error) = listening.await {
                tracing::error!(%error, "the gateway cannot listen any more");
            }
        });
        tasks.spawn({
            let (client, known) = (client.clone(), known.clone());
            async move { follow::run(&client, &known).await }
        });
        tasks.spawn({
            let known = known.clone();
            async move { status::write(&client, &known, newest).await }
        });
        tasks.spawn(async move {
            route(&caches, &known, &proxy, settings, &statuses, told).await;
        });
        tokio::spawn(async move { stop.run_until_cancelled(tasks.join_next()).await });
        // If it has ended before, there is nothing to wait for either.
        routed.map(drop)
    }
}

impl fmt::Display for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { scheme, address, .. } = self.settings;
        write!(f, "models answer at {scheme}://{address}")?;
        if !self.is_usual {
            write!(f, ", as port {} is in use", PORTS.start())?;
        }
        Ok(())
    }
}

async fn bind(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
}

async fn bind_any() -> std::io::Result<TcpListener> {
    for port in PORTS.filter(|port| *port != PROBES) {
        if let Ok(socket) = bind(port).await {
            return Ok(socket);
        }
    }
    bind(0).await
}

/// Whatever changes may change where requests go.
fn tell(caches: &Caches, known: &Arc<Known>) {
    let pods = known.clone();
    caches.pods.listen(move |_| pods.changed.notify_one());
    let services = known.clone();
    caches.services.listen(move |_| services.changed.notify_one());
    let slices = known.clone();
    caches.endpoint_slices.listen(move |_| slices.changed.notify_one());
}

async fn route(
    caches: &Caches,
    known: &Known,
    proxy: &Proxy,
    settings: Settings,
    statuses: &watch::Sender<Vec<Change>>,
    told: oneshot::Sender<()>,
) {
    caches.filled().await;
    while !known.is_complete() {
        known.changed.notified().await;
    }
    let mut told = Some(told);
    let mut pools = Pools::default();
    loop {
        let before = proxy.routing();
        let (assembled, said) = {
            let seen = around::Seen::of(caches);
            let (around, listed) = (seen.around(), known.listed());
            let assembled = assemble::assemble(&listed, &around, settings, &before.backends);
            let said = changes(&listed, &around, settings, &assembled, &status::now());
            (assembled, said)
        };
        pools.set(&assembled);
        proxy.set(assembled.routing);
        if let Some(told) = told.take() {
            // Whether somebody waits for it is no matter.
            let _ = told.send(());
        }
        if !said.is_empty() {
            statuses.send_replace(said);
        }
        sleep(PAUSE).await;
        known.changed.notified().await;
    }
}
