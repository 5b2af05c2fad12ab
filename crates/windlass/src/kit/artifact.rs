//! An artifact wherever it is: in the local storage or in a registry.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Write},
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
    store::{self, Locked, Store},
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
    /// What is read of it stays there that long.
    Store(Store, #[allow(dead_code, reason = "it is held")] Locked),
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
        let may_be_there = look == Look::Store || reference.is_local() || session.has_store();
        if look != Look::Registry && may_be_there {
            let store = session.store()?;
            let using = store.using()?;
            match store.resolve(reference) {
                Ok(descriptor) => return Self::in_store((store, using), reference, descriptor),
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
        (store, using): (Store, Locked),
        reference: &Reference,
        descriptor: Descriptor,
    ) -> anyhow::Result<Self> {
        let bytes = verified(&store, &descriptor)?;
        let manifest = parse(&bytes, reference)?;
        let config = verified(&store, &manifest.config)?;
        let contents = read(&manifest, &config, reference)?;
        let (place, reference) = (Place::Store(store, using), reference.clone());
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
            Place::Store(store, _) => {
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

/// The bytes of something small in the local storage, which are what its digest says.
pub(super) fn verified(store: &Store, blob: &Descriptor) -> anyhow::Result<Vec<u8>> {
    let bytes = store.read(&blob.digest)?;
    let is = Digest::of(&bytes);
    if is != blob.digest {
        let text = format!("{} in the local storage does not match: it has {is}", blob.digest);
        return Err(NotTheSame(text).into());
    }
    Ok(bytes)
}

/// What has another shape than that of an image: a list of them, for one.
#[derive(Debug)]
pub(super) struct NoManifest {
    reference: Reference,
    source: serde_json::Error,
}

impl fmt::Display for NoManifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the manifest of {} makes no sense", self.reference)
    }
}

impl std::error::Error for NoManifest {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

fn parse(bytes: &[u8], reference: &Reference) -> anyhow::Result<Manifest> {
    let failed = |source| NoManifest { reference: reference.clone(), source };
    Ok(serde_json::from_slice(bytes).map_err(failed)?)
}

fn read(manifest: &Manifest, config: &[u8], reference: &Reference) -> anyhow::Result<Contents> {
    contents(manifest, config).with_context(|| format!("cannot use {reference}"))
}

/// Ends when the command does.
pub(super) struct Stoppable<T> {
    pub(super) inner: T,
    pub(super) stop: CancellationToken,
}

impl<T> Stoppable<T> {
    fn check(&self) -> io::Result<()> {
        match self.stop.is_cancelled() {
            true => Err(io::Error::other("told to end")),
            false => Ok(()),
        }
    }
}

impl<R: Read> Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.inner.read(buffer)
    }
}

impl<W: Write> Write for Stoppable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
