//! The end of an object: clean-up before it may go, for domains that need one.

use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    domain::{Cleanup, Domain},
    error::chain,
    metrics::Outcome,
    object::Object,
    pipeline::{Pass, Pipeline, look},
    queue::Again,
    reader,
};

impl<D: Domain> Pipeline<D> {
    /// Before anything is made that outlives the object. `Some` ends the pass.
    pub(crate) async fn ensure_finalizer(
        &self,
        stored: &Object,
        metadata: &ObjectMeta,
    ) -> Option<Pass> {
        let finalizer = self.identity.finalizer?;
        let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
        if finalizers.iter().any(|known| known == finalizer) {
            return None;
        }
        finalizers.push(finalizer.to_owned());
        Some(self.set_finalizers(stored, finalizers).await)
    }

    /// Whether nothing is left of what the finalizer was for.
    pub(crate) fn is_needlessly_finalized(
        &self,
        object: &D::Object,
        observed: &D::Observed,
    ) -> bool {
        use kube::Resource;
        let present = object.meta().finalizers.iter().flatten();
        self.identity.finalizer.is_some_and(|finalizer| present.into_iter().any(|f| f == finalizer))
            && !self.domain.needs_finalizer(object)
            && matches!(self.domain.cleanup(object, observed), Cleanup::Done)
    }

    pub(crate) async fn drop_finalizer(&self, stored: &Object) -> Pass {
        // The status may have been written since the object was read.
        let newest = self.cache.seen(&self.kind, &stored.key);
        let newest = newest.as_deref().unwrap_or(stored);
        let mut finalizers = newest.finalizers.clone();
        finalizers.retain(|known| Some(known.as_str()) != self.identity.finalizer);
        self.set_finalizers(newest, finalizers).await
    }

    pub(crate) async fn finalize(&self, stored: &Object, object: &D::Object) -> Pass {
        use kube::Resource;
        let Some(finalizer) = self.identity.finalizer else { return Pass::IDLE };
        let mut finalizers = object.meta().finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|known| known == finalizer) {
            return Pass::IDLE;
        }
        match self.namespace_ends(stored).await {
            Ok(namespace_ends) => {
                if let Some(pass) = self.clean_up(stored, object, namespace_ends).await {
                    return pass;
                }
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "cannot tell whether the namespace ends");
                return Pass::RETRY;
            }
        }
        finalizers.retain(|known| known != finalizer);
        self.set_finalizers(stored, finalizers).await
    }

    async fn clean_up(
        &self,
        stored: &Object,
        object: &D::Object,
        namespace_ends: bool,
    ) -> Option<Pass> {
        let look = look(&self.domain, &self.reader, object, (self.clock)()).await;
        let Cleanup::Pending(mut plan) = self.domain.cleanup(object, &look.observed) else {
            return None;
        };
        if namespace_ends {
            // Everything in it goes anyway, and nothing can be written to it any more.
            plan.apply.retain(|desired| desired.key.namespace.is_none());
            plan.delete.retain(|removal| removal.key.namespace.is_none());
            if plan.apply.is_empty() && plan.delete.is_empty() {
                return None;
            }
        }
        let applied = self.applier.run(&self.parent(stored), &plan, &look.looked).await;
        if let Some(failure) = applied.failures.first() {
            tracing::warn!(error = chain(&failure.error), "clean-up failed");
            self.tell_failures(stored, &applied.failures).await;
            return Some(Pass::RETRY);
        }
        // Asked again once it is gone: that is an event, or at the latest after the delay asked for.
        let again = plan.requeue_after.map_or(Again::Backoff, Again::After);
        Some(Pass { again, outcome: Outcome::Success })
    }

    /// A Forbidden answer counts as yes: a namespace that is gone cannot be asked about.
    async fn namespace_ends(&self, stored: &Object) -> Result<bool, kube::Error> {
        let Some(namespace) = &stored.key.namespace else { return Ok(false) };
        match Api::<Namespace>::all(self.client.clone()).get_opt(namespace).await {
            Ok(Some(found)) => Ok(found.metadata.deletion_timestamp.is_some()),
            Ok(None) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// With the version read, so that a finalizer somebody else adds meanwhile is not lost.
    async fn set_finalizers(&self, stored: &Object, finalizers: Vec<String>) -> Pass {
        let patch = json!({ "metadata": {
            "finalizers": finalizers,
            "resourceVersion": stored.resource_version,
        }});
        let api = reader::api(&self.client, &self.kind, stored.key.namespace.as_deref());
        let params = PatchParams::default();
        match api.patch(&stored.key.name, &params, &Patch::Merge(&patch)).await {
            Ok(_) => Pass::IDLE,
            Err(kube::Error::Api(status)) if status.code == 404 => Pass::IDLE,
            Err(kube::Error::Api(status)) if status.code == 409 => Pass::RETRY,
            Err(error) => {
                tracing::warn!(error = chain(&error), "cannot change finalizers");
                Pass::RETRY
            }
        }
    }
}
