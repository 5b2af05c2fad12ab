//! What acts upon stored objects: the work of kube-controller-manager and of the scheduler.
//!
//! Watches fill the shared [`Caches`]; a change there puts keys into the [`Queue`] of each
//! [`Controller`] that cares; a controller reads the caches, decides by pure functions and writes
//! through the API under a name of its own.
//!
//! A new controller is a type with the trait and one line in [`run`].

mod binding;
mod cache;
mod claims;
mod deployment;
mod endpoint_slice;
mod events;
mod hpa;
mod job;
mod kserve;
mod owners;
mod pods;
mod queue;
mod replica_set;
mod ttl;

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Api, Client, Resource,
    api::{PatchParams, PostParams},
    core::NamespaceResourceScope,
};
use tokio::task::JoinSet;

use binding::Scheduler;
use claims::Claims;
use deployment::Deployments;
use endpoint_slice::{EndpointSlices, Mirroring};
use hpa::Autoscalers;
use job::Jobs;
use kserve::InferenceServices;
use replica_set::ReplicaSets;
use ttl::Ttl;

pub use cache::{Cache, Caches, Key, Kind, controller};
pub use events::{Recorder, event_name};
pub use hpa::{Sample, Usage};
pub use owners::{reference, selects};
pub use queue::Queue;

use crate::{
    auth::{MASTERS, User},
    http::Server,
};

/// The field manager of everything that controllers write.
const MANAGER: &str = "kube-controller-manager";
/// How many objects of a kind are worked on at once.
const AT_ONCE: usize = 4;

/// What controllers need to be told.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Who measures what pods use. Without one, autoscalers know nothing of it.
    pub usage: Option<Arc<dyn Usage>>,
    /// How often autoscalers look at their targets; if not said, every 15 seconds.
    pub autoscale_every: Option<Duration>,
    /// Where the volumes of the class `local` are made. Without it, somebody else has to make them.
    pub volumes: Option<PathBuf>,
    /// Whether pods are bound to nodes by somebody else.
    pub without_scheduler: bool,
    /// Whether somebody else makes Deployments of KServe's InferenceServices.
    pub without_kserve: bool,
    /// Whether processors, memory and the number of pods count against what the node has.
    pub strict_resources: bool,
}

/// One of the programs that act upon objects.
pub trait Controller: Sized + Send + Sync + 'static {
    /// With `-controller` behind it the name of its account and the source of its events.
    const NAME: &'static str;

    /// Says to the caches which of their changes concern which keys.
    fn new(context: Context, queue: &Arc<Queue>) -> Self;

    /// Brings the object of this key closer to what it asks for, and says after which time it is
    /// to be looked at again even if nothing changes. It is called for one key at a time, for the
    /// first time when all caches are filled, and must not fail because the object is gone.
    fn reconcile(&self, key: &Key) -> impl Future<Output = Result<Option<Duration>, Error>> + Send;
}

/// What a controller has at hand.
#[derive(Clone)]
pub struct Context {
    /// Asks as the controller's own account.
    pub client: Client,
    pub caches: Arc<Caches>,
    pub events: Recorder,
    pub settings: Arc<Settings>,
}

impl Context {
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The one place that reads the clock: decisions take the time as an argument.
    pub fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// What was attempted in vain. It is tried again after a while.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempt} {name}")]
pub struct Error {
    attempt: &'static str,
    name: String,
    source: Box<kube::Error>,
}

impl Error {
    /// For `map_err`: what was attempted on which object.
    pub fn on(attempt: &'static str, name: &str) -> impl FnOnce(kube::Error) -> Self {
        let name = name.to_owned();
        move |source| Self { attempt, name, source: Box::new(source) }
    }

    /// Somebody else was faster, or the object is gone: usual, and settled by the next try.
    pub fn is_stale(&self) -> bool {
        matches!(&*self.source, kube::Error::Api(status) if matches!(status.code, 404 | 409))
    }

