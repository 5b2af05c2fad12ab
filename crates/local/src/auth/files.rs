//! Secrets on disk: nobody but the owner can read them at any moment of their life.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("cannot write {}", .0.display())]
    Write(PathBuf, #[source] io::Error),
    #[error("{} is a symbolic link and might lead to somebody else's directory", .0.display())]
    Link(PathBuf),
    #[error("{} is not a directory", .0.display())]
    NotDirectory(PathBuf),
    #[error("{} can be read by others: make it yours alone with chmod 700", .0.display())]
    Open(PathBuf),
}

/// Makes the directory, or sees to it that it is ours alone.
pub fn private_dir(dir: &Path) -> Result<(), Error> {
    // With a slash or a dot behind it a link would be followed, and looked like what it leads to.
    let dir = &dir.components().collect::<PathBuf>();
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    // A file or a dangling link in its place is told of below.
    if let Err(error) = made
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(Error::Write(dir.to_owned(), error));
    }
    let meta = fs::symlink_metadata(dir).map_err(|error| Error::Read(dir.to_owned(), error))?;
    if meta.is_symlink() {
        return Err(Error::Link(dir.to_owned()));
    }
    if !meta.is_dir() {
        return Err(Error::NotDirectory(dir.to_owned()));
    }
    // Users of pods may come through it.
    if meta.permissions().mode() & 0o066 != 0 {
        return Err(Error::Open(dir.to_owned()));
    }
    Ok(())
}

/// What the file holds, or what is made for it when it is not there.
pub(super) fn keep<E: From<Error>>(
    path: &Path,
    make: impl FnOnce() -> Result<Vec<u8>, E>,
) -> Result<Vec<u8>, E> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let bytes = make()?;
            write(path, &bytes)?;
            Ok(bytes)
        }
        Err(error) => Err(Error::Read(path.to_owned(), error).into()),
    }
}

/// Puts the whole file in place at once, so that a crash leaves the old one or the new one.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |error| Error::Write(path.to_owned(), error);
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    // A leftover of a crash under the same process id may stand in the way.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&beside, path).map_err(failed)?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = fs::File::open(dir.unwrap_or(Path::new("."))).map_err(failed)?;
    dir.sync_all().map_err(failed)
}
