//! Whether the claims of a pod are such that it may go to a node.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::{
    core::v1::{PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};

use super::super::{
    Caches, Key,
    claims::{binds_late, class_name, is_bound, keys_of},
};

/// What there is to be mounted.
#[derive(Default)]
pub(super) struct Storage {
    claims: BTreeMap<Key, Arc<PersistentVolumeClaim>>,
    /// Of those whose volumes are bound when they are used.
    late: Vec<String>,
}

impl Storage {
    pub(super) fn known(caches: &Caches) -> Self {
        Self::of(caches.claims.all(), &caches.classes.all())
    }

    pub(super) fn of(
        claims: Vec<Arc<PersistentVolumeClaim>>,
        classes: &[Arc<StorageClass>],
    ) -> Self {
        let late = classes.iter().filter(|class| binds_late(class));
        Self {
            claims: claims.into_iter().map(|claim| (Key::of(&*claim), claim)).collect(),
            late: late.filter_map(|class| class.metadata.name.clone()).collect(),
        }
    }

    /// Why the pod has to wait.
    pub(super) fn missing(&self, pod: &Pod) -> Option<String> {
        let keys = keys_of(pod);
        let wrong = keys.iter().find_map(|key| {
            let name = &key.name;
            let Some(claim) = self.claims.get(key) else {
                return Some(format!("persistentvolumeclaim {name:?} not found"));
            };
            let leaves = claim.metadata.deletion_timestamp.is_some();
            leaves.then(|| format!("persistentvolumeclaim {name:?} is being deleted"))
        });
        let claims = keys.iter().filter_map(|key| self.claims.get(key));
        let mut early = claims.filter(|claim| {
            let class = class_name(claim);
            !class.is_some_and(|class| self.late.iter().any(|late| late == class))
        });
        let unbound = || "pod has unbound immediate PersistentVolumeClaims".to_owned();
        wrong.or_else(|| early.any(|claim| !is_bound(claim)).then(unbound))
    }
}