    pub fn cause(&self) -> &kube::Error {
        &self.source
    }
}

/// The time as conditions carry it: in whole seconds.
pub fn stamp(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// Of patches.
pub fn patching() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

/// Of creations and replacements.
pub fn posting() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

/// Runs all controllers until it is dropped.
pub async fn run(server: Arc<Server>, settings: Settings) {
    run_on(Arc::default(), server, settings).await;
}

/// The same on caches that others read too.
pub async fn run_on(caches: Arc<Caches>, server: Arc<Server>, settings: Settings) {
    let base = Base { server, caches: caches.clone(), settings: Arc::new(settings) };
    // Who listens has to be known before the caches begin to fill.
    let mut controllers = vec![
        base.drive::<Deployments>(),
        base.drive::<Jobs>(),
        base.drive::<ReplicaSets>(),
        base.drive::<Ttl>(),
        base.drive::<EndpointSlices>(),
        base.drive::<Mirroring>(),
        base.drive::<Autoscalers>(),
        base.drive::<Claims>(),
    ];
    if !base.settings.without_scheduler {
        controllers.push(base.drive::<Scheduler>());
    }
    if !base.settings.without_kserve {
        controllers.push(base.drive::<InferenceServices>());
    }
    // Each is a task of its own: requests are worked on where they are made, and what is known of
    // pods must not wait for what somebody does with it. Dropping them ends them.
    let mut tasks = JoinSet::new();
    let client = base.client(MANAGER);
    tasks.spawn({
        let (caches, client) = (caches.clone(), client.clone());
        async move { caches.watch(&client).await }
    });
    if !base.settings.without_kserve {
        tasks.spawn(async move { kserve::watch(&caches, &client).await });
    }
    for controller in controllers {
        tasks.spawn(controller);
    }
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a controller has failed inside");
        }
    }
}

/// What the contexts of all controllers have in common.
struct Base {
    server: Arc<Server>,
    caches: Arc<Caches>,
    settings: Arc<Settings>,
}

impl Base {
    /// Controllers have their accounts' names, which logs and reviews show, and may do everything.
    fn client(&self, account: &str) -> Client {
        let mut user = User::account("kube-system", account, "");
        user.groups.push(MASTERS.to_owned());
        Client::new(self.server.service(user), "default")
    }

    fn drive<C: Controller>(&self) -> BoxFuture<'static, ()> {
        let name = format!("{}-controller", C::NAME);
        let client = self.client(&name);
        let context = Context {
            events: Recorder::new(client.clone(), name),
            client,
            caches: self.caches.clone(),
            settings: self.settings.clone(),
        };
        let queue = Arc::new(Queue::default());
        let controller = C::new(context, &queue);
        let caches = self.caches.clone();
        async move {
            caches.filled().await;
            work(&controller, &queue).await;
        }
        .boxed()
    }
}

/// Takes keys from the queue for ever.
async fn work<C: Controller>(controller: &C, queue: &Queue) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            key = queue.next(), if running.len() < AT_ONCE => {
                running.push(attend(controller, queue, key));
            }
            Some(()) = running.next() => {}
        }
    }
}

async fn attend<C: Controller>(controller: &C, queue: &Queue, key: Key) {
    let done = std::panic::AssertUnwindSafe(controller.reconcile(&key)).catch_unwind().await;
    match done {
        Ok(Ok(again)) => queue.done(&key, again),
        Ok(Err(error)) => {
            let cause = error.cause();
            if error.is_stale() {
                tracing::debug!(controller = C::NAME, %key, %error, %cause, "trying again");
            } else {
                tracing::warn!(controller = C::NAME, %key, %error, %cause, "trying again");
            }
            queue.failed(&key);
        }
        // A mistake about one object must not stop the work on others.
        Err(_) => {
            tracing::error!(controller = C::NAME, %key, "a controller failed inside");
            queue.failed(&key);
        }
    }
}
