//! Which node a pod runs on: the work of the scheduler.

mod fit;
mod plan;
mod resources;
mod storage;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    core::v1::{Binding, Node, ObjectReference, PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kube::{
    Api,
    api::{ObjectMeta, Patch},
};
use serde_json::{Value, json};

use super::{
    Context, Controller, Error, Key, Queue, Recorder, patching, pods::condition, posting, stamp,
};
use plan::{Decision, Verdict, is_waiting, plan};
use resources::{Counting, wanted};
use storage::Storage;

pub(super) struct Scheduler {
    context: Context,
    events: Recorder,
    counting: Counting,
}

/// All pods are decided about together: what one takes the next cannot have.
fn everything() -> Key {
    Key::new("", "pods")
}

impl Controller for Scheduler {
    const NAME: &'static str = "scheduler";

    fn new(context: Context, queue: &Arc<Queue>) -> Self {
        let counting = match context.settings.strict_resources {
            true => Counting::Everything,
            false => Counting::Devices,
        };
        // A pod that ends leaves room only if it held something.
        context.caches.pods.feed(queue, move |pod: &Pod| {
            let concerns = is_waiting(pod) || !wanted(pod, counting).is_empty();
            concerns.then(everything)
        });
        context.caches.nodes.feed(queue, |_: &Node| [everything()]);
        context.caches.claims.feed(queue, |_: &PersistentVolumeClaim| [everything()]);
        context.caches.classes.feed(queue, |_: &StorageClass| [everything()]);
        let events = Recorder::new(context.client.clone(), "default-scheduler".to_owned());
        Self { context, events, counting }
    }

    async fn reconcile(&self, _: &Key) -> Result<Option<Duration>, Error> {
        let nodes = self.context.caches.nodes.all();
        let pods = self.context.caches.pods.all();
        let mut failure = None;
        let storage = Storage::known(&self.context.caches);
        for Decision { pod, verdict } in plan(&nodes, &pods, &storage, self.counting) {
            let done = match verdict {
                Verdict::Bind(node) => self.bind(&pod, &node).await,
                Verdict::Unschedulable(message) => self.refuse(&pod, &message).await,
            };
            // One pod that cannot be written must not keep the others from their node.
            failure = failure.or(done.err());
        }
        failure.map_or(Ok(None), Err)
    }
}

impl Scheduler {
    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), Error> {
        let key = Key::of(pod);
        let api: Api<Pod> = self.context.api(&key.namespace);
        let bound: Result<Value, _> =
            api.create_subresource("binding", &key.name, &posting(), &binding(pod, node)).await;
        bound.map_err(Error::on("bind pod", &key.name))?;
        // The next decision has to know that its devices are taken.
        let bound = api.get(&key.name).await.map_err(Error::on("read pod", &key.name))?;
        self.context.caches.pods.note(bound);
        let message = format!("Successfully assigned {key} to {node}");
        self.events.normal(pod, "Scheduled", &message).await;
        Ok(())
    }

    async fn refuse(&self, pod: &Pod, message: &str) -> Result<(), Error> {
        let old = condition(pod, "PodScheduled");
        let told = old.is_some_and(|old| {
            old.status == "False"
                && old.reason.as_deref() == Some("Unschedulable")
                && old.message.as_deref() == Some(message)
        });
        if told {
            return Ok(());
        }
        let since = old.filter(|old| old.status == "False");
        let since = since.and_then(|old| old.last_transition_time.clone());
        let patch = json!({"status": {"conditions": [{
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastProbeTime": null,
            "lastTransitionTime": since.unwrap_or_else(|| stamp(self.context.now())),
        }]}});
        let key = Key::of(pod);
        let api: Api<Pod> = self.context.api(&key.namespace);
        let told = api.patch_status(&key.name, &patching(), &Patch::Strategic(patch)).await;
        let told = told.map_err(Error::on("write the status of pod", &key.name))?;
        self.context.caches.pods.note(told);
        self.events.warning(pod, "FailedScheduling", message).await;
        Ok(())
    }
}

fn binding(pod: &Pod, node: &str) -> Binding {
    Binding {
        metadata: ObjectMeta {
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            uid: pod.metadata.uid.clone(),
            ..Default::default()
        },
        target: ObjectReference {
            kind: Some("Node".into()),
            name: Some(node.to_owned()),
            ..Default::default()
        },
    }
}
