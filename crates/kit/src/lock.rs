//! Locks on files that whoever has them removes in the end.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

/// As long as the file is open, nobody else has it.
pub fn wait(path: &Path) -> io::Result<File> {
    loop {
        if let Some(file) = take(path, |file| file.lock().map(|()| true))? {
            return Ok(file);
        }
    }
}

/// Nothing while somebody else has it.
pub fn attempt(path: &Path) -> io::Result<Option<File>> {
    take(path, |file| match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(false),
        // On a disk that knows no locks nobody can be told from another.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(true),
    })
}

/// So often the folder may go between two steps. Where it seems to more often it is something else,
/// such as a link to nowhere.
const TRIES: usize = 1000;

/// Whoever had it before removes it in the end, and somebody else may have made another one since.
fn take(path: &Path, lock: impl Fn(&File) -> io::Result<bool>) -> io::Result<Option<File>> {
    let mut tries = 0;
    loop {
        crate::whole::make_parent(path)?;
        let file = match File::options().create(true).truncate(false).write(true).open(path) {
            // The folder went with it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => {
                tries += 1;
                continue;
            }
            file => file?,
        };
        if !lock(&file)? {
            return Ok(None);
        }
        if is_at(&file, path)? {
            return Ok(Some(file));
        }
    }
}

/// Not some other file of this name.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    let is_same = |there: fs::Metadata| (there.dev(), there.ino()) == (own.dev(), own.ino());
    Ok(fs::metadata(path).is_ok_and(is_same))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_nowhere_is_an_error_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::os::unix::fs::symlink(folder.path().join("none/there"), &path).unwrap();
        assert_eq!(wait(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_lock_that_was_removed_and_made_anew_by_another_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("org/tiny@1/lock");
        let first = wait(&path).unwrap();
        assert!(is_at(&first, &path).unwrap());
        assert!(attempt(&path).unwrap().is_none());
        fs::remove_dir_all(folder.path().join("org")).unwrap();
        assert!(!is_at(&first, &path).unwrap());
        let second = wait(&path).unwrap();
        assert!(!is_at(&first, &path).unwrap() && is_at(&second, &path).unwrap());
    }
}
