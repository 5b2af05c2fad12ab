//! An artifact comes from a registry into the store: verified, and resumed where it was cut.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, TryStreamExt, stream};
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use crate::{
    Digest, Reference,
    digest::HashWriter,
    manifest::{Descriptor, Manifest},
    reference::{Tag, Version},
    remote::{self, Remote},
    store::{self, Store},
    whole,
};

/// A blob that breaks off is asked for again, so often without getting a byte further.
const TRIES: u32 = 6;
const PAUSE: Duration = Duration::from_millis(250);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Remote(#[from] remote::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("the manifest of {0} makes no sense")]
    Manifest(Reference, #[source] serde_json::Error),
    #[error("{digest} does not match: what came has the digest {is}")]
    Digest { digest: Digest, is: Digest },
    #[error("{digest} should have {size} bytes, and more came")]
    Size { digest: Digest, size: u64 },
    #[error("cannot keep what comes, in {}", path.display())]
    Keep { path: PathBuf, source: io::Error },
    #[error("the connection to {registry} breaks off again and again while {digest} is read")]
    Broken {
        registry: String,
        digest: Digest,
        /// Nothing if it always ends in an orderly way, and too early.
        #[source]
        source: Option<reqwest::Error>,
    },
}

/// Told as it goes.
pub trait Progress: Send + Sync + 'static {
    /// Of each, before the first comes.
    fn expected(&self, _blob: &Descriptor) {}
    fn known(&self, blob: &Descriptor);
    fn received(&self, blob: &Digest, bytes: u64);
    /// They are there from an earlier run.
    fn resumed(&self, blob: &Digest, bytes: u64) {
        self.received(blob, bytes);
    }
    fn done(&self, blob: &Digest);
}

pub struct Pull<'a> {
    pub remote: &'a Remote,
    pub store: &'a Store,
    pub concurrency: usize,
    pub progress: Arc<dyn Progress>,
}

impl Pull<'_> {
    pub async fn run(&self, reference: &Reference) -> Result<(Descriptor, Manifest), Error> {
        let _using = self.store.using()?;
        let (descriptor, bytes) = self.remote.manifest(reference).await?;
        let manifest: Manifest = serde_json::from_slice(&bytes)
            .map_err(|source| Error::Manifest(reference.clone(), source))?;
        let blobs = manifest.layers.iter().chain([&manifest.config]);
        blobs.clone().for_each(|blob| self.progress.expected(blob));
        let repository = reference.repository();
        stream::iter(blobs)
            .map(Ok)
            .try_for_each_concurrent(Some(self.concurrency.max(1)), async |blob| {
                self.blob(repository, blob).await
            })
            .await?;
        self.store.put(&bytes)?;
        let tags: Vec<Tag> = match reference.version() {
            Version::Tag(tag) => vec![tag.clone()],
            Version::Digest(_) => Vec::new(),
        };
        self.store.add(reference, &descriptor, &tags)?;
        Ok((descriptor, manifest))
    }

    async fn blob(&self, repository: &str, blob: &Descriptor) -> Result<(), Error> {
        if self.store.has(&blob.digest) {
            self.progress.known(blob);
            return Ok(());
        }
        let path = self.store.partial(&blob.digest)?;
        let whole = self.store.blob(&blob.digest);
        let Some(mut partial) = Partial::open(path, blob, whole).await? else {
            self.progress.known(blob);
            return Ok(());
        };
        let is_resumed = partial.size > 0;
        self.progress.resumed(&blob.digest, partial.size);
        // One that always begins anew and never gets further is no use.
        let (mut failures, mut furthest_before) = (0, 0);
        while partial.size < blob.size {
            let furthest = partial.size.max(furthest_before);
            let (reached, source) = self.rest(repository, blob, partial).await?;
            partial = reached;
            failures = if partial.size > furthest { 0 } else { failures + 1 };
            furthest_before = furthest;
            if failures >= TRIES {
                let registry = self.remote.registry().to_owned();
                return Err(Error::Broken { registry, digest: blob.digest.clone(), source });
            }
            if failures > 0 {
                sleep(PAUSE * failures).await;
            }
        }
        match partial.finish(self.store, blob).await {
            // What was there may be to blame, and is there no longer.
            Err(Error::Digest { .. }) if is_resumed => Box::pin(self.blob(repository, blob)).await,
            finished => finished.map(|()| self.progress.done(&blob.digest)),
        }
    }

    /// From where it is, as far as the connection holds.
    async fn rest(
        &self,
        repository: &str,
        blob: &Descriptor,
        mut partial: Partial,
    ) -> Result<(Partial, Option<reqwest::Error>), Error> {
        let mut part = self.remote.blob(repository, &blob.digest, partial.size, None).await?;
        if part.from != partial.size {
            // It sends everything, whatever was asked for.
            partial = partial.restart().await?;
        }
        loop {
            match part.response.chunk().await {
                Ok(Some(piece)) => {
                    let count = piece.len() as u64;
                    if partial.size + count > blob.size {
                        partial.discard();
                        let (digest, size) = (blob.digest.clone(), blob.size);
                        return Err(Error::Size { digest, size });
                    }
                    partial = partial.append(piece).await?;
                    self.progress.received(&blob.digest, count);
                }
                Ok(None) => return Ok((partial, None)),
                Err(error) => return Ok((partial, Some(error.without_url()))),
            }
        }
    }
}

