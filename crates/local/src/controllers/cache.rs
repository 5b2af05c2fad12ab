//! What controllers know of the cluster.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::{self, Debug, Display},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, join_all, ready},
};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        autoscaling::v2::HorizontalPodAutoscaler,
        batch::v1::Job,
        core::v1::{Endpoints, Node, PersistentVolume, PersistentVolumeClaim, Pod, Service},
        discovery::v1::EndpointSlice,
        storage::v1::StorageClass,
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, Resource,
    core::DeserializeGuard,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::{
    Queue,
    kserve::{ClusterServingRuntime, InferenceService, ServingRuntime},
};

/// Where an object is; the namespace of objects of the cluster is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }

    /// Of the controller of this object, if it is of this kind.
    pub fn of_controller(object: &impl Resource, kind: &str) -> Option<Self> {
        let owner = controller(object).filter(|owner| owner.kind == kind)?;
        Some(Self::new(object.meta().namespace.as_deref().unwrap_or_default(), &owner.name))
    }
}

impl Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The owner that looks after this object.
pub fn controller(object: &impl Resource) -> Option<&OwnerReference> {
    let owners = object.meta().owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// The caches of all kinds that controllers read. A further kind is a field and an entry in `each`.
#[derive(Default)]
pub struct Caches {
    pub pods: Cache<Pod>,
    pub replica_sets: Cache<ReplicaSet>,
    pub deployments: Cache<Deployment>,
    pub jobs: Cache<Job>,
    pub services: Cache<Service>,
    pub endpoints: Cache<Endpoints>,
    pub endpoint_slices: Cache<EndpointSlice>,
    pub autoscalers: Cache<HorizontalPodAutoscaler>,
    pub claims: Cache<PersistentVolumeClaim>,
    pub volumes: Cache<PersistentVolume>,
    pub classes: Cache<StorageClass>,
    pub nodes: Cache<Node>,
    /// These three are filled only where somebody has installed their definitions.
    pub(super) inference_services: Cache<InferenceService>,
    pub(super) serving_runtimes: Cache<ServingRuntime>,
    pub(super) cluster_serving_runtimes: Cache<ClusterServingRuntime>,
}

impl Caches {
    /// Every kind has its line here.
    fn each(&self) -> [&dyn Source; 12] {
        [
            &self.pods,
            &self.replica_sets,
            &self.deployments,
            &self.jobs,
            &self.services,
            &self.endpoints,
            &self.endpoint_slices,
            &self.autoscalers,
            &self.claims,
            &self.volumes,
            &self.classes,
            &self.nodes,
        ]
    }

    /// Fills them and keeps them up to date.
    pub(super) async fn watch(&self, client: &Client) {
        join_all(self.each().map(|source| source.watch(client))).await;
    }

    /// Waits until all have been filled once.
    pub async fn filled(&self) {
        join_all(self.each().map(Source::filled)).await;
    }
}

/// A cache of any kind.
pub(super) trait Source: Sync {
    fn watch<'a>(&'a self, client: &Client) -> BoxFuture<'a, ()>;
    fn filled(&self) -> BoxFuture<'_, ()>;
}

impl<K: Kind> Source for Cache<K> {
    fn watch<'a>(&'a self, client: &Client) -> BoxFuture<'a, ()> {
        let api: Api<DeserializeGuard<K>> = Api::all(client.clone());
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let each = events.for_each(|event| {
            match event {
                Ok(event) => self.see(event),
                Err(error) => tracing::warn!(kind = %K::kind(&()), %error, "cannot watch"),
            }
            ready(())
        });
        each.boxed()
    }

    fn filled(&self) -> BoxFuture<'_, ()> {
        // The sender is a field of this, so it cannot go first.
        async { drop(self.filled.subscribe().wait_for(|filled| *filled).await) }.boxed()
    }
}

/// What can be watched.
pub trait Kind:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

type Listener<K> = Box<dyn Fn(&K) + Send + Sync>;

/// The objects of one kind, without their managed fields.
///
/// What a controller writes it notes here at once, so that its next decision does not rest on a
/// state before its own writes.
pub struct Cache<K> {
    objects: RwLock<Objects<K>>,
    listeners: Mutex<Vec<Arc<Listener<K>>>>,
    filled: watch::Sender<bool>,
}

struct Objects<K> {
    known: BTreeMap<Key, Arc<K>>,
    gone: Gone,
    /// The names seen since the watch has begun anew.
    listed: Option<BTreeSet<Key>>,
}

/// The uids of the last objects that have gone. The watch and the writers do not wait for each
/// other, so each may still tell of a state before that.
#[derive(Default)]
struct Gone {
    uids: BTreeSet<String>,
    order: VecDeque<String>,
}

impl Gone {
    /// How many are remembered: far more than can go while an answer is on its way.
    const MOST: usize = 1024;

    fn add(&mut self, object: &impl Resource) {
        let Some(uid) = &object.meta().uid else { return };
        if self.uids.insert(uid.clone()) {
            self.order.push_back(uid.clone());
        }
        if self.order.len() > Self::MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    fn has(&self, object: &impl Resource) -> bool {
        object.meta().uid.as_ref().is_some_and(|uid| self.uids.contains(uid))
    }
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        let objects = Objects { known: BTreeMap::new(), gone: Gone::default(), listed: None };
        Self {
            objects: RwLock::new(objects),
            listeners: Mutex::default(),
            filled: watch::Sender::new(false),
        }
    }
}

