//! Runs one domain: watches feed the queue, workers take from it.
//!
//! Watches run from the start, also while another operator leads, so that taking over is quick.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::Client;
use tokio::{
    task::{AbortHandle, JoinSet},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    apis::Apis,
    apply::{Applier, Slots, Unchanging},
    asked::Asked,
    cache::{Cache, Version},
    domain::{Access, Domain, Identity, Need, Watch, Whose},
    kind::{Kind, ObjectKey, Scope},
    labels,
    lease::Clock,
    metrics::{Metrics, Outcome},
    object::Object,
    pipeline::{Pass, Pipeline},
    queue::{Again, Delays, Queue},
    reader::{ClusterReader, Logs},
    report::Reporter,
    watch::{Scoped, Watcher},
};

/// How long an optional kind may take to be listed.
const PATIENCE: Duration = Duration::from_secs(20);

/// What all controllers of one operator share.
#[derive(Clone)]
pub struct Runtime {
    pub client: Client,
    /// For watches; one that leaves it to them when to try again.
    pub watching: Client,
    pub apis: Apis,
    pub metrics: Metrics,
    pub clock: Clock,
    /// Names this process in events.
    pub instance: String,
    /// Empty for all.
    pub namespaces: Vec<String>,
    pub concurrency: usize,
    pub delays: Delays,
}

/// A controller whose watches are running.
pub struct Controller<D: Domain> {
    shared: Arc<Shared<D>>,
    handles: Vec<AbortHandle>,
    /// Held for its end: dropping it ends the watches.
    _watches: JoinSet<()>,
}

struct Shared<D: Domain> {
    pipeline: Pipeline<D>,
    queue: Queue,
    runtime: Runtime,
    /// Watches that have not yet seen all that exists.
    unsynced: AtomicUsize,
    synced: tokio::sync::Notify,
}

/// The kinds of a domain that may be missing from the API: its own and its optional children.
pub fn optional_kinds<D: Domain>(domain: &D) -> Vec<Kind> {
    let optional = domain.watches().into_iter().filter(|watch| watch.need == Need::Optional);
    optional.map(|watch| watch.kind).chain([Kind::of::<D::Object>()]).collect()
}

impl<D: Domain> Controller<D> {
    /// Starts the watches. They end when the controller is dropped.
    pub fn start(domain: D, runtime: Runtime) -> Self {
        let identity = domain.identity();
        let watches = domain.watches();
        let kind = Kind::of::<D::Object>();
        let pipeline = pipeline(domain, &identity, &watches, &runtime);
        let shared = Arc::new(Shared {
            pipeline,
            queue: Queue::default(),
            runtime,
            unsynced: AtomicUsize::new(watches.len() + 1),
            synced: tokio::sync::Notify::new(),
        });
        let mut tasks = JoinSet::new();
        let own = Watch { kind, need: Need::Optional, access: Access::Read, whose: Whose::Anyones };
        let mut handles = vec![tasks.spawn(shared.clone().keep_watching(own, None))];
        let selector = labels::selector(identity.managed_by, identity.components);
        for watch in watches {
            let selector = (watch.whose == Whose::Ours).then(|| selector.clone());
            handles.push(tasks.spawn(shared.clone().keep_watching(watch, selector)));
        }
        Self { shared, handles, _watches: tasks }
    }

    pub fn is_synced(&self) -> bool {
        self.shared.unsynced.load(Ordering::Acquire) == 0
    }

    /// Watches run for ever; one that has ended has panicked, and the process should be replaced.
    pub fn is_alive(&self) -> bool {
        self.handles.iter().all(|handle| !handle.is_finished())
    }

    /// Works until told to stop, then finishes what has begun. Dropped, it makes no further request.
    pub async fn work(&self, stop: CancellationToken) {
        if stop.run_until_cancelled(self.shared.wait_until_synced()).await.is_none() {
            return;
        }
        let mut workers = JoinSet::new();
        for _ in 0..self.shared.runtime.concurrency.max(1) {
            workers.spawn(self.shared.clone().worker(stop.clone()));
        }
        while workers.join_next().await.is_some() {}
    }
}

