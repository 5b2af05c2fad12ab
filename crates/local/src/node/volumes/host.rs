//! Volumes that are directories of the machine.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::{HostPathVolumeSource, PersistentVolume, PersistentVolumeClaim};

use super::{make_dir, told};
use crate::node::{places::Places, sources::Sources, users::Readers};

/// A path of the machine, checked and made as its type says.
pub(super) fn path(source: &HostPathVolumeSource) -> Result<PathBuf, String> {
    let path = PathBuf::from(&source.path);
    if path.components().any(|part| part == std::path::Component::ParentDir) {
        return Err(format!("invalid HostPath `{}`: must not contain '..'", source.path));
    }
    let wrong = |what: &str| format!("hostPath type check failed: {} is not {what}", source.path);
    let found = fs::metadata(&path).ok().map(|found| found.file_type());
    let kind = source.type_.as_deref().unwrap_or_default();
    let fits = match (kind, found) {
        ("", _) => return Ok(path),
        ("DirectoryOrCreate", None) => {
            make_dir(&path).map_err(|error| told(&path, &error))?;
            return Ok(path);
        }
        ("FileOrCreate", None) => {
            let made = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
            made.map_err(|error| told(&path, &error))?;
            return Ok(path);
        }
        ("Directory" | "DirectoryOrCreate", found) => found.is_some_and(|found| found.is_dir()),
        ("File" | "FileOrCreate", found) => found.is_some_and(|found| found.is_file()),
        ("Socket", found) => found.is_some_and(|found| found.is_socket()),
        ("CharDevice", found) => found.is_some_and(|found| found.is_char_device()),
        ("BlockDevice", found) => found.is_some_and(|found| found.is_block_device()),
        (other, _) => return Err(format!("{other} is an invalid volume type")),
    };
    match (fits, kind) {
        (true, _) => Ok(path),
        (_, "Directory" | "DirectoryOrCreate") => Err(wrong("a directory")),
        (_, "File" | "FileOrCreate") => Err(wrong("a file")),
        (_, "Socket") => Err(wrong("a socket file")),
        (_, "CharDevice") => Err(wrong("a character device")),
        _ => Err(wrong("a block device")),
    }
}

/// The directory behind a claim. Ours are made when they are first used.
pub(super) fn claimed(
    name: &str,
    sources: &Sources,
    places: &Places,
    readers: Readers,
) -> Result<PathBuf, String> {
    let found = sources.claims.get(name);
    let missing = || format!("persistentvolumeclaim {name:?} not found");
    let found = found.ok_or_else(missing)?;
    let claim = found.claim.as_ref().map_err(Clone::clone)?.as_ref().ok_or_else(missing)?;
    let volume = found.volume.as_ref().map_err(Clone::clone)?;
    // A claim may name the volume of another, and a volume may be kept for a claim of this name.
    let volume = volume.as_ref().filter(|volume| is_for(volume, claim));
    let volume = volume.ok_or_else(|| format!("claim {name:?} is not bound"))?;
    let volume_name = volume.metadata.name.as_deref().unwrap_or_default();
    let dir = source_of(volume)
        .ok_or_else(|| format!("volume {volume_name:?} has no directory on a local node"))?;
    let own = places.persistent(volume_name).is_ok_and(|own| own == dir);
    if own {
        let made = make_dir(&dir).and_then(|()| readers.may_fill(&dir));
        made.map_err(|error| told(&dir, &error))?;
    } else if !dir.is_dir() {
        return Err(format!("path {:?} does not exist", dir.display().to_string()));
    }
    Ok(dir)
}

fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    let bound = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    phase == Some("Bound")
        && bound.is_some_and(|bound| {
            bound.uid.is_some()
                && bound.uid == claim.metadata.uid
                && bound.namespace == claim.metadata.namespace
                && bound.name == claim.metadata.name
        })
}

fn source_of(volume: &PersistentVolume) -> Option<PathBuf> {
    let spec = volume.spec.as_ref()?;
    let local = spec.local.as_ref().map(|source| &source.path);
    let path = local.or(spec.host_path.as_ref().map(|source| &source.path))?;
    Some(Path::new(path).to_owned())
}