impl<K> Cache<K> {
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read(|objects| objects.known.get(key).cloned())
    }

    pub fn within(&self, namespace: &str) -> Vec<Arc<K>> {
        self.read(|objects| {
            let from = objects.known.range(Key::new(namespace, "")..);
            from.take_while(|(key, _)| key.namespace == namespace)
                .map(|(_, object)| object.clone())
                .collect()
        })
    }

    pub fn all(&self) -> Vec<Arc<K>> {
        self.read(|objects| objects.known.values().cloned().collect())
    }

    fn read<T>(&self, take: impl FnOnce(&Objects<K>) -> T) -> T {
        take(&self.objects.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Objects<K>) -> T) -> T {
        change(&mut self.objects.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<K: Kind> Cache<K> {
    /// Queues the keys that `keys` names for each object that comes, changes or goes; for a change
    /// those of the old state too.
    pub fn feed<I>(&self, queue: &Arc<Queue>, keys: impl Fn(&K) -> I + Send + Sync + 'static)
    where
        I: IntoIterator<Item = Key>,
    {
        let queue = queue.clone();
        self.listen(move |object| keys(object).into_iter().for_each(|key| queue.add(key)));
    }

    /// Calls this for each object that comes, changes or goes; for a change with the old state too.
    pub fn listen(&self, listener: impl Fn(&K) + Send + Sync + 'static) {
        let listener: Listener<K> = Box::new(listener);
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Arc::new(listener));
    }

    /// As the API answered it.
    pub fn note(&self, mut object: K) {
        object.meta_mut().managed_fields = None;
        let key = Key::of(&object);
        let object = Arc::new(object);
        let changed = self.write(|objects| {
            if let Some(listed) = &mut objects.listed {
                listed.insert(key.clone());
            }
            let old = objects.known.get(&key);
            if objects.gone.has(&*object)
                || old.is_some_and(|old| version(&**old) >= version(&*object))
            {
                return None;
            }
            Some(objects.known.insert(key, object.clone()))
        });
        if let Some(old) = changed {
            self.tell(old.iter().chain([&object]));
        }
    }

    /// The API has said that it is gone, or does not know it.
    pub fn forget(&self, object: &K) {
        let known = self.write(|objects| objects.remove(object));
        self.tell(&known);
    }

    /// What the answer to a deletion says: the object on its way out, or that it is gone.
    pub fn note_deletion<S>(&self, object: &K, answer: either::Either<K, S>) {
        match answer {
            either::Either::Left(left) if left.meta().deletion_timestamp.is_some() => {
                self.note(left);
            }
            _ => self.forget(object),
        }
    }

    fn see(&self, event: Event<DeserializeGuard<K>>) {
        match event {
            Event::Apply(DeserializeGuard(Ok(object)))
            | Event::InitApply(DeserializeGuard(Ok(object))) => self.note(object),
            Event::Delete(DeserializeGuard(Ok(object))) => {
                self.forget(&object);
            }
            Event::Init => self.write(|objects| objects.listed = Some(BTreeSet::new())),
            Event::InitDone => {
                let lost = self.write(Objects::keep_listed);
                self.tell(&lost);
                self.filled.send_replace(true);
            }
            Event::Apply(DeserializeGuard(Err(error)))
            | Event::InitApply(DeserializeGuard(Err(error)))
            | Event::Delete(DeserializeGuard(Err(error))) => {
                let name = error.metadata.name.as_deref().unwrap_or_default();
                tracing::warn!(kind = %K::kind(&()), name, %error, "cannot read an object");
            }
        }
    }

    fn tell<'a>(&self, objects: impl IntoIterator<Item = &'a Arc<K>>) {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for object in objects {
            listeners.iter().for_each(|listener| listener(object));
        }
    }
}

impl<K: Resource> Objects<K> {
    /// Another object of the same name stays.
    fn remove(&mut self, object: &K) -> Option<Arc<K>> {
        self.gone.add(object);
        let key = Key::of(object);
        match self.known.get(&key) {
            Some(known) if known.meta().uid == object.meta().uid => self.known.remove(&key),
            _ => None,
        }
    }

    /// Ends a list: what it did not have has gone meanwhile.
    fn keep_listed(&mut self) -> Vec<Arc<K>> {
        let Some(listed) = self.listed.take() else { return Vec::new() };
        let known = std::mem::take(&mut self.known);
        let (kept, lost) = known.into_iter().partition(|(key, _)| listed.contains(key));
        self.known = kept;
        BTreeMap::into_values(lost).collect()
    }
}

/// As writers name the state that they looked at.
pub(super) fn version_of(object: &impl Resource) -> Option<&str> {
    object.meta().resource_version.as_deref()
}

/// This server's versions are numbers, and higher ones are newer.
fn version(object: &impl Resource) -> u64 {
    version_of(object).and_then(|version| version.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
