//! From layers to an artifact, in the local storage or straight in a registry.

use std::{collections::BTreeSet, io, sync::Arc, thread::available_parallelism};

use anyhow::{Context, bail};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::task::spawn_blocking;
use windlass_kit::{
    Kitfile, Reference,
    digests::{self, Digests},
    layer::Layer,
    manifest::{self, Descriptor, IMAGE_MANIFEST, Manifest, Profile, Stored},
    pack,
    push::{self, Memory, Push},
    reference::{Tag, Version},
    remote::Source,
    store::Store,
};

use super::{
    flags::{Compression, Form, Network},
    output::Summary,
    progress::{Counted, Progress},
    session::Session,
};

pub(super) struct Packing<'a> {
    pub(super) session: &'a Session,
    pub(super) kitfile: &'a Kitfile,
    pub(super) layers: Vec<Layer>,
    pub(super) form: &'a Form,
    pub(super) profile: Profile,
}

/// What it is to be called; nothing at all if it has no name.
pub(super) type Names = Option<(Reference, Vec<Tag>)>;

impl Packing<'_> {
    /// Into the local storage.
    pub(super) async fn keep(self, names: Names) -> anyhow::Result<()> {
        let out = &self.session.out;
        let store = Arc::new(self.session.store()?);
        let compression = self.form.compression;
        let progress = out.progress.clone();
        let kept =
            self.each(move |layer| keep_layer(&store, layer, compression, &progress)).await?;
        for (layer, is_new) in &kept {
            let verb = if *is_new { "Saved" } else { "Already saved" };
            out.info(format!("{verb} {} layer: {}", layer.kind, layer.digest));
        }
        let stored: Vec<Stored> = kept.into_iter().map(|(layer, _)| layer).collect();
        let artifact = self.assemble(&stored)?;
        let store = self.session.store()?;
        out.info(format!("Saved configuration: {}", store.put(&artifact.config)?));
        let digest = store.put(&artifact.manifest)?;
        out.info(format!("Saved manifest to storage: {digest}"));
        let (reference, more) = names.unwrap_or((Reference::unnamed(digest.clone()), Vec::new()));
        let first = match reference.version() {
            Version::Tag(tag) => Some(tag.clone()),
            Version::Digest(_) => None,
        };
        let tags: Vec<Tag> = first.into_iter().chain(more).collect();
        let descriptor = Descriptor {
            media_type: IMAGE_MANIFEST.to_owned(),
            digest: digest.clone(),
            size: artifact.manifest.len() as u64,
            urls: Vec::new(),
            annotations: manifest::Annotations::new(),
        };
        store.add(&reference, &descriptor, &tags)?;
        let manifest: Manifest = serde_json::from_slice(&artifact.manifest)?;
        out.result(format!("Model saved: {digest}"), &Summary::new(&digest, reference, &manifest))
    }

    /// To a registry, with nothing kept here but what is compressed on the way.
    pub(super) async fn send(self, names: Names, network: &Network) -> anyhow::Result<()> {
        let Some((reference, tags)) = names else {
            bail!("--push needs a name: give it with --tag")
        };
        if reference.is_local() {
            bail!("registry is required when pushing: {reference} names none");
        }
        let out = &self.session.out;
        let store = Arc::new(self.session.store()?);
        let compression = self.form.compression;
        let progress = out.progress.clone();
        out.info(format!("Packing {} layers", self.layers.len()));
        let ready =
            self.each(move |layer| ready_layer(&store, layer, compression, &progress)).await?;
        out.end();
        let (stored, sources): (Vec<Stored>, Vec<Arc<dyn Source>>) = ready.into_iter().unzip();
        let artifact = self.assemble(&stored)?;
        let manifest: Manifest = serde_json::from_slice(&artifact.manifest)?;
        let config: Arc<dyn Source> = Arc::new(Bytes::from(artifact.config));
        let blobs = manifest.layers.iter().cloned().zip(sources);
        let artifact = push::Artifact {
            media_type: IMAGE_MANIFEST.to_owned(),
            manifest: artifact.manifest.into(),
            blobs: once(blobs.chain([(manifest.config.clone(), config)])),
        };
        send(self.session, &artifact, &manifest, (&reference, &tags), None, network).await
    }

    /// The work for every layer, several at once, in their order.
    async fn each<T: Send + 'static>(
        &self,
        work: impl Fn(&Layer) -> anyhow::Result<T> + Clone + Send + 'static,
    ) -> anyhow::Result<Vec<T>> {
        for layer in &self.layers {
            let path = layer.entry.path.as_str();
            self.session.out.progress.expect(path, path, layer.size());
        }
        let count = available_parallelism().map_or(2, usize::from).min(5);
        stream::iter(self.layers.iter().cloned())
            .map(|layer| {
                let work = work.clone();
                async move {
                    let path = layer.entry.path.clone();
                    let done = spawn_blocking(move || work(&layer)).await?;
                    done.with_context(|| format!("cannot pack {path}"))
                }
            })
            .buffered(count)
            .try_collect()
            .await
    }

    fn assemble(&self, layers: &[Stored]) -> anyhow::Result<manifest::Artifact> {
        Ok(pack::assemble(self.kitfile, layers, self.form.form(), &self.profile)?)
    }
}

