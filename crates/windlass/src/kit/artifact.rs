//! An artifact wherever it is: in the local storage or in a registry.

use std::{
    fs::File,
    io::{self, Read},
};

use anyhow::{Context, bail};
use tokio_util::sync::CancellationToken;
use windlass_kit::{
    Digest, Kitfile, Reference,
    manifest::{
        Descriptor, Manifest,
        read::{Contents, contents},
    },
    remote::Remote,
    store::{self, Store},
    unpack::Expected,
};

use super::{
    flags::Network,
    outcome::{NotTheSame, NotThere},
    progress::Counted,
    session::Session,
};

/// How many artifacts may lead to each other.
pub(super) const CHAIN: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Store,
    StoreFirst,
    Registry,
}

pub(super) enum Place {
    Store(Store),
    Registry(Remote),
}

pub(super) struct Artifact {
    pub(super) place: Place,
    pub(super) reference: Reference,
    pub(super) descriptor: Descriptor,
    pub(super) manifest: Manifest,
    pub(super) contents: Contents,
}

impl Artifact {
    pub(super) async fn find(
        session: &Session,
        reference: &Reference,
        look: Look,
        network: &Network,
    ) -> anyhow::Result<Self> {
        if look != Look::Registry {
            let store = session.store()?;
            match store.resolve(reference) {
                Ok(descriptor) => return Self::in_store(store, reference, descriptor),
                Err(store::Error::Missing(_))
                    if look == Look::StoreFirst && !reference.is_local() => {}
                Err(error) => return Err(error.into()),
            }
        }
        if reference.is_local() {
            bail!("registry is required when pulling: {reference} names none");
        }
        let remote = session.remote(reference.registry(), network)?;
        Self::in_registry(remote, reference).await
    }

    fn in_store(
        store: Store,
        reference: &Reference,
        descriptor: Descriptor,
    ) -> anyhow::Result<Self> {
        let bytes = verified(&store, &descriptor)?;
        let manifest = parse(&bytes, reference)?;
        let config = verified(&store, &manifest.config)?;
        let contents = read(&manifest, &config, reference)?;
        let (place, reference) = (Place::Store(store), reference.clone());
        Ok(Self { place, reference, descriptor, manifest, contents })
    }

    async fn in_registry(remote: Remote, reference: &Reference) -> anyhow::Result<Self> {
        let (descriptor, bytes) = remote.manifest(reference).await?;
        let manifest = parse(&bytes, reference)?;
        let config = remote.small_blob(reference.repository(), &manifest.config).await?;
        let contents = read(&manifest, &config, reference)?;
        let (place, reference) = (Place::Registry(remote), reference.clone());
        Ok(Self { place, reference, descriptor, manifest, contents })
    }

    pub(super) fn kitfile(&self) -> anyhow::Result<&Kitfile> {
        let missing = || NotThere(format!("{} has no Kitfile", self.reference));
        Ok(self.contents.kitfile.as_ref().ok_or_else(missing)?)
    }

    /// The bytes of a layer as they are stored, not yet verified, to be read by a thread.
    pub(super) fn open(
        &self,
        session: &Session,
        layer: &Expected,
    ) -> anyhow::Result<Box<dyn Read + Send>> {
        let inner: Box<dyn Read + Send> = match &self.place {
            Place::Store(store) => {
                let path = store.blob(&layer.digest);
                let file = File::open(&path);
                Box::new(file.with_context(|| format!("cannot read {}", path.display()))?)
            }
            Place::Registry(remote) => {
                let repository = self.reference.repository();
                Box::new(remote.reader(repository, &layer.digest, layer.size))
            }
        };
        let inner = Stoppable { inner, stop: session.stop.clone() };
        let key = layer.digest.to_string();
        Ok(Box::new(Counted { inner, key, progress: session.out.progress.clone() }))
    }
}

fn verified(store: &Store, blob: &Descriptor) -> anyhow::Result<Vec<u8>> {
    let bytes = store.read(&blob.digest)?;
    let is = Digest::of(&bytes);
    if is != blob.digest {
        let text = format!("{} in the local storage does not match: it has {is}", blob.digest);
        return Err(NotTheSame(text).into());
    }
    Ok(bytes)
}

fn parse(bytes: &[u8], reference: &Reference) -> anyhow::Result<Manifest> {
    serde_json::from_slice(bytes)
        .with_context(|| format!("the manifest of {reference} makes no sense"))
}

fn read(manifest: &Manifest, config: &[u8], reference: &Reference) -> anyhow::Result<Contents> {
    contents(manifest, config).with_context(|| format!("cannot use {reference}"))
}

/// Ends when the command does.
struct Stoppable<R> {
    inner: R,
    stop: CancellationToken,
}

impl<R: Read> Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stop.is_cancelled() {
            true => Err(io::Error::other("told to end")),
            false => self.inner.read(buffer),
        }
    }
}