fn pipeline<D: Domain>(
    domain: D,
    identity: &Identity,
    watches: &[Watch],
    runtime: &Runtime,
) -> Pipeline<D> {
    let cache = Arc::new(Cache::new(identity.name_label, runtime.namespaces.clone()));
    let client = runtime.client.clone();
    Pipeline {
        domain,
        kind: Kind::of::<D::Object>(),
        identity: identity.clone(),
        client: client.clone(),
        cache: cache.clone(),
        reader: ClusterReader {
            client: client.clone(),
            cache: cache.clone(),
            apis: runtime.apis.clone(),
            logs: Logs::default(),
        },
        applier: Applier {
            client: client.clone(),
            cache,
            manager: identity.controller,
            managed_by: identity.managed_by,
            name_label: identity.name_label,
            hold: identity.hold,
            predecessors: identity.predecessors,
            namespace_label: identity.namespace_label,
            unchanging: Unchanging::default(),
            slots: Slots::default(),
        },
        reporter: Reporter::new(client, &identity.events, &runtime.instance),
        clock: runtime.clock.clone(),
        asked: Asked::new(watches),
    }
}

impl<D: Domain> Shared<D> {
    /// Watches a kind for as long as the API serves it, again and again.
    async fn keep_watching(self: Arc<Self>, watch: Watch, selector: Option<String>) {
        let mut served = self.runtime.apis.follow(&watch.kind);
        let first = First { shared: &self, done: AtomicBool::new(false) };
        loop {
            if let Some(served) = &mut served
                && !*served.borrow_and_update()
            {
                // What is not served has nothing to be waited for.
                first.done();
                if served.wait_for(|served| *served).await.is_err() {
                    return;
                }
            }
            let ends = async {
                match &mut served {
                    Some(served) => drop(served.wait_for(|served| !*served).await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.watch_once(&watch.kind, selector.clone(), &first) => {}
                () = first.give_up(&watch) => {}
                () = ends => {}
            }
            first.done();
            self.gone(&watch.kind);
        }
    }

    async fn watch_once(&self, kind: &Kind, selector: Option<String>, first: &First<'_, D>) {
        let own = *kind == self.pipeline.kind;
        let scope =
            Scoped { kind: kind.clone(), selector, namespaces: self.runtime.namespaces.clone() };
        let watcher = Watcher {
            client: self.runtime.watching.clone(),
            scope,
            cache: self.pipeline.cache.clone(),
            metrics: self.runtime.metrics.clone(),
        };
        let synced = || {
            if !first.done() && !own {
                // The API came back or is new: what could not be done before may be possible now.
                self.wake_all();
            }
        };
        let changed = |object: &Object| self.wake(kind, object);
        watcher.run(synced, changed).await;
    }

    /// The API no longer serves the kind, so nothing of it exists.
    fn gone(&self, kind: &Kind) {
        let objects = self.pipeline.cache.close(kind);
        tracing::info!(%kind, objects = objects.len(), "no longer watched");
        self.wake_all();
    }

    fn wake_all(&self) {
        for key in self.pipeline.cache.keys(&self.pipeline.kind) {
            self.add(key);
        }
    }

    fn wake(&self, kind: &Kind, object: &Object) {
        for asker in self.pipeline.asked.askers(kind, &object.key) {
            self.add(asker);
        }
        let own = *kind == self.pipeline.kind;
        let key = if own { Some(object.key.clone()) } else { self.parent_of(object) };
        if let Some(key) = key {
            self.queue.add_for(key, Version::of(object));
            self.runtime.metrics.queue_depth(&self.pipeline.kind, self.queue.depth());
        }
    }

    /// Children name their parent as owner; grandchildren (pods) and shared ones carry our label, or
    /// are of a Deployment that does.
    fn parent_of(&self, object: &Object) -> Option<ObjectKey> {
        let Pipeline { kind, identity, cache, .. } = &self.pipeline;
        let labelled = || object.labels.get(identity.namespace_label?).map(String::as_str);
        let namespace = match kind.scope {
            Scope::Namespaced => object.key.namespace.as_deref().or_else(labelled),
            Scope::Cluster => None,
        };
        let ours = |owner: &&OwnerReference| {
            owner.kind == kind.kind && owner.api_version == kind.api_version()
        };
        if let Some(owner) = object.controller().filter(ours) {
            return Some(ObjectKey::new(namespace, &owner.name));
        }
        let Some(label) = object.labels.get(identity.name_label) else {
            let key = ObjectKey::new(namespace, object.deployment()?);
            let deployment = cache.seen(&Kind::of::<Deployment>(), &key)?;
            return self.parent_of(&deployment);
        };
        let orphaned = object.deleting && self.pipeline.applier.holds(object);
        let orphan = || orphaned.then(|| ObjectKey::new(namespace, label));
        cache.named(kind, namespace, label).or_else(orphan)
    }

    fn add(&self, key: ObjectKey) {
        self.queue.add(key);
        self.runtime.metrics.queue_depth(&self.pipeline.kind, self.queue.depth());
    }

    fn one_synced(&self) {
        if self.unsynced.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.synced.notify_waiters();
        }
    }

    async fn wait_until_synced(&self) {
        loop {
            let notified = self.synced.notified();
            if self.unsynced.load(Ordering::Acquire) == 0 {
                return;
            }
            notified.await;
        }
    }

    async fn worker(self: Arc<Self>, stop: CancellationToken) {
        let kind = &self.pipeline.kind;
        while let Some(key) = stop.run_until_cancelled(self.queue.next()).await {
            let mut claim = Claim { shared: &self, key, again: Again::After(Duration::ZERO) };
            self.runtime.metrics.queue_depth(kind, self.queue.depth());
            let started = Instant::now();
            // Of its own: it takes far more room than a worker that waits, and most of them do.
            let pass = Box::pin(self.pass(&claim.key)).await;
            let seconds = started.elapsed().as_secs_f64();
            self.runtime.metrics.reconciled(kind, pass.outcome, seconds);
            claim.again = pass.again;
        }
    }

    async fn pass(&self, key: &ObjectKey) -> Pass {
        let span = tracing::info_span!(
            "reconcile",
            kind = %self.pipeline.kind,
            namespace = key.namespace.as_deref().unwrap_or_default(),
            name = key.name,
            generation = tracing::field::Empty,
        );
        let pass = AssertUnwindSafe(self.pipeline.reconcile(key)).catch_unwind();
        let pass = pass.instrument(span.clone()).await.unwrap_or_else(|_| {
            // The panic hook has printed where; the other objects must not suffer.
            span.in_scope(|| tracing::error!("the pass panicked"));
            Pass { outcome: Outcome::Panic, ..Pass::RETRY }
        });
        span.in_scope(|| tracing::debug!(outcome = pass.outcome.as_str(), "pass ended"));
        pass
    }
}

/// The first listing of a kind, which the workers wait for.
struct First<'a, D: Domain> {
    shared: &'a Shared<D>,
    done: AtomicBool,
}

