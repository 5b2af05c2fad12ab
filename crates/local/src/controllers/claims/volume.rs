//! What becomes of a volume when its claim comes or goes.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use super::claim::{PROVISIONED_BY, PROVISIONER, annotation, volume_name};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Rest,
    /// The phase that its status has to show.
    Show(&'static str),
    /// Its content has no owner any more: first the directory goes, then the object.
    Remove(PathBuf),
}

/// `claim` is the one that the volume names, whether or not it is the same as then.
pub(super) fn next(
    volume: &PersistentVolume,
    claim: Option<&PersistentVolumeClaim>,
    directory: Option<&Path>,
) -> Step {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let uid = reference.and_then(|reference| reference.uid.as_deref()).unwrap_or_default();
    if uid.is_empty() {
        return show(volume, "Available");
    }
    let Some(claim) = claim.filter(|claim| claim.metadata.uid.as_deref() == Some(uid)) else {
        return match removable(volume, directory) {
            Some(path) if phase(volume) == Some("Released") => Step::Remove(path),
            _ => show(volume, "Released"),
        };
    };
    if volume_name(claim) == volume.metadata.name.as_deref() {
        return show(volume, "Bound");
    }
    // The claim has not said yes yet, or has gone elsewhere meanwhile.
    Step::Rest
}

fn show(volume: &PersistentVolume, wanted: &'static str) -> Step {
    if phase(volume) == Some(wanted) { Step::Rest } else { Step::Show(wanted) }
}

fn phase(volume: &PersistentVolume) -> Option<&str> {
    volume.status.as_ref()?.phase.as_deref()
}

/// The directory of a volume that was made here and may go with its claim. A path that was not is
/// never touched, whatever the object says.
fn removable(volume: &PersistentVolume, directory: Option<&Path>) -> Option<PathBuf> {
    let spec = volume.spec.as_ref()?;
    let ours = annotation(&volume.metadata, PROVISIONED_BY) == Some(PROVISIONER);
    let delete = spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete");
    let name = volume.metadata.name.as_deref()?;
    let path = directory?.join(name);
    let same = spec.local.as_ref().is_some_and(|local| Path::new(&local.path) == path);
    (ours && delete && same && name.starts_with("pvc-")).then_some(path)
}
