//! Children that are held until they have been read, and their release.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{Applier, Parent, Step};
use crate::{
    error::{Error, categorise_write, chain},
    kind::{Kind, ObjectKey},
    labels::owner_label,
    object::Object,
    plan::{Ownership, Release},
};

impl Applier {
    pub(super) async fn release(&self, parent: &Parent, release: &Release) -> Result<Step, Error> {
        let Release { kind, key } = release;
        let failed = |error| release_failed(kind, key, &error);
        match self.live(kind, key).await.map_err(failed)? {
            Some(live) if self.is_ours(parent, Ownership::Owned, &live) && self.holds(&live) => {
                self.let_go(kind, &live).await
            }
            _ => Ok(Step::Unchanged),
        }
    }

    /// Lets go what was deleted and has no parent of this kind any more that would do it.
    pub(crate) async fn release_left_behind(
        &self,
        parent: &Kind,
        key: &ObjectKey,
        alive: Option<&str>,
        kinds: &[Kind],
    ) -> Result<(), Error> {
        if self.hold.is_none() {
            return Ok(());
        }
        let is_left = |owner: &OwnerReference| {
            owner.kind == parent.kind && owner.name == key.name && Some(owner.uid.as_str()) != alive
        };
        let selector = crate::fetch::Selector::label(self.name_label, &owner_label(&key.name));
        for kind in kinds {
            for child in self.cache.list_seen(kind, key.namespace.as_deref(), &selector) {
                // One without an owner was orphaned, and nobody else will let it go.
                let left = child.controller().is_none_or(is_left);
                if left && child.deleting && self.holds(&child) {
                    self.let_go(kind, &child).await?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn holds(&self, live: &Object) -> bool {
        self.hold.is_some_and(|hold| live.finalizers.iter().any(|finalizer| finalizer == hold))
    }

    /// With the version read, so that a finalizer somebody else adds meanwhile is not lost.
    async fn let_go(&self, kind: &Kind, live: &Object) -> Result<Step, Error> {
        let mut finalizers = live.finalizers.clone();
        finalizers.retain(|finalizer| Some(finalizer.as_str()) != self.hold);
        let patch = json!({ "metadata": {
            "finalizers": finalizers,
            "resourceVersion": live.resource_version,
        }});
        let params = PatchParams { field_manager: Some(self.manager.into()), ..<_>::default() };
        let api = self.api(kind, &live.key);
        match api.patch(&live.key.name, &params, &Patch::Merge(&patch)).await {
            Ok(now) => {
                let now = Arc::new(Object::from(now));
                if now.deleting && now.finalizers.is_empty() {
                    // That was the last thing it waited for.
                    self.cache.remove(kind, now);
                } else {
                    self.cache.put(kind, now);
                }
                Ok(Step::Written(None))
            }
            // Gone, or changed since it was read, which is an event.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                Ok(Step::Unchanged)
            }
            Err(error) => Err(release_failed(kind, &live.key, &error)),
        }
    }
}

fn release_failed(kind: &Kind, key: &ObjectKey, error: &kube::Error) -> Error {
    let message = format!("release failed for {kind} {key}: {}", chain(error));
    Error { message, ..categorise_write(error) }
}
