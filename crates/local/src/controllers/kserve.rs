//! KServe's InferenceServices, as far as they are plain Deployments: for whoever relies on KServe
//! and has nobody to run it.
//!
//! Nothing happens here before KServe's definitions are installed, nor where its own controller is.

mod kinds;
mod objects;
mod pod;
mod runtime;
mod status;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    fmt::Debug,
    sync::{Arc, Weak},
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, OptionFuture, join3},
};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        autoscaling::v2::HorizontalPodAutoscaler,
        core::v1::{ConfigMap, Pod},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::{NamespaceResourceScope, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::{
    Caches, Context, Controller, Error, Key, Queue, cache::Source, controller, patching,
    pods::is_for_ended_namespace,
};
use objects::{NAME_LABEL, Replicas};
use runtime::{Known, Runtime};
use status::Seen;

pub(super) use kinds::{ClusterServingRuntime, InferenceService, ServingRuntime};

/// The owner of what is applied here.
const MANAGER: &str = "kserve";
/// Whoever installs KServe brings its settings.
const SETTINGS: (&str, &str) = ("kserve", "inferenceservice-config");

/// Why a service cannot be served as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    reason: &'static str,
    message: String,
}

impl Problem {
    fn new(reason: &'static str, message: &str) -> Self {
        Self { reason, message: message.to_owned() }
    }
}

pub(super) struct InferenceServices {
    context: Context,
}

impl Controller for InferenceServices {
    const NAME: &'static str = "inferenceservice";

    fn new(context: Context, queue: &Arc<Queue>) -> Self {
        let caches = &context.caches;
        caches.inference_services.feed(queue, |service: &InferenceService| [Key::of(service)]);
        let owner = |deployment: &Deployment| Key::of_controller(deployment, "InferenceService");
        caches.deployments.feed(queue, owner);
        caches.pods.feed(queue, |pod: &Pod| {
            let name = pod.labels().get(NAME_LABEL)?;
            Some(Key::new(pod.metadata.namespace.as_deref().unwrap_or_default(), name))
        });
        let known = Arc::downgrade(caches);
        caches.serving_runtimes.feed(queue, move |_: &ServingRuntime| all(&known));
        let known = Arc::downgrade(caches);
        caches.cluster_serving_runtimes.feed(queue, move |_: &ClusterServingRuntime| all(&known));
        Self { context }
    }

    async fn reconcile(&self, key: &Key) -> Result<Option<Duration>, Error> {
        let Some(service) = self.context.caches.inference_services.get(key) else {
            return Ok(None);
        };
        if service.metadata.deletion_timestamp.is_some() || self.is_somebody_elses().await? {
            return Ok(None);
        }
        let near = self.context.caches.serving_runtimes.within(&key.namespace);
        let far = self.context.caches.cluster_serving_runtimes.all();
        let chosen = runtime::choose(&service, &Known { near: &near, far: &far });
        let (runtime, made) = match chosen {
            Ok(runtime) => match self.make(key, &service, runtime).await {
                // What is missing there would go with the rest anyway.
                Err(error) if is_for_ended_namespace(error.cause()) => return Ok(None),
                made => (runtime, made?),
            },
            Err(problem) => (None, Err(problem)),
        };
        self.tell(key, &service, runtime, made.err().as_ref()).await?;
        Ok(None)
    }
}

impl InferenceServices {
    async fn is_somebody_elses(&self) -> Result<bool, Error> {
        let (namespace, name) = SETTINGS;
        let settings = self.context.api::<ConfigMap>(namespace).get_metadata_opt(name).await;
        Ok(settings.map_err(Error::on("read", name))?.is_some())
    }

    async fn make(
        &self,
        key: &Key,
        service: &InferenceService,
        runtime: Option<Runtime<'_>>,
    ) -> Result<Result<(), Problem>, Error> {
        let spec = runtime.map(|runtime| runtime.spec);
        let pod = match pod::pod_spec(service, spec) {
            Ok(pod) => pod,
            Err(problem) => return Ok(Err(problem)),
        };
        let name = objects::name(service);
        let there = self.context.caches.deployments.get(&Key::new(&key.namespace, &name));
        let ours = |held: &Deployment| {
            controller(held).map(|owner| &owner.uid) == service.metadata.uid.as_ref()
        };
        if there.is_some_and(|held| !ours(&held)) {
            let message = format!("the Deployment {name} belongs to somebody else");
            return Ok(Err(Problem { reason: "InvalidPredictorSpec", message }));
        }
        self.apply(key, &objects::service(service, spec, &pod)).await?;
        let deployment = Box::new(objects::deployment(service, spec, pod));
        let deployment = self.apply(key, &*deployment).await?;
        self.context.caches.deployments.note(deployment);
        match objects::replicas(service) {
            Replicas::Between(least, most) => {
                self.apply(key, &objects::autoscaler(service, spec, least, most)).await?;
            }
            Replicas::Fixed(_) => self.remove_autoscaler(key, service, &name).await?,
        }
        Ok(Ok(()))
    }

