//! Jobs: pods that are run until enough of them have succeeded.

mod account;
mod backoff;
mod conditions;
mod decide;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use k8s_openapi::api::{
    batch::v1::{Job, JobCondition, JobSpec, JobStatus},
    core::v1::Pod,
};
use kube::{ResourceExt, api::Patch};
use serde_json::json;

use self::{
    account::Account,
    backoff::Backoff,
    decide::{Decision, Known, Work, is_tracked},
};
use super::{
    Caches, Context, Controller, Error, Key, Queue,
    cache::controller,
    owners::{Owner, selects},
    patching,
    pods::{Outcome, from_template},
    posting,
};

/// On pods that have not been counted.
const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

mod reasons {
    pub(super) const COMPLETIONS: (&str, &str) =
        ("CompletionsReached", "Reached expected number of succeeded pods");
    pub(super) const BACKOFF_LIMIT: (&str, &str) =
        ("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    pub(super) const DEADLINE: (&str, &str) =
        ("DeadlineExceeded", "Job was active longer than specified deadline");
}

pub(super) struct Jobs {
    context: Context,
    /// Of Jobs that have not ended, with their uid: the next one of the name starts anew.
    backoffs: Mutex<BTreeMap<Key, (Option<String>, Backoff)>>,
}

impl Controller for Jobs {
    const NAME: &'static str = "job";

    fn new(context: Context, queue: &Arc<Queue>) -> Self {
        context.caches.jobs.feed(queue, |job| [Key::of(job)]);
        let caches = Arc::downgrade(&context.caches);
        context.caches.pods.feed(queue, move |pod| match controller(pod) {
            Some(_) => Vec::from_iter(Key::of_controller(pod, "Job")),
            None => caches.upgrade().map(|caches| suitors(&caches, pod)).unwrap_or_default(),
        });
        Self { context, backoffs: Mutex::default() }
    }

    async fn reconcile(&self, key: &Key) -> Result<Option<Duration>, Error> {
        let job = self.context.caches.jobs.get(key);
        let finished = |job: &Job| job.status.as_ref().is_some_and(conditions::is_finished);
        let Some(job) = job.filter(|job| !finished(job)) else {
            self.forget_backoff(key);
            return self.let_go(key, None).await.map(|()| None);
        };
        let Some(spec) = &job.spec else { return Ok(None) };
        let pods = self.pods(&job, spec).await?;
        self.let_go(key, Some(&job)).await?;
        let now = self.context.now();
        let known = Known { job: &job, spec, pods: &pods, backoff: self.backoff(&job), now };
        let decision = known.decide();
        let outcome = self.work(&job, spec, &decision).await;
        let account = known.account(&decision, outcome.done);
        self.close(&job, &pods, &decision, account).await?;
        match outcome.error {
            Some(error) => Err(Error::on("make or delete pods of Job", &key.name)(error)),
            None => Ok(decision.again.map(jiff::SignedDuration::unsigned_abs)),
        }
    }
}

/// Those that could adopt this pod, and the one that it once had.
fn suitors(caches: &Caches, pod: &Pod) -> Vec<Key> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let selector = |job: &Job| job.spec.as_ref().and_then(|spec| spec.selector.clone());
    let jobs = caches.jobs.within(namespace);
    let fit = jobs.iter().filter(|job| selector(job).is_some_and(|s| selects(&s, pod)));
    let former = pod.labels().get(JOB_NAME).filter(|_| is_tracked(pod));
    fit.map(|job| Key::of(&**job)).chain(former.map(|name| Key::new(namespace, name))).collect()
}

impl Jobs {
    fn backoff(&self, job: &Job) -> Backoff {
        let backoffs = self.backoffs.lock().unwrap_or_else(PoisonError::into_inner);
        let known = backoffs.get(&Key::of(job)).filter(|(uid, _)| *uid == job.metadata.uid);
        known.map(|(_, backoff)| *backoff).unwrap_or_default()
    }

