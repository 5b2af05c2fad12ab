//! Deployments: ReplicaSets that replace each other.

mod plan;
mod scale;
mod sets;
mod status;
mod template;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, Patch, Preconditions},
};
use serde_json::json;

use self::{
    plan::{Action, Known},
    sets::{Sets, same_template},
    status::{PROGRESSING, new_condition, set_condition},
};
use super::{
    Caches, Context, Controller, Error, Key, Queue,
    cache::controller,
    owners::{Owner, selects},
    patching,
    pods::{is_for_ended_namespace, told},
    posting,
};

const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";

mod reasons {
    pub(super) const AVAILABLE: &str = "MinimumReplicasAvailable";
    pub(super) const UNAVAILABLE: &str = "MinimumReplicasUnavailable";
    pub(super) const CREATED: &str = "NewReplicaSetCreated";
    pub(super) const NOT_CREATED: &str = "ReplicaSetCreateError";
    pub(super) const FOUND: &str = "FoundNewReplicaSet";
    pub(super) const UPDATED: &str = "ReplicaSetUpdated";
    pub(super) const COMPLETE: &str = "NewReplicaSetAvailable";
    pub(super) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
    pub(super) const PAUSED: &str = "DeploymentPaused";
    pub(super) const RESUMED: &str = "DeploymentResumed";
}

pub(super) struct Deployments {
    context: Context,
}

impl Controller for Deployments {
    const NAME: &'static str = "deployment";

    fn new(context: Context, queue: &Arc<Queue>) -> Self {
        context.caches.deployments.feed(queue, |deployment| [Key::of(deployment)]);
        let caches = Arc::downgrade(&context.caches);
        // What pods do is heard of through their sets.
        context.caches.replica_sets.feed(queue, move |set| match controller(set) {
            Some(_) => Vec::from_iter(Key::of_controller(set, "Deployment")),
            None => caches.upgrade().map(|caches| suitors(&caches, set)).unwrap_or_default(),
        });
        Self { context }
    }

    async fn reconcile(&self, key: &Key) -> Result<Option<Duration>, Error> {
        let caches = &self.context.caches;
        let Some(deployment) = caches.deployments.get(key) else { return Ok(None) };
        let Some(spec) = &deployment.spec else { return Ok(None) };
        let owner = Owner { object: &*deployment, selector: &spec.selector, finalizer: None };
        let sets = caches.replica_sets.within(&key.namespace);
        let sets = self.context.claim(&owner, sets, &caches.replica_sets).await?;
        let known = Known {
            deployment: &deployment,
            spec,
            sets: Sets::of(&deployment, sets),
            pods: &caches.pods.within(&key.namespace),
            now: self.context.now(),
        };
        let plan = known.plan();
        for action in plan.actions {
            self.act(&deployment, spec, action).await?;
        }
        self.write_status(&deployment, plan.status, plan.revision).await?;
        Ok(plan.again.map(jiff::SignedDuration::unsigned_abs))
    }
}

/// Those that could adopt this set.
fn suitors(caches: &Caches, set: &ReplicaSet) -> Vec<Key> {
    let all = caches.deployments.within(set.metadata.namespace.as_deref().unwrap_or_default());
    let fit = all.iter().filter(|one| one.spec.as_ref().is_some_and(|s| selects(&s.selector, set)));
    fit.map(|deployment| Key::of(&**deployment)).collect()
}

impl Deployments {
    async fn act(
        &self,
        deployment: &Deployment,
        spec: &DeploymentSpec,
        action: Action,
    ) -> Result<(), Error> {
        match action {
            Action::Create(set) => self.create(deployment, spec, &set).await,
            Action::Annotate { set, annotations } => {
                let patch = json!({
                    "metadata": {"annotations": annotations},
                    "spec": {"minReadySeconds": spec.min_ready_seconds.unwrap_or_default()},
                });
                self.patch(&set, patch).await
            }
            Action::Scale { set, from, to } => {
                let sizes: std::collections::BTreeMap<_, _> = template::sizes(spec).into();
                let patch = json!({"metadata": {"annotations": sizes}, "spec": {"replicas": to}});
                self.patch(&set, patch).await?;
                self.tell_scaled(deployment, &set, from, to).await;
                Ok(())
            }
            Action::Delete(set) => self.delete(&set).await,
        }
    }

    async fn tell_scaled(&self, deployment: &Deployment, set: &ReplicaSet, from: i64, to: i64) {
        let direction = match from.cmp(&to) {
            std::cmp::Ordering::Less => "up",
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Greater => "down",
        };
        let name = set.name_any();
        let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
        self.context.events.normal(deployment, "ScalingReplicaSet", &message).await;
    }