/// Whether it was not there yet is told too.
fn keep_layer(
    store: &Store,
    layer: &Layer,
    compression: Compression,
    progress: &Progress,
) -> anyhow::Result<(Stored, bool)> {
    let digests = Digests::new(store.home());
    let before = digests::look(layer)?;
    let is_plain = compression.of(|| pack::shrinks(layer))? == manifest::Compression::None;
    let known = digests.find(&before).filter(|digest| is_plain && store.has(digest));
    if let Some(digest) = known {
        progress.finish(layer.entry.path.as_str());
        return Ok((pack::stored(layer, digest), false));
    }
    let (stored, file) = write(store, layer, compression, progress)?;
    if is_plain {
        digests.remember(layer, before, &stored.digest);
    }
    let is_new = !store.has(&stored.digest);
    if is_new {
        store.keep(file, &stored.digest)?;
    }
    Ok((stored, is_new))
}

fn ready_layer(
    store: &Store,
    layer: &Layer,
    compression: Compression,
    progress: &Progress,
) -> anyhow::Result<(Stored, Arc<dyn Source>)> {
    let key = layer.entry.path.as_str();
    if compression.of(|| pack::shrinks(layer))? == manifest::Compression::None {
        let stored = hashed(store, layer, progress)?;
        progress.finish(key);
        let source: Arc<dyn Source> = Arc::new(layer.clone());
        return Ok((stored, source));
    }
    let (stored, file) = write(store, layer, compression, progress)?;
    let source: Arc<dyn Source> = Arc::new(Scratch(file));
    Ok((stored, source))
}

/// What has not changed since it was read is not read again.
fn hashed(store: &Store, layer: &Layer, progress: &Progress) -> anyhow::Result<Stored> {
    let digests = Digests::new(store.home());
    let before = digests::look(layer)?;
    if let Some(digest) = digests.find(&before) {
        return Ok(pack::stored(layer, digest));
    }
    let key = layer.entry.path.as_str().to_owned();
    let into = Counted { inner: io::sink(), key, progress: progress.clone() };
    let stored = pack::write(layer, manifest::Compression::None, into)?;
    digests.remember(layer, before, &stored.digest);
    Ok(stored)
}

fn write(
    store: &Store,
    layer: &Layer,
    compression: Compression,
    progress: &Progress,
) -> anyhow::Result<(Stored, tempfile::NamedTempFile)> {
    let key = layer.entry.path.as_str();
    let compression = compression.of(|| pack::shrinks(layer))?;
    let mut file = store.scratch()?;
    let into = Counted { inner: &mut file, key: key.to_owned(), progress: progress.clone() };
    let stored = pack::write(layer, compression, into)?;
    progress.finish(key);
    Ok((stored, file))
}

/// A compressed layer on its way out, gone when it is there.
struct Scratch(tempfile::NamedTempFile);

impl Source for Scratch {
    fn size(&self) -> u64 {
        self.0.path().to_owned().size()
    }

    fn open(&self, from: u64) -> io::Result<Box<dyn io::Read + Send>> {
        self.0.path().to_owned().open(from)
    }
}

/// What is in an artifact twice is sent once.
pub(super) fn once(
    blobs: impl Iterator<Item = (Descriptor, Arc<dyn Source>)>,
) -> Vec<(Descriptor, Arc<dyn Source>)> {
    let mut seen = BTreeSet::new();
    blobs.filter(|(blob, _)| seen.insert(blob.digest.clone())).collect()
}

/// The end of every push: the digest of the manifest is the last that is told.
pub(super) async fn send(
    session: &Session,
    artifact: &push::Artifact,
    manifest: &Manifest,
    (reference, tags): (&Reference, &[Tag]),
    from: Option<&str>,
    network: &Network,
) -> anyhow::Result<()> {
    let out = &session.out;
    out.info(format!("Pushing {reference}"));
    let remote = session.remote(reference.registry(), network)?;
    artifact.blobs.iter().for_each(|(blob, _)| out.progress.expect_blob(blob));
    let push = Push {
        remote: &remote,
        memory: &Memory::new(session.home()),
        concurrency: network.concurrency.get(),
        from,
        progress: Arc::new(out.progress.clone()),
    };
    let digest = push.run(reference, tags, artifact).await?;
    out.result(format!("Pushed {digest}"), &Summary::new(&digest, reference, manifest))
}