    fn set_backoff(&self, job: &Job, backoff: Backoff) {
        let mut backoffs = self.backoffs.lock().unwrap_or_else(PoisonError::into_inner);
        backoffs.insert(Key::of(job), (job.metadata.uid.clone(), backoff));
    }

    fn forget_backoff(&self, key: &Key) {
        self.backoffs.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    async fn pods(&self, job: &Job, spec: &JobSpec) -> Result<Vec<Arc<Pod>>, Error> {
        let Some(selector) = &spec.selector else { return Ok(Vec::new()) };
        let owner = Owner { object: job, selector, finalizer: Some(FINALIZER) };
        let cache = &self.context.caches.pods;
        let all = cache.within(&job.namespace().unwrap_or_default());
        self.context.claim(&owner, all, cache).await
    }

    async fn work(&self, job: &Job, spec: &JobSpec, decision: &Decision) -> Outcome {
        match &decision.work {
            Work::None => Outcome::default(),
            Work::Create(count) => {
                let mut pod = from_template(job, &spec.template);
                let finalizers = pod.finalizers_mut();
                finalizers.retain(|known| known != FINALIZER);
                finalizers.push(FINALIZER.to_owned());
                self.context.create_pods(job, &pod, *count).await
            }
            Work::End(pods) => {
                outcome(join_all(pods.iter().map(|pod| self.context.delete_pod(job, pod))).await)
            }
            Work::Drop(pods) => {
                outcome(join_all(pods.iter().map(|pod| self.drop_pod(job, pod))).await)
            }
        }
    }

    async fn drop_pod(&self, job: &Job, pod: &Pod) -> Result<(), kube::Error> {
        self.release(pod).await?;
        self.context.delete_pod(job, pod).await
    }

    /// Writes what was found, lets go of the pods in it, and writes what follows from that.
    async fn close(
        &self,
        job: &Job,
        pods: &[Arc<Pod>],
        decision: &Decision,
        account: Account,
    ) -> Result<(), Error> {
        let Account { status, release, end, event } = account;
        let job = self.write_status(job, status).await?;
        self.set_backoff(&job, decision.backoff);
        if let Some((reason, message)) = event {
            self.context.events.normal(&job, reason, message).await;
        }
        let mut tracked: BTreeSet<String> = pods
            .iter()
            .filter(|pod| is_tracked(pod))
            .filter_map(|pod| pod.metadata.uid.clone())
            .collect();
        let mut failure = None;
        for (pod, released) in
            release.iter().zip(join_all(release.iter().map(|pod| self.release(pod))).await)
        {
            match released {
                Ok(()) => {
                    tracked.remove(pod.metadata.uid.as_deref().unwrap_or_default());
                }
                Err(error) => failure = Some(Error::on("let go of pod", &pod.name_any())(error)),
            }
        }
        let mut status = job.status.clone().unwrap_or_default();
        account::count_released(&mut status, &tracked);
        let closed = end.as_ref().is_some_and(|end| account::close(&mut status, end));
        let job = self.write_status(&job, status).await?;
        if let Some(end) = end.filter(|_| closed) {
            self.tell_end(&job, &end).await;
        }
        failure.map_or(Ok(()), Err)
    }

    async fn tell_end(&self, job: &Job, end: &JobCondition) {
        if end.type_ == conditions::COMPLETE {
            return self.context.events.normal(job, "Completed", "Job completed").await;
        }
        let (reason, message) = (end.reason.as_deref(), end.message.as_deref());
        let (reason, message) = (reason.unwrap_or_default(), message.unwrap_or_default());
        self.context.events.warning(job, reason, message).await;
    }

    async fn write_status(&self, job: &Job, status: JobStatus) -> Result<Job, Error> {
        if job.status.as_ref() == Some(&status) {
            return Ok(job.clone());
        }
        let name = job.name_any();
        let changed = Job { status: Some(status), ..job.clone() };
        let api = self.context.api::<Job>(&job.namespace().unwrap_or_default());
        let written = api.replace_status(&name, &posting(), &changed).await;
        let written = written.map_err(Error::on("write the status of Job", &name))?;
        self.context.caches.jobs.note(written.clone());
        Ok(written)
    }

    /// Takes the finalizer off a pod; one that is gone needs none.
    async fn release(&self, pod: &Pod) -> Result<(), kube::Error> {
        if !is_tracked(pod) {
            return Ok(());
        }
        // Only this one, whatever others do to the pod meanwhile.
        let patch = json!({"metadata": {
            "uid": pod.metadata.uid,
            "$deleteFromPrimitiveList/finalizers": [FINALIZER],
        }});
        let api = self.context.api::<Pod>(&pod.namespace().unwrap_or_default());
        match api.patch(&pod.name_any(), &patching(), &Patch::Strategic(patch)).await {
            Ok(left) if is_gone(&left) => self.context.caches.pods.forget(pod),
            Ok(changed) => self.context.caches.pods.note(changed),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.context.caches.pods.forget(pod);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Nobody counts the pods of a Job that has ended or is gone, even if there is another one of its
    /// name. `job` is the one that goes on.
    async fn let_go(&self, key: &Key, job: Option<&Job>) -> Result<(), Error> {
        for pod in self.context.caches.pods.within(&key.namespace) {
            if is_tracked(&pod) && is_left(&pod, key, job) {
                let released = self.release(&pod).await;
                released.map_err(Error::on("let go of pod", &pod.name_any()))?;
            }
        }
        Ok(())
    }
}

/// A pod of a Job of this name, and not of the one that goes on.
fn is_left(pod: &Pod, key: &Key, job: Option<&Job>) -> bool {
    match controller(pod) {
        Some(owner) => {
            let is_own = job.is_some_and(|job| job.metadata.uid.as_ref() == Some(&owner.uid));
            owner.kind == "Job" && owner.name == key.name && !is_own
        }
        None => {
            let selector = job.and_then(|job| job.spec.as_ref()?.selector.as_ref());
            // It may yet be adopted.
            let is_wooed = selector.is_some_and(|selector| selects(selector, pod));
            pod.labels().get(JOB_NAME) == Some(&key.name) && !is_wooed
        }
    }
}

/// It waited for its finalizers only.
fn is_gone(pod: &Pod) -> bool {
    let meta = &pod.metadata;
    meta.deletion_timestamp.is_some()
        && meta.deletion_grace_period_seconds.unwrap_or_default() == 0
        && pod.finalizers().is_empty()
}

fn outcome(results: Vec<Result<(), kube::Error>>) -> Outcome {
    let done = results.iter().filter(|result| result.is_ok()).count();
    Outcome { done, error: results.into_iter().find_map(Result::err) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value};

    use super::*;

    #[test]
    fn pods_of_an_earlier_job_of_the_name_are_let_go() {
        let of = |name: &str, uid: &str| {
            json!([{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid,
                "controller": true}])
        };
        let job: Job = from_value(json!({"metadata": {"name": "j", "uid": "new"},
            "spec": {"template": {}, "selector": {"matchLabels": {"uid": "new"}}}}))
        .unwrap();
        for (case, owners, uid, beside, alone) in [
            ("its own", of("j", "new"), "new", false, true),
            ("of the one before", of("j", "old"), "old", true, true),
            ("of another", of("k", "old"), "old", false, false),
            ("an orphan of the one before", Value::Null, "old", true, true),
            ("an orphan that it may adopt", Value::Null, "new", false, true),
        ] {
            let pod: Pod = from_value(json!({"metadata": {"ownerReferences": owners,
                "labels": {JOB_NAME: "j", "uid": uid}}}))
            .unwrap();
            let key = Key::new("ns", "j");
            assert_eq!(is_left(&pod, &key, Some(&job)), beside, "{case}, beside a new one");
            assert_eq!(is_left(&pod, &key, None), alone, "{case}, without any");
        }
    }
}
