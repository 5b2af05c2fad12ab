//! Who runs on a directory. The kernel is asked instead of a file with a number in it: a lock ends
//! with its holder, however that ends, and names the process that has it.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::Context;
use rustix::{
    fs::{FlockOperation, fcntl_lock},
    io::Errno,
    process::{Flock, FlockType, Pid, fcntl_getlk},
};

const FILE: &str = "lock";

/// Held as long as this lives. The file must not be opened a second time by this process: closing any
/// handle on it would end the lock.
pub(super) struct Lock {
    _file: File,
}

/// Another process that has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holder {
    /// `None` where it cannot be seen from here, as out of a container.
    pub(super) process: Option<Pid>,
}

impl Lock {
    pub(super) fn take(dir: &Path) -> anyhow::Result<Result<Self, Holder>> {
        Self::open(dir, OpenOptions::new().write(true).create(true).truncate(false).mode(0o600))
    }

    /// Of a directory that has been in use before.
    pub(super) fn take_again(dir: &Path) -> anyhow::Result<Result<Self, Holder>> {
        Self::open(dir, OpenOptions::new().write(true))
    }

    fn open(dir: &Path, options: &OpenOptions) -> anyhow::Result<Result<Self, Holder>> {
        let path = dir.join(FILE);
        let cannot = || format!("cannot lock {}", path.display());
        let file = options.open(&path).with_context(cannot)?;
        loop {
            match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Ok(Self { _file: file })),
                Err(Errno::AGAIN | Errno::ACCESS) => {}
                Err(error) => return Err(io::Error::from(error)).with_context(cannot),
            }
            // It may have ended in between.
            if let Some(holder) = holder_of(&file).with_context(cannot)? {
                return Ok(Err(holder));
            }
        }
    }
}

/// Who has the lock of this directory now.
pub(super) fn holder(dir: &Path) -> anyhow::Result<Option<Holder>> {
    let path = dir.join(FILE);
    let found = match File::open(&path) {
        Ok(file) => holder_of(&file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    found.with_context(|| format!("cannot tell who runs on {}", dir.display()))
}

fn holder_of(file: &File) -> io::Result<Option<Holder>> {
    let found = fcntl_getlk(file, &Flock::from(FlockType::WriteLock))?;
    Ok(found.map(|lock| Holder { process: lock.pid }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_nobody_runs_on_has_no_holder() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(holder(dir.path()).unwrap(), None);
        // A number that somebody left there names nobody.
        std::fs::write(dir.path().join(FILE), "1\n").unwrap();
        assert_eq!(holder(dir.path()).unwrap(), None);
        assert_eq!(holder(&dir.path().join("missing")).unwrap(), None);
    }
}
