//! The volume that a run works on.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use windlass_api::model::artifact::Storage;

use super::super::names::Names;
use super::super::run::Run;

pub(in super::super) fn claim(
    names: &Names,
    version: &str,
    run: &Run,
    storage: &Storage,
) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        metadata: names.metadata(names.claim(), version, run),
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), storage.size.clone())])),
                ..Default::default()
            }),
            // An empty name is a choice too: no class at all.
            storage_class_name: storage.storage_class_name.clone(),
            ..Default::default()
        }),
        ..Default::default()
    }
}