/// A blob of which a part is there.
struct Partial {
    path: PathBuf,
    file: File,
    hash: Sha256,
    size: u64,
}

impl Partial {
    /// What an earlier run got is read once more, for its hash. Who else pulls the same blob is waited
    /// for; nothing is left to do if it has brought it.
    async fn open(path: PathBuf, blob: &Descriptor, whole: PathBuf) -> Result<Option<Self>, Error> {
        let limit = blob.size;
        Self::work(path, move |path| {
            let Some(mut file) = locked(&path, &whole)? else { return Ok(None) };
            if file.metadata()?.len() > limit {
                file.set_len(0)?;
            }
            let mut hash = HashWriter::default();
            let size = io::copy(&mut file, &mut hash)?;
            Ok(Some(Self { path, file, hash: hash.0, size }))
        })
        .await
    }

    async fn work<T: Send + 'static>(
        path: PathBuf,
        work: impl FnOnce(PathBuf) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let place = path.clone();
        let outcome = whole::blocking(move || work(path)).await;
        outcome.map_err(|source| Error::Keep { path: place, source })
    }

    async fn append(mut self, piece: bytes::Bytes) -> Result<Self, Error> {
        Self::work(self.path.clone(), move |_| {
            self.file.write_all(&piece)?;
            self.hash.update(&piece);
            self.size += piece.len() as u64;
            Ok(self)
        })
        .await
    }

    async fn restart(mut self) -> Result<Self, Error> {
        Self::work(self.path.clone(), move |_| {
            self.file.set_len(0)?;
            io::Seek::rewind(&mut self.file)?;
            Ok(Self { hash: Sha256::new(), size: 0, ..self })
        })
        .await
    }

    fn discard(&self) {
        drop(fs::remove_file(&self.path));
    }

    async fn finish(self, store: &Store, blob: &Descriptor) -> Result<(), Error> {
        let is = Digest::finish(self.hash.clone());
        if is != blob.digest {
            self.discard();
            return Err(Error::Digest { digest: blob.digest.clone(), is });
        }
        let to = store.blob(&blob.digest);
        Self::work(self.path.clone(), move |from| {
            self.file.sync_all()?;
            fs::rename(&from, &to)?;
            whole::sync_parent(&to)
        })
        .await
    }
}

/// The file of a part, for us alone. Nothing once the whole is there.
fn locked(path: &Path, whole: &Path) -> io::Result<Option<File>> {
    loop {
        let file =
            File::options().create(true).truncate(false).read(true).write(true).open(path)?;
        file.lock()?;
        if whole.exists() {
            // Made by us just now, or left over.
            drop(fs::remove_file(path));
            return Ok(None);
        }
        // Whoever had it may have moved it away meanwhile.
        let ours = file.metadata()?.ino();
        match fs::metadata(path) {
            Ok(there) if there.ino() == ours => return Ok(Some(file)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}
