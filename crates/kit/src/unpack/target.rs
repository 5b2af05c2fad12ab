//! The folder that is unpacked into. Nothing is ever reached through a link in it.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode, RenameFlags},
    io::Errno,
};

use super::{Error, Existing};
use crate::{left_over, tar::Type};

/// Of what is not in its place yet.
const STAGE: &str = ".windlass-unpack-";

pub struct Target {
    place: PathBuf,
    root: OwnedFd,
    /// Directories that nobody can write to, once everything is in them; of all layers, since several
    /// may have files in one.
    closed: Mutex<BTreeMap<String, u32>>,
}

impl Drop for Target {
    fn drop(&mut self) {
        let closed = std::mem::take(self.closed.get_mut().unwrap_or_else(PoisonError::into_inner));
        // What is below first: what is above may then not even be entered.
        for (name, mode) in closed.iter().rev() {
            if let Err(error) = self.close(name, *mode) {
                tracing::warn!(%error, name, "a directory keeps more rights than it should have");
            }
        }
    }
}

impl Target {
    /// Made if it is not there.
    pub fn open(place: &Path) -> io::Result<Self> {
        fs::create_dir_all(place)?;
        left_over::remove(place, STAGE);
        let root = rustix::fs::open(place, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { place: place.to_owned(), root, closed: Mutex::default() })
    }

    /// A place on the same disk, gone when it is dropped.
    pub(super) fn stage(&self) -> io::Result<left_over::Folder> {
        left_over::Folder::new(&self.place, STAGE)
    }

    /// What is there. Whatever is neither a file nor a directory is no place to write to.
    pub(super) fn look(&self, name: &str) -> Result<Option<Type>, Error> {
        let (parent, base) = parts(name);
        let Some(parent) = self.directory(parent, name)? else { return Ok(None) };
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        match rustix::fs::statat(&parent, base, flags) {
            Ok(found) => match FileType::from_raw_mode(found.st_mode) {
                FileType::RegularFile => Ok(Some(Type::File)),
                FileType::Directory => Ok(Some(Type::Directory)),
                _ => Err(Error::Through { path: name.to_owned() }),
            },
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(failed(name)(error)),
        }
    }

    /// Whether a file that is there says just this.
    pub(super) fn has(&self, name: &str, bytes: &[u8]) -> Result<bool, Error> {
        let (parent, base) = parts(name);
        let Some(parent) = self.directory(parent, name)? else { return Ok(false) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&parent, base, flags, Mode::empty()).map_err(failed(name))?;
        let mut there = Vec::new();
        let mut file = fs::File::from(file).take(bytes.len() as u64 + 1);
        file.read_to_end(&mut there).map_err(|source| write_failed(name, source))?;
        Ok(there == bytes)
    }

    /// With all that are above it. Whether it was not there.
    pub(super) fn make_directory(&self, name: &str, mode: u32) -> Result<bool, Error> {
        let (parent, base) = parts(name);
        if base == "." {
            return Ok(false);
        }
        let parent = self.make_all(parent, name)?;
        make(&parent, base, mode, name).map(|(_, is_new)| is_new)
    }

    /// Somebody may have made it since it was looked for.
    pub(super) fn move_in(&self, from: &Path, name: &str, existing: Existing) -> Result<(), Error> {
        let (parent, base) = parts(name);
        let parent = self.make_all(parent, name)?;
        let moved = match existing {
            Existing::Replace => rustix::fs::renameat(CWD, from, &parent, base),
            Existing::Refuse | Existing::Keep => without_replacing(&WAYS, from, &parent, base),
        };
        match moved {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) if existing == Existing::Keep => Ok(()),
            Err(Errno::EXIST) if existing == Existing::Refuse => {
                Err(Error::Exists(name.to_owned()))
            }
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                Err(Error::NoFile(name.to_owned()))
            }
            Err(error) => Err(failed(name)(error)),
        }
    }

    /// Takes rights of the owner away again, at the end of all.
    pub(super) fn close_later(&self, name: &str, mode: u32) {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.insert(name.to_owned(), mode);
    }

    fn close(&self, name: &str, mode: u32) -> Result<(), Error> {
        let Some(directory) = self.directory(name, name)? else { return Ok(()) };
        let is = rustix::fs::fstat(&directory).map_err(failed(name))?;
        let mode = Mode::from_raw_mode(is.st_mode & mode as RawMode & 0o777);
        rustix::fs::fchmod(&directory, mode).map_err(failed(name))
    }

    /// Opened element by element. Nothing if it is not there.
    fn directory(&self, path: &str, name: &str) -> Result<Option<OwnedFd>, Error> {
        let mut at = self.root.try_clone().map_err(|source| write_failed(name, source))?;
        for element in elements(path) {
            at = match open(&at, element) {
                Ok(next) => next,
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(through(name)(error)),
            };
        }
        Ok(Some(at))
    }

    fn make_all(&self, path: &str, name: &str) -> Result<OwnedFd, Error> {
        let mut at = self.root.try_clone().map_err(|source| write_failed(name, source))?;
        for element in elements(path) {
            (at, _) = make(&at, element, 0o755, name)?;
        }
        Ok(at)
    }
}

type Way = fn(&Path, &OwnedFd, &str) -> rustix::io::Result<()>;

/// The best first. NFS, CephFS and much of FUSE know nothing of the first, and some not of the second.
const WAYS: [Way; 3] = [
    |from, parent, base| rustix::fs::renameat_with(CWD, from, parent, base, RenameFlags::NOREPLACE),
    |from, parent, base| {
        rustix::fs::linkat(CWD, from, parent, base, AtFlags::empty())?;
        rustix::fs::unlinkat(CWD, from, AtFlags::empty())
    },
    |from, parent, base| match rustix::fs::statat(parent, base, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => rustix::fs::renameat(CWD, from, parent, base),
        Err(error) => Err(error),
    },
];

/// By the first way that the file system knows.
fn without_replacing(
    ways: &[Way],
    from: &Path,
    parent: &OwnedFd,
    base: &str,
) -> rustix::io::Result<()> {
    let mut outcome = Err(Errno::NOSYS);
    for way in ways {
        outcome = way(from, parent, base);
        let is_known = !matches!(
            outcome,
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM | Errno::MLINK)
        );
        if is_known {
            return outcome;
        }
    }
    outcome
}

/// Whether it was not there is told too.
fn make(at: &OwnedFd, element: &str, mode: u32, name: &str) -> Result<(OwnedFd, bool), Error> {
    let is_new = match rustix::fs::mkdirat(at, element, Mode::from_raw_mode(mode as RawMode)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(failed(name)(error)),
    };
    Ok((open(at, element).map_err(through(name))?, is_new))
}

fn open(at: &OwnedFd, element: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, element, flags, Mode::empty())
}

fn parts(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}

fn elements(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|element| !matches!(*element, "" | "."))
}

fn failed(name: &str) -> impl FnOnce(Errno) -> Error {
    |error| write_failed(name, error.into())
}

fn write_failed(name: &str, source: io::Error) -> Error {
    Error::Write { path: name.to_owned(), source }
}

fn through(name: &str) -> impl FnOnce(Errno) -> Error {
    |error| match error {
        Errno::LOOP | Errno::NOTDIR => Error::Through { path: name.to_owned() },
        other => write_failed(name, other.into()),
    }
}

#[cfg(test)]
mod tests;
