//! An artifact goes to a registry: what is there already stays where it is.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};

use crate::{
    Digest, Reference,
    manifest::Descriptor,
    reference::{Tag, Version},
    remote::{Error, Remote, Source, Upload},
};

mod memory;

pub use memory::Memory;
use memory::Slot;

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
        self.memory.sweep();
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

    /// A blob whose digest is not known, read once: hashed while it is sent. `key` stands for its digest
    /// as long as it is not known. Nothing if it has to be hashed first, since it was begun before or did
    /// not go through.
    pub async fn unknown(
        &self,
        repository: &str,
        key: &Digest,
        source: &Arc<dyn Source>,
    ) -> Result<Option<Digest>, Error> {
        let told = self.told(repository, key);
        if told.slot.begun().is_some() {
            told.slot.release();
            return Ok(None);
        }
        let sent = self.remote.upload_unknown(repository, source.clone(), told.clone()).await;
        if matches!(sent, Ok(Some(_))) {
            told.slot.forget();
            self.progress.done(key);
        }
        told.slot.release();
        sent
    }

    fn told(&self, repository: &str, digest: &Digest) -> Arc<Told> {
        Arc::new(Told {
            progress: self.progress.clone(),
            slot: self.memory.slot(self.remote, repository, digest),
            digest: digest.clone(),
        })
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
            self.memory.forget(self.remote, repository, digest);
            self.progress.known(blob);
            return Ok(());
        }
        let told = self.told(repository, digest);
        let begun = told.slot.begun();
        let sent =
            self.remote.upload(repository, digest, source.clone(), begun, told.clone()).await;
        if sent.is_ok() {
            told.slot.forget();
        }
        told.slot.release();
        sent?;
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
    slot: Slot,
    digest: Digest,
}

impl crate::remote::Progress for Told {
    fn sent(&self, bytes: u64) {
        self.progress.sent(&self.digest, bytes);
    }

    fn reached(&self, upload: &Upload) {
        if let Err(error) = self.slot.reached(upload) {
            tracing::debug!(%error, "a push that is cut now will begin anew");
        }
    }
}

#[cfg(test)]
mod tests;
