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
    make_parent(path)?;
    let parent = path.parent().unwrap_or(path);
    let mut file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(parent)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_parent(path)
}

pub(crate) fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| fs::File::open(parent)?.sync_all())
}
