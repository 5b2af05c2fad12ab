//! The end of volumes: when they hold too much, and when their pod is gone.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use k8s_openapi::api::core::v1::Pod;

use super::directory;
use crate::{builtin::quantity::Quantity, directories::remove_all, node::places::Places};

/// Removes all files of a pod, its secrets first. Done twice it does nothing.
pub fn remove(places: &Places, uid: &str) -> io::Result<()> {
    let secrets = remove_private(places, uid);
    // One that cannot be removed does not keep the other.
    secrets.and(remove_all(&places.pod(uid).map_err(io::Error::other)?))
}

/// Removes what only a pod that runs needs.
pub fn remove_private(places: &Places, uid: &str) -> io::Result<()> {
    remove_all(&places.private_pod(uid).map_err(io::Error::other)?)
}

/// The message of the eviction that is due because a volume of the pod has outgrown its limit.
pub fn over_limit(pod: &Pod, places: &Places) -> io::Result<Option<String>> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    for volume in volumes.into_iter().flatten() {
        let limit = volume.empty_dir.as_ref().and_then(|source| source.size_limit.as_ref());
        let Some(written) = limit else { continue };
        let Ok(limit) = Quantity::parse(&written.0) else { continue };
        let dir = directory(volume, pod, places).map_err(io::Error::other)?;
        // No limit is meant by zero.
        if limit.nano() > 0 && i128::from(used(&dir)?) * 1_000_000_000 > limit.nano() {
            return Ok(Some(format!(
                "Usage of EmptyDir volume {:?} exceeds the limit {:?}. ",
                volume.name, written.0
            )));
        }
    }
    Ok(None)
}

/// Bytes of disk below a path. What vanishes meanwhile counts nothing.
fn used(path: &Path) -> io::Result<u64> {
    let gone = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Ok(0),
        _ => Err(error),
    };
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) => return gone(error),
    };
    let own = found.blocks() * 512;
    if !found.is_dir() {
        return Ok(own);
    }
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        // It is the pod's to close its directories; they are counted without what is in them.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(own),
        Err(error) => return gone(error).map(|nothing| own + nothing),
    };
    let mut sum = own;
    for entry in entries {
        sum += used(&entry?.path())?;
    }
    Ok(sum)
}
