//! Files of a commit, resumed where they were cut.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use http::StatusCode;
use percent_encoding::utf8_percent_encode;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::whole;

use super::{ATTEMPTS, Asked, ESCAPED, Error, File, Hub, Repository, Sum, range};

/// Told as it goes.
pub trait Progress: Send + Sync {
    fn received(&self, path: &str, bytes: u64);
}

impl Hub {
    /// Into a folder. What is there from an earlier run is not asked for again.
    pub async fn download(
        &self,
        repository: &Repository,
        commit: &str,
        file: &File,
        folder: &Path,
        progress: &dyn Progress,
    ) -> Result<PathBuf, Error> {
        let whole = folder.join(&file.path);
        if fs::metadata(&whole).is_ok_and(|found| found.len() == file.size) {
            progress.received(&file.path, file.size);
            return Ok(whole);
        }
        let mut part = Part::open(folder, file).await?;
        progress.received(&file.path, part.size);
        let path =
            file.path.split('/').map(|element| utf8_percent_encode(element, ESCAPED).to_string());
        let path = path.collect::<Vec<_>>().join("/");
        let url = self.url(&format!("{}/resolve/{commit}/{path}", repository.files()))?;
        let attempt = format!("read {} of {}", file.path, repository.name);
        let mut failures = 0;
        while part.size < file.size {
            let asked = Asked { repository, revision: commit, attempt: &attempt };
            let before = part.size;
            let mut response = self.get(url.clone(), range(part.size), &asked).await?;
            if response.status() != StatusCode::PARTIAL_CONTENT && part.size > 0 {
                part = part.restart().await?;
            }
            let broken = loop {
                match response.chunk().await {
                    Ok(Some(piece)) => {
                        progress.received(&file.path, piece.len() as u64);
                        part = part.append(piece).await?;
                        if part.size > file.size {
                            break None;
                        }
                    }
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            failures = if part.size > before { 0 } else { failures + 1 };
            if failures >= ATTEMPTS {
                let source = broken.map(reqwest::Error::without_url);
                let told = String::new();
                return Err(Error::Failed { attempt, attempts: failures, told, source });
            }
        }
        part.finish(file, whole).await
    }
}

/// Beside the folder, so that no name of a file can be that of a part.
fn parts(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".parts");
    folder.with_file_name(name)
}

/// A file of which a part is there, and the hash of that part.
struct Part {
    place: PathBuf,
    file: fs::File,
    /// Of no bytes at all.
    empty: Hash,
    hash: Hash,
    size: u64,
}

#[derive(Clone)]
enum Hash {
    Sha256(Sha256),
    Git(Sha1),
}

impl Hash {
    fn new(file: &File) -> Self {
        match file.sum {
            Sum::Sha256(_) => Self::Sha256(Sha256::new()),
            Sum::Git(_) => Self::Git(Sha1::new_with_prefix(format!("blob {}\0", file.size))),
        }
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

impl Part {
    async fn open(folder: &Path, file: &File) -> Result<Self, Error> {
        let place = parts(folder).join(&file.path);
        let (empty, limit) = (Hash::new(file), file.size);
        work(place, move |place| {
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

    async fn append(mut self, piece: Bytes) -> Result<Self, Error> {
        work(self.place.clone(), move |_| {
            self.file.write_all(&piece)?;
            self.hash.update(&piece);
            self.size += piece.len() as u64;
            Ok(self)
        })
        .await
    }

    /// The server knows no ranges.
    async fn restart(mut self) -> Result<Self, Error> {
        work(self.place.clone(), move |_| {
            self.file.set_len(0)?;
            io::Seek::rewind(&mut self.file)?;
            let hash = self.empty.clone();
            Ok(Self { hash, size: 0, ..self })
        })
        .await
    }

    async fn finish(self, file: &File, whole: PathBuf) -> Result<PathBuf, Error> {
        let (kind, wanted) = match &file.sum {
            Sum::Sha256(sum) => ("SHA-256", sum.clone()),
            Sum::Git(sum) => ("git hash", sum.clone()),
        };
        let is = self.hash.clone().finish();
        let path = file.path.clone();
        let (size, should) = (self.size, file.size);
        if is != wanted || size != should {
            let place = self.place.clone();
            work(place, fs::remove_file).await?;
            return Err(match size == should {
                true => Error::Mismatch { path, kind, wanted, is },
                false => {
                    let (wanted, is) = (should.to_string(), size.to_string());
                    Error::Mismatch { path, kind: "size", wanted, is }
                }
            });
        }
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
) -> Result<T, Error> {
    let place = path.clone();
    let outcome = whole::blocking(move || work(path)).await;
    outcome.map_err(|source| Error::Keep { path: place, source })
}
