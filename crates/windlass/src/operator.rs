//! `windlass operator`: the controllers, and around them leadership, health and metrics.

mod access;
mod client;
mod flags;
pub(crate) mod logging;
mod server;
mod tls;

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use futures::future::{BoxFuture, join_all};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use windlass_engine::{
    apis::Apis,
    controller::{Controller, Runtime, optional_kinds},
    domain::Domain,
    error::chain,
    kind::Kind,
    lease::{Election, Leases, Timing},
    metrics::Metrics,
    queue::Delays,
};

pub(crate) use flags::{Flags, Work};

use crate::kinds::Visitor;

/// How long a stop waits for passes that have begun.
const GRACE: Duration = Duration::from_secs(20);

pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    logging::start(&flags.logging, &flags.zap, logging::Usual::OPERATOR)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(operate(flags))
}

async fn operate(flags: Flags) -> anyhow::Result<()> {
    let metrics = Metrics::default();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let cluster = client::connect(&flags, metrics.clone()).await?;

    let stop = stop_on_signal()?;
    let pulse = server::Pulse::default();
    server::serve_probes(&flags.health_probe_bind_address, pulse.clone()).await?;
    server::serve_metrics(&flags.metrics, registry, cluster.client.clone()).await?;
    let leases = flags.leases(&cluster.namespace);
    let Flags { work, watch_namespaces: namespaces, .. } = flags;
    control(Setup { cluster, work, namespaces, leases, metrics, pulse, stop }).await;
    Ok(())
}

/// The controllers on an API in this process that knows them as who they are; until told to stop.
pub(crate) async fn operate_within(
    api: axum::Router,
    namespace: &str,
    work: Work,
    stop: CancellationToken,
) {
    let metrics = Metrics::default();
    let cluster = client::within(api, namespace, metrics.clone());
    let (namespaces, leases, pulse) = (Vec::new(), None, server::Pulse::default());
    control(Setup { cluster, work, namespaces, leases, metrics, pulse, stop }).await;
}

/// What the controllers are given, wherever they run.
struct Setup {
    cluster: client::Cluster,
    work: Work,
    /// All if empty.
    namespaces: Vec<String>,
    /// Namespaces and names; `None` if leadership does not matter.
    leases: Option<Vec<(String, String)>>,
    metrics: Metrics,
    pulse: server::Pulse,
    stop: CancellationToken,
}

async fn control(setup: Setup) {
    let Setup { cluster, work, namespaces, leases, metrics, pulse, stop } = setup;
    let client = cluster.client;
    let apis = Apis::new(
        work.enabled().into_iter().flat_map(|kind| kind.visit(&work.kinds, OptionalKinds)),
    );
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "operator starts");

    if stop.run_until_cancelled(first_contact(&client, &apis)).await.is_none() {
        return;
    }
    let missing = apis.missing();
    if !missing.is_empty() {
        tracing::info!(missing = missing.join(", "), "the API does not serve all kinds");
    }
    tokio::spawn(apis.clone().run(client.clone()));

    let identity = flags::identity();
    let runtime = Runtime {
        client: client.clone(),
        watching: cluster.watching,
        apis,
        metrics: metrics.clone(),
        clock: Arc::new(Timestamp::now),
        instance: identity.clone(),
        namespaces,
        concurrency: work.concurrency.into(),
        delays: Delays::default(),
    };
    let controllers: Vec<Box<dyn Running>> = work
        .enabled()
        .into_iter()
        .map(|kind| kind.visit(&work.kinds, Start(runtime.clone())))
        .collect();
    let controllers = Arc::new(controllers);
    pulse.of(Vitals { controllers: controllers.clone(), apis: runtime.apis });

    let election = |(namespace, name)| Election {
        client: client.clone(),
        clock: Arc::new(Timestamp::now),
        namespace,
        name,
        identity: identity.clone(),
        timing: Timing::default(),
    };
    let leases = leases.map(|all| Leases(all.into_iter().map(election).collect()));
    lead(&controllers, leases, &metrics, &stop).await;
    // Whoever has started this may end the API next, and no watch should complain of that.
    join_all(controllers.iter().map(|controller| controller.end())).await;
    tracing::info!("operator stops");
}

/// Works whenever this operator leads, until told to stop.
async fn lead(
    controllers: &[Box<dyn Running>],
    leases: Option<Leases>,
    metrics: &Metrics,
    stop: &CancellationToken,
) {
    let Some(leases) = leases else {
        metrics.leading(true);
        return work(controllers, stop).await;
    };
    while let Some(since) = stop.run_until_cancelled(leases.acquire()).await {
        tracing::info!("this operator leads");
        metrics.leading(true);
        // Losing the lease drops the workers where they stand; they make no further request.
        let stopped = tokio::select! {
            () = work(controllers, stop) => true,
            () = leases.hold(&since) => false,
        };
        metrics.leading(false);
        if stopped {
            // Without it the next operator only waits for the lease to end.
            let _ = tokio::time::timeout(Duration::from_secs(5), leases.release()).await;
            return;
        }
    }
}

async fn work(controllers: &[Box<dyn Running>], stop: &CancellationToken) {
    let working = join_all(controllers.iter().map(|controller| controller.work(stop.clone())));
    tokio::pin!(working);
    tokio::select! {
        _ = &mut working => {}
        () = stop.cancelled() => {
            if tokio::time::timeout(GRACE, working).await.is_err() {
                tracing::warn!("some passes did not end in time");
            }
        }
    }
}

/// Until the API answers there is nothing to do; an operator that gives up only gets restarted.
async fn first_contact(client: &kube::Client, apis: &Apis) {
    let mut delay = Duration::from_millis(500);
    while let Err(error) = apis.probe(client).await {
        tracing::warn!(error = chain(&error), "cannot reach the Kubernetes API; trying again");
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(Duration::from_secs(10));
    }
}

pub(crate) fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let told = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        told.cancel();
    });
    Ok(stop)
}

/// A controller of any domain.
trait Running: Send + Sync {
    fn is_alive(&self) -> bool;
    fn is_synced(&self) -> bool;
    fn work(&self, stop: CancellationToken) -> BoxFuture<'_, ()>;
    fn end(&self) -> BoxFuture<'_, ()>;
}

struct Vitals {
    controllers: Arc<Vec<Box<dyn Running>>>,
    apis: Apis,
}

impl server::Vitals for Vitals {
    fn is_alive(&self) -> bool {
        self.controllers.iter().all(|controller| controller.is_alive())
    }

    fn is_ready(&self) -> bool {
        self.controllers.iter().all(|controller| controller.is_synced())
    }

    fn missing(&self) -> Vec<String> {
        self.apis.missing()
    }
}

impl<D: Domain> Running for Controller<D> {
    fn is_alive(&self) -> bool {
        Controller::is_alive(self)
    }

    fn is_synced(&self) -> bool {
        Controller::is_synced(self)
    }

    fn work(&self, stop: CancellationToken) -> BoxFuture<'_, ()> {
        Box::pin(Controller::work(self, stop))
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(Controller::end(self))
    }
}

struct OptionalKinds;

impl Visitor for OptionalKinds {
    type Output = Vec<Kind>;

    fn visit<D: Domain>(self, domain: D) -> Vec<Kind> {
        optional_kinds(&domain)
    }
}

struct Start(Runtime);

impl Visitor for Start {
    type Output = Box<dyn Running>;

    fn visit<D: Domain>(self, domain: D) -> Box<dyn Running> {
        Box::new(Controller::start(domain, self.0))
    }
}
