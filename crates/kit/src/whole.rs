//! Files that are whole or not there.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

/// Work on a file, on a thread that may wait for the disk.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// Of files that are not whole yet.
pub(crate) const PREFIX: &str = ".new-";

/// Written beside its place and moved there, so that nobody sees a part of it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, fs::File::sync_all)?;
    sync_parent(path)
}

/// Likewise, for what only saves work: it is not waited for the disk, which may be busy with large files,
/// and a machine that breaks down may lose it.
pub(crate) fn note(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, |_| Ok(()))
}

fn put(
    path: &Path,
    bytes: &[u8],
    sync: impl FnOnce(&fs::File) -> io::Result<()>,
) -> io::Result<()> {
    make_parent(path)?;
    let parent = path.parent().unwrap_or(path);
    let mut file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(parent)?;
    file.write_all(bytes)?;
    sync(file.as_file())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

pub(crate) fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| fs::File::open(parent)?.sync_all())
}
