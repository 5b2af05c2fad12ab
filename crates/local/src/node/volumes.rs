//! The volumes of pods as directories, and what of them a container sees.
//!
//! What is in a volume is decided by `payload`, which only knows objects; the rest writes files.
//! Everything here waits for the disk: call it where that does no harm.

mod atomic;
mod host;
mod kubeconfig;
mod payload;
mod removal;
mod subpath;
#[cfg(test)]
mod tests;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs::{self, DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, lchown},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, Volume, VolumeMount};

pub use kubeconfig::write as write_kubeconfig;
pub use removal::{over_limit, remove, remove_private};

use super::{
    command::expand,
    environment::{self, Facts, Variables},
    places::{Places, Unsafe, plain},
    sources::{Sources, mounted_volumes},
    translate::{Mount, Mounts},
    users::{self, Readers, User},
};

/// Where the last words of a container go unless it says otherwise.
const LAST_WORDS: &str = "/dev/termination-log";

/// A volume that cannot be had. The text is that of an event `FailedMount`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MountVolume.SetUp failed for volume {volume:?} : {why}")]
pub struct Error {
    pub volume: String,
    pub why: String,
}

/// The directories of a pod's volumes, by name.
pub type Directories = BTreeMap<String, PathBuf>;

/// Makes all volumes that the pod mounts, or brings them up to date. It fails at the first that
/// cannot be had; what there is stays for the next try.
///
/// Called again with nothing changed, it writes nothing.
pub fn set_up(
    pod: &Pod,
    places: &Places,
    sources: &Sources,
    facts: Facts<'_>,
    now: Timestamp,
) -> Result<Directories, Error> {
    let mut directories = Directories::new();
    for volume in mounted_volumes(pod) {
        let dir = set_up_one(volume, pod, places, sources, facts, now);
        let dir = dir.map_err(|why| Error { volume: volume.name.clone(), why })?;
        directories.insert(volume.name.clone(), dir);
    }
    Ok(directories)
}

fn set_up_one(
    volume: &Volume,
    pod: &Pod,
    places: &Places,
    sources: &Sources,
    facts: Facts<'_>,
    now: Timestamp,
) -> Result<PathBuf, String> {
    let readers = Readers::of(pod, &volume.name, users::may_choose());
    if let Some(source) = &volume.host_path {
        return host::path(source);
    }
    if let Some(source) = &volume.persistent_volume_claim {
        return host::claimed(&source.claim_name, sources, places, readers);
    }
    let dir = directory(volume, pod, places).map_err(|error| error.to_string())?;
    if is_written(volume) {
        let private = is_private(volume);
        if private && readers == Readers::Everybody {
            return Err("containers of different users share it: set fsGroup for them".into());
        }
        let payload = payload::of(volume, pod, sources, facts)?;
        let how = atomic::How { private, readers };
        atomic::write(&dir, &payload, how, now).map_err(|error| told(&dir, &error))?;
    } else if volume.empty_dir.is_some() {
        let made = make_dir(&dir).and_then(|()| readers.may_fill(&dir));
        made.map_err(|error| told(&dir, &error))?;
    } else {
        return Err("this kind of volume is not supported on a local node".into());
    }
    Ok(dir)
}

/// Whether it is filled from objects, and follows them.
fn is_written(volume: &Volume) -> bool {
    volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.downward_api.is_some()
        || volume.projected.is_some()
}

/// Whether it should not outlive the machine's memory.
fn is_private(volume: &Volume) -> bool {
    let projected = volume.projected.iter().flat_map(|source| source.sources.iter().flatten());
    let in_memory = |medium: &String| medium == "Memory";
    volume.secret.is_some()
        || volume.empty_dir.as_ref().and_then(|dir| dir.medium.as_ref()).is_some_and(in_memory)
        || projected
            .into_iter()
            .any(|one| one.secret.is_some() || one.service_account_token.is_some())
}

fn directory(volume: &Volume, pod: &Pod, places: &Places) -> Result<PathBuf, Unsafe> {
    Ok(base(volume, pod, places)?.join("volumes").join(plain(&volume.name)?))
}

fn base(volume: &Volume, pod: &Pod, places: &Places) -> Result<PathBuf, Unsafe> {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    if is_private(volume) { places.private_pod(uid) } else { places.pod(uid) }
}

