//! The end of directories that somebody else has written to.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// Whatever rights a process has taken from its files; links are not followed. What is not there
/// needs no removal.
pub fn remove_all(path: &Path) -> io::Result<()> {
    match try_remove(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path);
            try_remove(path)
        }
        done => done,
    }
}

fn try_remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes directories writable as far as that is ours to do.
fn open_up(dir: &Path) {
    if !fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir()) {
        return;
    }
    // If it fails, the removal tells.
    let _ = fs::set_permissions(dir, Permissions::from_mode(0o700));
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        open_up(&entry.path());
    }
}