    /// Only of the state that was looked at.
    async fn patch(&self, set: &ReplicaSet, mut patch: serde_json::Value) -> Result<(), Error> {
        let name = set.name_any();
        patch["metadata"]["resourceVersion"] = json!(set.metadata.resource_version);
        let api = self.context.api::<ReplicaSet>(&set.namespace().unwrap_or_default());
        let changed = api.patch(&name, &patching(), &Patch::Merge(patch)).await;
        let changed = changed.map_err(Error::on("change ReplicaSet", &name))?;
        self.context.caches.replica_sets.note(changed);
        Ok(())
    }

    async fn delete(&self, set: &ReplicaSet) -> Result<(), Error> {
        let name = set.name_any();
        let api = self.context.api::<ReplicaSet>(&set.namespace().unwrap_or_default());
        let only = Preconditions { uid: set.metadata.uid.clone(), resource_version: None };
        match api.delete(&name, &DeleteParams::default().preconditions(only)).await {
            Ok(answer) => self.context.caches.replica_sets.note_deletion(set, answer),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.context.caches.replica_sets.forget(set);
            }
            Err(error) => return Err(Error::on("delete ReplicaSet", &name)(error)),
        }
        Ok(())
    }

    async fn create(
        &self,
        deployment: &Deployment,
        spec: &DeploymentSpec,
        set: &ReplicaSet,
    ) -> Result<(), Error> {
        let name = set.name_any();
        let api = self.context.api::<ReplicaSet>(&set.namespace().unwrap_or_default());
        let error = match api.create(&posting(), set).await {
            Ok(made) => {
                self.context.caches.replica_sets.note(made);
                let size = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
                self.tell_scaled(deployment, set, 0, size.into()).await;
                return Ok(());
            }
            Err(error) => error,
        };
        match &error {
            kube::Error::Api(status) if status.code == 409 => {
                let found = api.get_opt(&name).await;
                let found = found.map_err(Error::on("read ReplicaSet", &name))?;
                self.settle_name(deployment, spec, found).await?;
            }
            error if is_for_ended_namespace(error) => return Ok(()),
            error => self.tell_not_created(deployment, spec, &name, &told(error)).await?,
        }
        Err(Error::on("create ReplicaSet", &name)(error))
    }

    /// The name is taken: by what we were about to make, or by something that hashes alike.
    async fn settle_name(
        &self,
        deployment: &Deployment,
        spec: &DeploymentSpec,
        found: Option<ReplicaSet>,
    ) -> Result<(), Error> {
        let Some(found) = found else { return Ok(()) };
        let owner = controller(&found).map(|owner| &owner.uid);
        let template = found.spec.as_ref().and_then(|spec| spec.template.as_ref());
        let is_ours = owner.is_some()
            && owner == deployment.meta().uid.as_ref()
            && template.is_some_and(|template| same_template(template, &spec.template));
        self.context.caches.replica_sets.note(found);
        if is_ours {
            return Ok(());
        }
        let mut status = deployment.status.clone().unwrap_or_default();
        let collisions = status.collision_count.unwrap_or_default().saturating_add(1);
        status.collision_count = Some(collisions);
        self.write_status(deployment, status, None).await
    }

    async fn tell_not_created(
        &self,
        deployment: &Deployment,
        spec: &DeploymentSpec,
        name: &str,
        reason: &str,
    ) -> Result<(), Error> {
        let message = format!("Failed to create new replica set {name:?}: {reason}");
        self.context.events.warning(deployment, reasons::NOT_CREATED, &message).await;
        if status::deadline(spec).is_none() {
            return Ok(());
        }
        let mut status = deployment.status.clone().unwrap_or_default();
        let text = (reasons::NOT_CREATED, &*message);
        let condition = new_condition(PROGRESSING, "False", text, self.context.now());
        set_condition(&mut status, condition);
        self.write_status(deployment, status, None).await
    }

    /// The revision goes with the status, as the status of a Deployment may carry annotations.
    async fn write_status(
        &self,
        deployment: &Deployment,
        status: DeploymentStatus,
        revision: Option<String>,
    ) -> Result<(), Error> {
        let known = deployment.annotations().get(REVISION);
        let is_numbered = revision.is_none() || revision.as_ref() == known;
        if is_numbered && deployment.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let name = deployment.name_any();
        let mut changed = Deployment { status: Some(status), ..deployment.clone() };
        if let Some(revision) = revision {
            changed.annotations_mut().insert(REVISION.to_owned(), revision);
        }
        let api = self.context.api::<Deployment>(&deployment.namespace().unwrap_or_default());
        let written = api.replace_status(&name, &posting(), &changed).await;
        let written = written.map_err(Error::on("write the status of Deployment", &name))?;
        self.context.caches.deployments.note(written);
        Ok(())
    }
}
