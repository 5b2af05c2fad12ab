//! A file of which a part is there.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::Unkept;
use crate::whole;

/// With the hash of what is there.
pub(crate) struct Part {
    place: PathBuf,
    file: fs::File,
    /// Of no bytes at all.
    empty: Hash,
    hash: Hash,
    pub(crate) size: u64,
}

#[derive(Clone)]
pub(crate) enum Hash {
    Sha256(Sha256),
    Git(Sha1),
}

impl Hash {
    pub(crate) fn sha256() -> Self {
        Self::Sha256(Sha256::new())
    }

    /// As git names a file of this size.
    pub(crate) fn git(size: u64) -> Self {
        Self::Git(Sha1::new_with_prefix(format!("blob {size}\0")))
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hash) => hash.update(bytes),
            Self::Git(hash) => hash.update(bytes),
        }
    }

    fn finish(self) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self {
            Self::Sha256(hash) => hex(&hash.finalize()),
            Self::Git(hash) => hex(&hash.finalize()),
        }
    }
}

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Beside the folder, so that no name of a file can be that of a part.
fn parts(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".parts");
    folder.with_file_name(name)
}

impl Part {
    /// Of a file that will be in the folder, with no more bytes than the limit.
    pub(crate) async fn open(
        folder: &Path,
        name: &str,
        empty: Hash,
        limit: u64,
    ) -> Result<Self, Unkept> {
        work(parts(folder).join(name), move |place| {
            whole::make_parent(&place)?;
            let mut file = fs::File::options()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&place)?;
            // Whoever else gets the same file would write into this one.
            file.try_lock().map_err(io::Error::from)?;
            if file.metadata()?.len() > limit {
                file.set_len(0)?;
            }
            let mut hash = empty.clone();
            let size = io::copy(&mut file, &mut hash)?;
            Ok(Self { place, file, empty, hash, size })
        })
        .await
    }

    pub(crate) async fn append(mut self, piece: Bytes) -> Result<Self, Unkept> {
        work(self.place.clone(), move |_| {
            self.file.write_all(&piece)?;
            self.hash.update(&piece);
            self.size += piece.len() as u64;
            Ok(self)
        })
        .await
    }

    /// Nothing of it is of use.
    pub(crate) async fn restart(mut self) -> Result<Self, Unkept> {
        work(self.place.clone(), move |_| {
            self.file.set_len(0)?;
            io::Seek::rewind(&mut self.file)?;
            let hash = self.empty.clone();
            Ok(Self { hash, size: 0, ..self })
        })
        .await
    }

    pub(crate) fn sum(&self) -> String {
        self.hash.clone().finish()
    }

    pub(crate) async fn discard(self) -> Result<(), Unkept> {
        work(self.place, fs::remove_file).await
    }

    /// Under its name from now on.
    pub(crate) async fn finish(self, whole: PathBuf) -> Result<PathBuf, Unkept> {
        work(self.place.clone(), move |place| {
            self.file.sync_all()?;
            whole::make_parent(&whole)?;
            fs::rename(&place, &whole)?;
            Ok(whole)
        })
        .await
    }
}

async fn work<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce(PathBuf) -> io::Result<T> + Send + 'static,
) -> Result<T, Unkept> {
    let place = path.clone();
    whole::blocking(move || work(path)).await.map_err(|source| Unkept { path: place, source })
}
