//! ReplicaSets: so many pods of one template.

mod status;

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ReplicaSet, ReplicaSetStatus},
    core::v1::Pod,
};
use kube::{Resource, ResourceExt};

use super::{
    Caches, Context, Controller, Error, Key, Queue,
    cache::controller,
    owners::{Owner, selects},
    pods::{self, Outcome, from_template, removal_order, told},
    posting,
};

pub(super) struct ReplicaSets {
    context: Context,
}

impl Controller for ReplicaSets {
    const NAME: &'static str = "replicaset";

    fn new(context: Context, queue: &Arc<Queue>) -> Self {
        context.caches.replica_sets.feed(queue, |set| [Key::of(set)]);
        let caches = Arc::downgrade(&context.caches);
        context.caches.pods.feed(queue, move |pod| match controller(pod) {
            Some(_) => Vec::from_iter(Key::of_controller(pod, "ReplicaSet")),
            None => caches.upgrade().map(|caches| suitors(&caches, pod)).unwrap_or_default(),
        });
        Self { context }
    }

    async fn reconcile(&self, key: &Key) -> Result<Option<Duration>, Error> {
        let Some(set) = self.context.caches.replica_sets.get(key) else { return Ok(None) };
        let (active, terminating) = self.pods(&set).await?;
        let outcome = match set.metadata.deletion_timestamp {
            Some(_) => Outcome::default(),
            None => self.manage(&set, &active).await,
        };
        let now = self.context.now();
        let failure = outcome.error.as_ref().map(told);
        let status = status::next(&set, &active, terminating, failure, now);
        self.write_status(&set, status).await?;
        match outcome.error {
            Some(error) => Err(Error::on("make or delete pods of", &key.name)(error)),
            None => Ok(next_check(&set, &active, now)),
        }
    }
}

/// Those that could adopt this pod.
fn suitors(caches: &Caches, pod: &Pod) -> Vec<Key> {
    let sets = caches.replica_sets.within(pod.metadata.namespace.as_deref().unwrap_or_default());
    let fit =
        sets.iter().filter(|set| set.spec.as_ref().is_some_and(|s| selects(&s.selector, pod)));
    fit.map(|set| Key::of(&**set)).collect()
}

/// When the next of its pods has been ready for long enough.
fn next_check(set: &ReplicaSet, pods: &[Arc<Pod>], now: Timestamp) -> Option<Duration> {
    let seconds = status::min_ready_seconds(set);
    let waits = pods.iter().filter_map(|pod| pods::wait_for_available(pod, seconds, now));
    waits.filter(|wait| wait.is_positive()).min().map(jiff::SignedDuration::unsigned_abs)
}

impl ReplicaSets {
    /// The active ones, and how many of its own are still on their way out.
    async fn pods(&self, set: &ReplicaSet) -> Result<(Vec<Arc<Pod>>, usize), Error> {
        let Some(spec) = &set.spec else { return Ok((Vec::new(), 0)) };
        let owner = Owner { object: set, selector: &spec.selector, finalizer: None };
        let cache = &self.context.caches.pods;
        let all = cache.within(&set.namespace().unwrap_or_default());
        let leaving = |pod: &&Arc<Pod>| pods::is_terminating(pod) && owner.owns(&***pod);
        let terminating = all.iter().filter(leaving).count();
        let active = all.into_iter().filter(|pod| pods::is_active(pod)).collect();
        let active = self.context.claim(&owner, active, cache).await?;
        Ok((active, terminating))
    }

    /// Makes what is missing or deletes what is too much.
    async fn manage(&self, set: &ReplicaSet, active: &[Arc<Pod>]) -> Outcome {
        let wanted = usize::try_from(status::replicas(set)).unwrap_or_default();
        if active.len() < wanted {
            let template = set.spec.as_ref().and_then(|spec| spec.template.clone());
            let pod = from_template(set, &template.unwrap_or_default());
            return self.context.create_pods(set, &pod, wanted - active.len()).await;
        }
        let mut spare: Vec<&Pod> = active.iter().map(|pod| &**pod).collect();
        spare.sort_by_cached_key(|pod| removal_order(pod));
        spare.truncate(active.len() - wanted);
        let deleted = join_all(spare.iter().map(|pod| self.context.delete_pod(set, pod))).await;
        Outcome { done: 0, error: deleted.into_iter().find_map(Result::err) }
    }

    async fn write_status(&self, set: &ReplicaSet, status: ReplicaSetStatus) -> Result<(), Error> {
        if set.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let name = set.name_any();
        let changed = ReplicaSet { status: Some(status), ..set.clone() };
        let api =
            self.context.api::<ReplicaSet>(set.meta().namespace.as_deref().unwrap_or_default());
        let written = api.replace_status(&name, &posting(), &changed).await;
        let written = written.map_err(Error::on("write the status of ReplicaSet", &name))?;
        self.context.caches.replica_sets.note(written);
        Ok(())
    }
}