/// What a container sees of the volumes, its last words included, whose file is made anew. To be
/// called before each start; `variables` are those of the pod, and `user` runs the container.
///
/// The error is `CreateContainerConfigError`.
pub fn mounts(
    pod: &Pod,
    container: &Container,
    user: Option<User>,
    places: &Places,
    directories: &Directories,
    variables: &Variables,
) -> Result<Mounts, environment::Error> {
    let mut mounts = vec![last_words(pod, container, user, places).map_err(environment::Error)?];
    for (at, mount) in container.volume_mounts.iter().flatten().enumerate() {
        let (volume, dir) = mounted(pod, &mount.name, directories).ok_or_else(|| {
            let (name, container) = (&mount.name, &container.name);
            environment::Error(format!(
                "cannot find volume {name:?} to mount into container {container:?}"
            ))
        })?;
        let sub = sub_path(mount, variables)?;
        let real = match &*sub {
            "" => dir.clone(),
            sub => part_of(volume, dir, pod, (container, user), at, sub, places)
                .map_err(|error| refused(error, mount, container))?,
        };
        let claim = volume.persistent_volume_claim.as_ref().and_then(|claim| claim.read_only);
        let read_only = mount.read_only == Some(true) || claim == Some(true) || is_written(volume);
        mounts.push(Mount { path: mount.mount_path.clone(), real, read_only });
    }
    Ok(Mounts::new(mounts))
}

fn refused(
    error: subpath::Error,
    mount: &VolumeMount,
    container: &Container,
) -> environment::Error {
    environment::Error(match error {
        subpath::Error::Path(text) => text,
        // Where the files of a machine are is not for those who may only read the pod.
        subpath::Error::Disk(error) => {
            tracing::warn!(error, "cannot prepare a part of a volume");
            format!(
                "failed to prepare subPath for volumeMount {:?} of container {:?}",
                mount.name, container.name
            )
        }
    })
}

fn mounted<'a>(
    pod: &'a Pod,
    name: &str,
    directories: &'a Directories,
) -> Option<(&'a Volume, &'a PathBuf)> {
    let volumes = pod.spec.as_ref()?.volumes.as_ref()?;
    Some((volumes.iter().find(|volume| volume.name == name)?, directories.get(name)?))
}

fn sub_path(mount: &VolumeMount, variables: &Variables) -> Result<String, environment::Error> {
    let Some(text) = mount.sub_path_expr.as_deref().filter(|text| !text.is_empty()) else {
        return Ok(mount.sub_path.clone().unwrap_or_default());
    };
    let missing = RefCell::new(None);
    let expanded = expand(text, |name| {
        let value = variables.get(name).cloned();
        if value.is_none() {
            missing.borrow_mut().get_or_insert_with(|| name.to_owned());
        }
        value
    });
    match missing.into_inner() {
        Some(name) => Err(environment::Error(format!("missing value for {name:?}"))),
        None => Ok(expanded),
    }
}

/// A part of a volume. What follows objects is copied, because such a mount does not follow them.
fn part_of(
    volume: &Volume,
    dir: &Path,
    pod: &Pod,
    (container, user): (&Container, Option<User>),
    at: usize,
    sub: &str,
    places: &Places,
) -> Result<PathBuf, subpath::Error> {
    let readers = user.map_or(Readers::Node, Readers::One);
    let part = subpath::beneath(dir, sub, readers)?;
    if !is_written(volume) {
        return Ok(part);
    }
    let unsafe_name = |error: Unsafe| subpath::Error::Disk(error.to_string());
    let copies = base(volume, pod, places).map_err(unsafe_name)?.join("parts");
    let copy = copies.join(plain(&container.name).map_err(unsafe_name)?).join(at.to_string());
    subpath::copy(&part, &copy, readers)
        .map_err(|error| subpath::Error::Disk(told(&copy, &error)))?;
    Ok(copy)
}

fn last_words(
    pod: &Pod,
    container: &Container,
    user: Option<User>,
    places: &Places,
) -> Result<Mount, String> {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let real = places.last_words(uid, &container.name).map_err(|error| error.to_string())?;
    let fresh = || {
        if let Some(dir) = real.parent() {
            make_dir(dir)?;
        }
        match fs::remove_file(&real) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&real)?;
        user.map_or(Ok(()), |user| lchown(&real, Some(user.uid), Some(user.gid)))
    };
    fresh().map_err(|error: io::Error| told(&real, &error))?;
    let path = container.termination_message_path.clone().filter(|path| !path.is_empty());
    Ok(Mount { path: path.unwrap_or_else(|| LAST_WORDS.into()), real, read_only: false })
}

/// With all above it, for the owner alone.
pub(super) fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

fn told(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