impl<D: Domain> First<'_, D> {
    /// Whether this was the first time.
    fn done(&self) -> bool {
        let first = !self.done.swap(true, Ordering::AcqRel);
        if first {
            self.shared.one_synced();
        }
        first
    }

    /// An optional kind that is served but cannot be listed (its webhook is down, say) must not keep
    /// all others waiting. Until it can, who asks for it asks the API. Never ends.
    async fn give_up(&self, watch: &Watch) {
        if watch.need == Need::Optional && watch.kind != self.shared.pipeline.kind {
            tokio::time::sleep(PATIENCE).await;
            if self.done() {
                tracing::warn!(kind = %watch.kind, "cannot be listed; going on without it");
            }
        }
        std::future::pending().await
    }
}

/// A key taken from the queue. Dropped before a pass has ended (the lease was lost), it goes back.
struct Claim<'a, D: Domain> {
    shared: &'a Shared<D>,
    key: ObjectKey,
    again: Again,
}

impl<D: Domain> Drop for Claim<'_, D> {
    fn drop(&mut self) {
        let Shared { queue, pipeline, runtime, .. } = self.shared;
        let is_own = |version: &Version| pipeline.cache.is_own(version);
        queue.done(&self.key, self.again, &runtime.delays, is_own);
    }
}
