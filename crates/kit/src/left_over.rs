//! What processes that were killed have left behind. Whatever is still in use is locked by its user.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, SystemTime},
};

/// In a folder that is in use.
const LOCK: &str = "lock";
/// A folder without a lock may be one that gets it just now.
const YOUNG: Duration = Duration::from_secs(60);

/// A folder for a while, gone when it is dropped, or later if its process is killed.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
    _lock: File,
}

impl Folder {
    pub(crate) fn new(parent: &Path, prefix: &str) -> io::Result<Self> {
        loop {
            let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?;
            let path = folder.path().join(LOCK);
            let lock = match File::options().create_new(true).write(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                lock => lock?,
            };
            if is_held(&lock, &path)? {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A file for a while, likewise.
pub(crate) fn file(parent: &Path, prefix: &str) -> io::Result<tempfile::NamedTempFile> {
    loop {
        let file = tempfile::Builder::new().prefix(prefix).tempfile_in(parent)?;
        if is_held(file.as_file(), file.path())? {
            return Ok(file);
        }
    }
}

/// Locked, and not taken for left over before that.
fn is_held(file: &File, path: &Path) -> io::Result<bool> {
    // On a disk that knows no locks nothing is ever known to be left over.
    if let Err(error) = file.lock() {
        tracing::debug!(%error, "no locks here");
    }
    let own = file.metadata()?;
    Ok(fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino())))
}

/// Removes what begins so and nobody holds. What cannot be removed stays, which only takes room.
pub(crate) fn remove(parent: &Path, prefix: &str) {
    for child in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = child.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
        if is_ours && let Err(error) = remove_one(&child.path()) {
            tracing::debug!(%error, path = %child.path().display(), "it stays");
        }
    }
}

fn remove_one(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    let lock = if found.is_dir() { path.join(LOCK) } else { path.to_owned() };
    // It is held until it is gone, so that nobody takes it meanwhile.
    let _held = match File::options().write(true).open(&lock) {
        Ok(file) => match file.try_lock() {
            Ok(()) => Some(file),
            Err(fs::TryLockError::WouldBlock) => return Ok(()),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let age = SystemTime::now().duration_since(found.modified()?);
            if age.is_ok_and(|age| age < YOUNG) {
                return Ok(());
            }
            None
        }
        Err(error) => return Err(error),
    };
    match found.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_removed_and_the_rest_stays() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let (folder, file) = (Folder::new(parent.path(), "x-").unwrap(), file(parent.path(), "x-"));
        let file = file.unwrap();
        for name in ["x-dead", "x-new", "y-other"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("part"), "part").unwrap();
        }
        fs::write(at("x-dead").join(LOCK), "").unwrap();
        fs::write(at("x-file"), "part").unwrap();
        remove(parent.path(), "x-");
        assert!(folder.path().exists() && file.path().exists(), "they are in use");
        assert!(at("x-new").exists(), "it gets its lock just now");
        assert!(at("y-other").exists() && !at("x-dead").exists() && !at("x-file").exists());
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }
}