    async fn apply<K>(&self, key: &Key, object: &K) -> Result<K, Error>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        let params = PatchParams::apply(MANAGER).force();
        let name = object.name_any();
        let api: Api<K> = self.context.api(&key.namespace);
        let applied = api.patch(&name, &params, &Patch::Apply(object)).await;
        applied.map_err(Error::on("apply what serves", &key.name))
    }

    async fn remove_autoscaler(
        &self,
        key: &Key,
        service: &InferenceService,
        name: &str,
    ) -> Result<(), Error> {
        let cache = &self.context.caches.autoscalers;
        let Some(old) = cache.get(&Key::new(&key.namespace, name)) else { return Ok(()) };
        if controller(&*old).map(|owner| &owner.uid) != service.metadata.uid.as_ref() {
            return Ok(());
        }
        let api: Api<HorizontalPodAutoscaler> = self.context.api(&key.namespace);
        let gone = api.delete(name, &DeleteParams::default()).await;
        cache.note_deletion(&old, gone.map_err(Error::on("delete autoscaler", name))?);
        Ok(())
    }

    async fn tell(
        &self,
        key: &Key,
        service: &InferenceService,
        runtime: Option<Runtime<'_>>,
        problem: Option<&Problem>,
    ) -> Result<(), Error> {
        let caches = &self.context.caches;
        let deployment = caches.deployments.get(&Key::new(&key.namespace, &objects::name(service)));
        let mut pods = caches.pods.within(&key.namespace);
        pods.retain(|pod| pod.labels().get(NAME_LABEL) == Some(&key.name));
        let deployment = deployment.as_deref();
        let now = self.context.now();
        let seen = Seen { runtime, problem, deployment, pods: &pods, now };
        let status = status::status(service, &seen);
        let Some(patch) = status::difference(&service.status, &status) else { return Ok(()) };
        let api: Api<InferenceService> = self.context.api(&key.namespace);
        let patch = Patch::Merge(json!({"status": patch}));
        let told = api.patch_status(&key.name, &patching(), &patch).await;
        let told = told.map_err(Error::on("write the status of", &key.name))?;
        caches.inference_services.note(told);
        if let Some(Problem { reason, message }) = problem {
            self.context.events.warning(service, reason, message).await;
        }
        Ok(())
    }
}

/// Any runtime may be the one that a service waits for.
fn all(caches: &Weak<Caches>) -> Vec<Key> {
    let Some(caches) = caches.upgrade() else { return Vec::new() };
    caches.inference_services.all().iter().map(|service| Key::of(&**service)).collect()
}

/// Fills the caches of KServe's kinds while these are served.
pub(super) async fn watch(caches: &Caches, client: &Client) {
    // Without their content: definitions are large, and only their names are of interest.
    let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let changes = watcher(definitions, watcher::Config::default()).default_backoff();
    let mut changes = std::pin::pin!(changes);
    let mut installed = BTreeSet::new();
    let mut watching: OptionFuture<BoxFuture<'_, ()>> = None.into();
    let mut is_watching = false;
    loop {
        tokio::select! {
            change = changes.next() => match change {
                Some(Ok(event)) => note(&mut installed, &event),
                Some(Err(error)) => tracing::warn!(%error, "cannot watch definitions"),
                None => return,
            },
            _ = &mut watching, if is_watching => is_watching = false,
        }
        let complete = installed.len() == kinds::DEFINITIONS.len();
        if complete && !is_watching && is_served(client).await {
            is_watching = true;
            let all = join3(
                caches.inference_services.watch(client),
                caches.serving_runtimes.watch(client),
                caches.cluster_serving_runtimes.watch(client),
            );
            watching = Some(all.map(drop).boxed()).into();
        } else if !complete && is_watching {
            is_watching = false;
            watching = None.into();
        }
    }
}

/// Keeps those of the definitions that matter here.
fn note<K: ResourceExt>(installed: &mut BTreeSet<String>, event: &Event<K>) {
    let matters = |name: &String| kinds::DEFINITIONS.contains(&name.as_str());
    match event {
        Event::Apply(definition) | Event::InitApply(definition) => {
            installed.extend(Some(definition.name_any()).filter(matters));
        }
        Event::Delete(definition) => drop(installed.remove(&definition.name_any())),
        Event::Init => installed.clear(),
        Event::InitDone => {}
    }
}

/// A definition is there a little before its kind is.
async fn is_served(client: &Client) -> bool {
    let few = ListParams::default().limit(1);
    let services: Api<InferenceService> = Api::all(client.clone());
    let near: Api<ServingRuntime> = Api::all(client.clone());
    let far: Api<ClusterServingRuntime> = Api::all(client.clone());
    services.list_metadata(&few).await.is_ok()
        && near.list_metadata(&few).await.is_ok()
        && far.list_metadata(&few).await.is_ok()
}
