//! HorizontalPodAutoscalers: the number of replicas follows the use of the processor.

mod decide;
mod limits;
mod load;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::api::{
    autoscaling::{v1::Scale, v2::HorizontalPodAutoscaler},
    core::v1::Pod,
};
use kube::{
    Api,
    api::{DynamicObject, GroupVersionKind},
    discovery,
};
use tokio::time::Instant;

use super::{Context, Controller, Error, Key, Queue, pods::told, posting};
use crate::selector::Labels;
use decide::{Decision, Seen, decide, without_scale};
use limits::History;

pub use load::Sample;

/// Who measures what pods use of the machine.
pub trait Usage: Debug + Send + Sync {
    /// By the uid of the pod; `None` as long as nothing is known of it.
    fn cpu(&self, pod: &str) -> Option<Sample>;
}

/// How often each is looked at, unless the settings say otherwise.
const PERIOD: Duration = Duration::from_secs(15);

pub(super) struct Autoscalers {
    context: Context,
    period: Duration,
    known: Mutex<BTreeMap<Key, Known>>,
}

/// What is remembered of an autoscaler.
#[derive(Clone)]
struct Known {
    due: Instant,
    history: History,
}

impl Controller for Autoscalers {
    const NAME: &'static str = "horizontal-pod-autoscaler";

    fn new(context: Context, queue: &Arc<Queue>) -> Self {
        let feed = |autoscaler: &HorizontalPodAutoscaler| [Key::of(autoscaler)];
        context.caches.autoscalers.feed(queue, feed);
        let period = context.settings.autoscale_every.unwrap_or(PERIOD);
        Self { context, period, known: Mutex::default() }
    }

    async fn reconcile(&self, key: &Key) -> Result<Option<Duration>, Error> {
        let Some(autoscaler) = self.context.caches.autoscalers.get(key) else {
            self.known().remove(key);
            return Ok(None);
        };
        // Changes do not make it look sooner: too short a time would measure nothing.
        let now = Instant::now();
        let new = || Known { due: now + self.period, history: History::default() };
        let mut known = self.known().entry(key.clone()).or_insert_with(new).clone();
        if known.due > now {
            return Ok(Some(known.due - now));
        }
        let decision = self.decide(key, &autoscaler, &mut known.history).await?;
        // What has been done is remembered, whether or not it can be told.
        self.known().insert(key.clone(), known.clone());
        self.tell(key, &autoscaler, decision).await?;
        known.due = now + self.period;
        self.known().insert(key.clone(), known);
        Ok(Some(self.period))
    }
}

impl Autoscalers {
    fn known(&self) -> MutexGuard<'_, BTreeMap<Key, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the target and changes its scale where it has to.
    async fn decide(
        &self,
        key: &Key,
        autoscaler: &HorizontalPodAutoscaler,
        history: &mut History,
    ) -> Result<Decision, Error> {
        let name = autoscaler.spec.as_ref().map(|spec| spec.scale_target_ref.name.clone());
        let name = name.unwrap_or_default();
        let found = self.target(key, autoscaler, &name).await;
        let (api, scale) = match found {
            Ok(found) => found,
            Err(error) => {
                return Ok(without_scale(autoscaler, &told(&error), self.context.now()));
            }
        };
        let pods = self.pods(key, &scale);
        let samples = self.samples(&pods).await;
        let seen = Seen {
            autoscaler,
            scale: &scale,
            pods: &pods,
            samples: &samples,
            now: self.context.now(),
        };
        let mut decision = decide(&seen, history);
        let Some(rescale) = decision.rescale.clone() else { return Ok(decision) };
        let mut wanted = scale.clone();
        wanted.spec.get_or_insert_default().replicas = Some(rescale.to);
        match api.replace_scale(&name, &posting(), &wanted).await {
            Ok(_) => {
                decision.rescaled(&rescale, history, self.context.now());
                let message = format!("New size: {}; reason: {}", rescale.to, rescale.reason);
                self.context.events.normal(autoscaler, "SuccessfulRescale", &message).await;
            }
            Err(kube::Error::Api(status)) if status.code == 409 => {
                return Err(Error::on("scale", &name)(kube::Error::Api(status)));
            }
            Err(error) => decision.not_rescaled(&rescale, &told(&error), self.context.now()),
        }
        Ok(decision)
    }

    async fn target(
        &self,
        key: &Key,
        autoscaler: &HorizontalPodAutoscaler,
        name: &str,
    ) -> Result<(Api<DynamicObject>, Scale), kube::Error> {
        let spec = autoscaler.spec.clone().unwrap_or_default();
        let version = spec.scale_target_ref.api_version.unwrap_or_default();
        let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
        let kind = GroupVersionKind::gvk(group, version, &spec.scale_target_ref.kind);
        let (resource, _) = discovery::pinned_kind(&self.context.client, &kind).await?;
        let client = self.context.client.clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, &key.namespace, &resource);
        let scale = api.get_scale(name).await?;
        Ok((api, scale))
    }

    fn pods(&self, key: &Key, scale: &Scale) -> Vec<Arc<Pod>> {
        let selector = scale.status.as_ref().and_then(|status| status.selector.as_deref());
        let Some(Ok(selector)) = selector.map(Labels::parse) else { return Vec::new() };
        let mut pods = self.context.caches.pods.within(&key.namespace);
        pods.retain(|pod| {
            let labels = serde_json::to_value(&pod.metadata.labels).unwrap_or_default();
            selector.matches(labels.as_object())
        });
        pods
    }

    /// To measure takes its time.
    async fn samples(&self, pods: &[Arc<Pod>]) -> BTreeMap<String, Sample> {
        let Some(usage) = self.context.settings.usage.clone() else { return BTreeMap::new() };
        let uids: Vec<_> = pods.iter().filter_map(|pod| pod.metadata.uid.clone()).collect();
        let measured = tokio::task::spawn_blocking(move || {
            uids.into_iter().filter_map(|uid| Some((uid.clone(), usage.cpu(&uid)?))).collect()
        });
        measured.await.unwrap_or_default()
    }

    async fn tell(
        &self,
        key: &Key,
        autoscaler: &HorizontalPodAutoscaler,
        decision: Decision,
    ) -> Result<(), Error> {
        for (reason, message) in &decision.warnings {
            self.context.events.warning(autoscaler, reason, message).await;
        }
        if autoscaler.status.as_ref() == Some(&decision.status) {
            return Ok(());
        }
        let mut shown = autoscaler.clone();
        shown.status = Some(decision.status);
        let api: Api<HorizontalPodAutoscaler> = self.context.api(&key.namespace);
        let written = api.replace_status(&key.name, &posting(), &shown).await;
        let written = written.map_err(Error::on("write the status of autoscaler", &key.name))?;
        self.context.caches.autoscalers.note(written);
        Ok(())
    }
}
