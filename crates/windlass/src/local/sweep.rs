//! What killed ephemeral clusters have left: their processes and their directories.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::Context;
use rustix::process::geteuid;
use windlass_local::{
    directories::remove_all,
    node::{places::Places, recovery},
};

use super::{home::PREFIX, lock::Lock};

/// The file by which a directory is known as one that is to leave nothing.
const MARK: &str = "ephemeral";

pub(super) fn mark(dir: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.join(MARK)).map(drop)
}

/// Ends and removes what was left among these temporary files, as far as it is this user's. One that
/// cannot be removed is no reason not to start.
pub(super) fn sweep(all: &Path) {
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for dir in named.map(|entry| entry.path()).filter(|dir| is_marked(dir)) {
        match sweep_one(&dir) {
            Ok(true) => tracing::info!(dir = %dir.display(), "removed what was left behind"),
            Ok(false) => {}
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(error, "cannot remove what was left behind");
            }
        }
    }
}

/// A directory that only this user can have marked.
fn is_marked(dir: &Path) -> bool {
    let user = geteuid().as_raw();
    let own = |path: PathBuf| fs::symlink_metadata(path).ok().filter(|meta| meta.uid() == user);
    // Users of pods may come through it, but nobody else reads or writes there.
    let is_closed = |meta: &fs::Metadata| meta.is_dir() && meta.permissions().mode() & 0o066 == 0;
    own(dir.to_owned()).is_some_and(|meta| is_closed(&meta))
        && own(dir.join(MARK)).is_some_and(|meta| meta.is_file())
}

/// False if somebody still runs there.
fn sweep_one(dir: &Path) -> anyhow::Result<bool> {
    // Held to the end, so that no two sweep at once.
    let Ok(_lock) = Lock::take_again(dir)? else { return Ok(false) };
    recovery::end_processes(&Places::choose(dir, None).pods());
    remove_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_marked_and_closed_is_swept() {
        let tmp = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32, files: &[&str]| {
            let dir = tmp.path().join(name);
            fs::create_dir(&dir).unwrap();
            files.iter().for_each(|file| fs::write(dir.join(file), "").unwrap());
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            dir
        };
        let left = [
            make("windlass-1", 0o700, &[MARK, "lock", "admin.token"]),
            make("windlass-6", 0o711, &[MARK, "lock"]),
        ];
        let kept = [
            make("windlass-2", 0o700, &["lock", "store.redb"]),
            make("windlass-3", 0o755, &[MARK, "lock"]),
            make("windlass-4", 0o700, &[MARK]),
            make("other", 0o700, &[MARK, "lock"]),
        ];
        let link = tmp.path().join("windlass-5");
        std::os::unix::fs::symlink(&kept[3], &link).unwrap();
        sweep(tmp.path());
        assert!(!left.iter().any(|dir| dir.exists()));
        for dir in kept.iter().chain([&link]) {
            assert!(dir.exists(), "{}", dir.display());
        }
    }
}
