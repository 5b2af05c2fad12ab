//! An artifact goes to a registry: what is there already stays where it is.

use std::{
    fs, io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};

use crate::{
    Digest, Reference,
    manifest::Descriptor,
    reference::{Tag, Version},
    remote::{Error, Remote, Source, Upload},
};

/// What an earlier run has begun is of no use for longer.
const AGE: Duration = Duration::from_secs(24 * 60 * 60);

pub struct Artifact {
    pub media_type: String,
    pub manifest: Bytes,
    pub blobs: Vec<(Descriptor, Arc<dyn Source>)>,
}

/// Told as it goes; each blob by its digest.
pub trait Progress: Send + Sync + 'static {
    /// It is there already.
    fn known(&self, blob: &Descriptor);
    fn sent(&self, blob: &Digest, bytes: u64);
    fn done(&self, blob: &Digest);
}

/// Where it is kept what has been begun and where blobs are.
#[derive(Clone, Debug)]
pub struct Memory {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Begun {
    registry: String,
    repository: String,
    #[serde(flatten)]
    upload: Upload,
}

impl Memory {
    /// In the home of the store.
    pub fn new(home: &std::path::Path) -> Self {
        Self { folder: home.join("windlass/uploads") }
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(format!("{}.json", digest.hex()))
    }

    fn begun(&self, remote: &Remote, repository: &str, digest: &Digest) -> Option<Upload> {
        let path = self.path(digest);
        let changed = fs::metadata(&path).ok()?.modified().ok()?;
        let age = SystemTime::now().duration_since(changed).unwrap_or_default();
        let begun: Begun = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        let is_same = begun.registry == remote.registry() && begun.repository == repository;
        (is_same && age < AGE).then_some(begun.upload)
    }

    fn reached(&self, begun: &Begun, digest: &Digest) -> io::Result<()> {
        let bytes = serde_json::to_vec(begun).map_err(io::Error::other)?;
        crate::whole::write(&self.path(digest), &bytes)
    }

    fn forget(&self, digest: &Digest) {
        // What is not there need not be removed.
        drop(fs::remove_file(self.path(digest)));
    }
}

pub struct Push<'a> {
    pub remote: &'a Remote,
    pub memory: &'a Memory,
    pub concurrency: usize,
    /// Another repository of the registry that has the blobs.
    pub from: Option<&'a str>,
    pub progress: Arc<dyn Progress>,
}

impl Push<'_> {
    /// Under its name and further tags. Returns the digest of the manifest.
    pub async fn run(
        &self,
        reference: &Reference,
        tags: &[Tag],
        artifact: &Artifact,
    ) -> Result<Digest, Error> {
        let digest = Digest::of(&artifact.manifest);
        if self.remote.resolve_to_push(reference).await?.as_ref() != Some(&digest) {
            let blobs = stream::iter(&artifact.blobs).map(Ok);
            let concurrency = Some(self.concurrency.max(1));
            let repository = reference.repository();
            blobs
                .try_for_each_concurrent(concurrency, async |(blob, source)| {
                    self.blob(repository, blob, source).await
                })
                .await?;
            self.manifest(reference, artifact).await?;
        } else {
            artifact.blobs.iter().for_each(|(blob, _)| self.progress.known(blob));
        }
        for tag in tags {
            self.manifest(&reference.with(Version::Tag(tag.clone())), artifact).await?;
        }
        Ok(digest)
    }

    async fn manifest(&self, reference: &Reference, artifact: &Artifact) -> Result<(), Error> {
        let bytes = artifact.manifest.clone();
        self.remote.put_manifest(reference, &artifact.media_type, bytes).await.map(drop)
    }

    async fn blob(
        &self,
        repository: &str,
        blob: &Descriptor,
        source: &Arc<dyn Source>,
    ) -> Result<(), Error> {
        let digest = &blob.digest;
        if self.remote.has_blob(repository, digest).await? || self.mount(repository, digest).await?
        {
            self.progress.known(blob);
            return Ok(());
        }
        let begun = self.memory.begun(self.remote, repository, digest);
        let told = Arc::new(Told {
            progress: self.progress.clone(),
            memory: self.memory.clone(),
            registry: self.remote.registry().to_owned(),
            repository: repository.to_owned(),
            digest: digest.clone(),
        });
        self.remote.upload(repository, digest, source.clone(), begun, told).await?;
        self.memory.forget(digest);
        self.progress.done(digest);
        Ok(())
    }

    async fn mount(&self, repository: &str, digest: &Digest) -> Result<bool, Error> {
        match self.from.filter(|from| *from != repository) {
            Some(from) => self.remote.mount(repository, digest, from).await,
            None => Ok(false),
        }
    }
}

/// Tells of one blob.
struct Told {
    progress: Arc<dyn Progress>,
    memory: Memory,
    registry: String,
    repository: String,
    digest: Digest,
}

impl crate::remote::Progress for Told {
    fn sent(&self, bytes: u64) {
        self.progress.sent(&self.digest, bytes);
    }

    fn reached(&self, upload: &Upload) {
        let begun = Begun {
            registry: self.registry.clone(),
            repository: self.repository.clone(),
            upload: upload.clone(),
        };
        if let Err(error) = self.memory.reached(&begun, &self.digest) {
            tracing::debug!(%error, "a push that is cut now will begin anew");
        }
    }
}

#[cfg(test)]
mod tests;
