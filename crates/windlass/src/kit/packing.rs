//! From layers to an artifact, in the local storage or straight in a registry.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::Arc,
    thread::available_parallelism,
};

use anyhow::{Context, bail};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use windlass_kit::{
    Digest, Kitfile, Reference,
    digests::{self, Digests, Look},
    layer::{Format, Layer},
    manifest::{self, Descriptor, IMAGE_MANIFEST, Manifest, Profile, Stored},
    pack,
    push::{self, Memory, Push},
    reference::{Tag, Version},
    remote::Source,
    store::Store,
};

use super::{
    artifact::Stoppable,
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
    pub(super) files: Files,
    /// Layers that are where the artifact goes to, by their paths. Their files need not be here.
    pub(super) there: BTreeMap<String, Digest>,
}

/// Whose they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    /// Nobody changes them, and they go away when they are packed.
    Ours,
    Theirs,
}

/// Threads that read, hash and compress: more take more memory, and disks are not that fast.
fn at_once() -> usize {
    available_parallelism().map_or(2, usize::from).min(5)
}

/// Who is told how far it is, and who tells when to end.
#[derive(Clone)]
struct Watch {
    progress: Progress,
    stop: CancellationToken,
    /// For each layer.
    threads: u32,
}

impl Watch {
    fn over<T>(&self, inner: T, key: &str) -> Counted<Stoppable<T>> {
        let inner = Stoppable { inner, stop: self.stop.clone() };
        Counted { inner, key: key.to_owned(), progress: self.progress.clone() }
    }
}

/// What it is to be called; nothing at all if it has no name.
pub(super) type Names = Option<(Reference, Vec<Tag>)>;

impl Packing<'_> {
    /// Into the local storage.
    pub(super) async fn keep(self, names: Names) -> anyhow::Result<()> {
        let out = &self.session.out;
        let store = Arc::new(self.session.store()?);
        let _using = store.using()?;
        let (compression, files) = (self.form.compression, self.files);
        let watch = self.watch();
        let there = self.there.clone();
        let keep = move |layer: &Layer| match (there.get(layer.entry.path.as_str()), files) {
            (Some(digest), _) => stays(&store, layer, digest, &watch),
            (None, Files::Ours) if layer.format == Format::Raw => {
                link_layer(&store, layer, compression, &watch)
            }
            _ => keep_layer(&store, layer, compression, &watch),
        };
        let kept = self.each(keep).await?;
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
        let remote = self.session.remote(reference.registry(), network)?;
        let memory = Memory::new(self.session.home());
        let push = Push {
            remote: &remote,
            memory: &memory,
            concurrency: network.concurrency.get(),
            from: None,
            progress: Arc::new(out.progress.clone()),
        };
        out.info(format!("Packing {} layers", self.layers.len()));
        // Under a name that is taken most layers are there already, as a rule: reading twice costs less
        // than sending them once more.
        let is_new = remote.resolve_to_push(&reference).await?.is_none();
        let repository = is_new.then(|| reference.repository());
        self.expect();
        let ready = stream::iter(&self.layers).map(|layer| self.ready(layer, &push, repository));
        let ready: Vec<_> = ready.buffered(push.concurrency).try_collect().await?;
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
        send(self.session, &push, &artifact, &manifest, (&reference, &tags)).await
    }

    /// A layer whose digest is known, and which may be in the repository already.
    async fn ready(
        &self,
        layer: &Layer,
        push: &Push<'_>,
        repository: Option<&str>,
    ) -> anyhow::Result<(Stored, Arc<dyn Source>)> {
        let progress = &self.session.out.progress;
        let path = layer.entry.path.as_str();
        if let Some(digest) = self.there.get(path) {
            progress.finish(path);
            return Ok((pack::stored(layer, digest.clone()), Arc::new(layer.clone())));
        }
        let store = Arc::new(self.session.store()?);
        let compression = self.form.compression;
        let (first, watch) = (store.clone(), self.watch());
        let begun = work(layer, move |layer| begin(&first, layer, compression, &watch)).await?;
        let look = match begun {
            Begun::Ready(stored, source) => return Ok((stored, source)),
            Begun::Unknown(look) => look,
        };
        let key = look.key().clone();
        let source: Arc<dyn Source> = Arc::new(layer.clone());
        if let Some(repository) = repository {
            progress.rename(path, key.as_str());
            if let Some(digest) = push.unknown(repository, &key, &source).await? {
                let known = digest.clone();
                let digests = Digests::new(self.session.home());
                let remember = move |layer: &Layer| {
                    digests.remember(layer, look, &known);
                    Ok(())
                };
                work(layer, remember).await?;
                return Ok((pack::stored(layer, digest), source));
            }
            progress.rename(key.as_str(), path);
        }
        let watch = self.watch();
        let stored = work(layer, move |layer| hashed(&store, layer, look, &watch)).await?;
        push.memory.rename(&key, &stored.digest);
        Ok((stored, source))
    }

    fn watch(&self) -> Watch {
        let (progress, stop) = (self.session.out.progress.clone(), self.session.stop.clone());
        let threads = at_once() / self.layers.len().max(1);
        Watch { progress, stop, threads: u32::try_from(threads).unwrap_or(1) }
    }

    /// The work for every layer, several at once, in their order.
    async fn each<T: Send + 'static>(
        &self,
        work: impl Fn(&Layer) -> anyhow::Result<T> + Clone + Send + 'static,
    ) -> anyhow::Result<Vec<T>> {
        self.expect();
        let each = stream::iter(&self.layers).map(|layer| self::work(layer, work.clone()));
        each.buffered(at_once()).try_collect().await
    }

    fn expect(&self) {
        for layer in &self.layers {
            let path = layer.entry.path.as_str();
            self.session.out.progress.expect(path, path, layer.size());
        }
    }

    fn assemble(&self, layers: &[Stored]) -> anyhow::Result<manifest::Artifact> {
        Ok(pack::assemble(self.kitfile, layers, self.form.form(), &self.profile)?)
    }
}

/// One whose file was not even downloaded.
fn stays(
    store: &Store,
    layer: &Layer,
    digest: &Digest,
    watch: &Watch,
) -> anyhow::Result<(Stored, bool)> {
    if !store.has(digest) {
        bail!("{digest} was in the local storage and has been removed meanwhile: import it again");
    }
    watch.progress.finish(layer.entry.path.as_str());
    Ok((pack::stored(layer, digest.clone()), false))
}

/// Whether it was not there yet is told too.
fn keep_layer(
    store: &Store,
    layer: &Layer,
    compression: Compression,
    watch: &Watch,
) -> anyhow::Result<(Stored, bool)> {
    let digests = Digests::new(store.home());
    let before = digests::look(layer)?;
    let is_plain = compression.of(|| pack::shrinks(layer))? == manifest::Compression::None;
    let known = digests.find(&before).filter(|digest| is_plain && store.has(digest));
    if let Some(digest) = known {
        watch.progress.finish(layer.entry.path.as_str());
        return Ok((pack::stored(layer, digest), false));
    }
    let (stored, file) = write(store, layer, compression, watch)?;
    if is_plain {
        digests.remember(layer, before, &stored.digest);
    }
    let is_new = !store.has(&stored.digest);
    if is_new {
        store.keep(file, &stored.digest)?;
    }
    Ok((stored, is_new))
}

/// The very file becomes the blob, so that it is on the disk once.
fn link_layer(
    store: &Store,
    layer: &Layer,
    compression: Compression,
    watch: &Watch,
) -> anyhow::Result<(Stored, bool)> {
    if compression.of(|| pack::shrinks(layer))? != manifest::Compression::None {
        return keep_layer(store, layer, compression, watch);
    }
    let stored = hashed(store, layer, digests::look(layer)?, watch)?;
    let file = layer.content().next().context("a raw layer without a file")?;
    let is_new = store.link(&file.place(), &stored.digest)?;
    Ok((stored, is_new))
}

/// On a thread that may wait for the disk.
async fn work<T: Send + 'static>(
    layer: &Layer,
    work: impl FnOnce(&Layer) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let (path, layer) = (layer.entry.path.clone(), layer.clone());
    let done = spawn_blocking(move || work(&layer)).await?;
    done.with_context(|| format!("cannot pack {path}"))
}

/// What is known of a layer before it is read as it is.
enum Begun {
    Ready(Stored, Arc<dyn Source>),
    /// Its bytes have to be read once.
    Unknown(Look),
}

fn begin(
    store: &Store,
    layer: &Layer,
    compression: Compression,
    watch: &Watch,
) -> anyhow::Result<Begun> {
    if compression.of(|| pack::shrinks(layer))? != manifest::Compression::None {
        let (stored, file) = write(store, layer, compression, watch)?;
        return Ok(Begun::Ready(stored, Arc::new(Scratch(file))));
    }
    // What has not changed since it was read is not read again.
    let look = digests::look(layer)?;
    let Some(digest) = Digests::new(store.home()).find(&look) else {
        return Ok(Begun::Unknown(look));
    };
    watch.progress.finish(layer.entry.path.as_str());
    Ok(Begun::Ready(pack::stored(layer, digest), Arc::new(layer.clone())))
}

fn hashed(store: &Store, layer: &Layer, before: Look, watch: &Watch) -> anyhow::Result<Stored> {
    let key = layer.entry.path.as_str().to_owned();
    let into = watch.over(io::sink(), &key);
    let stored = pack::write(layer, manifest::Compression::None, watch.threads, into)?;
    Digests::new(store.home()).remember(layer, before, &stored.digest);
    watch.progress.finish(&key);
    Ok(stored)
}

fn write(
    store: &Store,
    layer: &Layer,
    compression: Compression,
    watch: &Watch,
) -> anyhow::Result<(Stored, tempfile::NamedTempFile)> {
    let key = layer.entry.path.as_str();
    let compression = compression.of(|| pack::shrinks(layer))?;
    let mut file = store.scratch()?;
    let into = watch.over(&mut file, key);
    let stored = pack::write(layer, compression, watch.threads, into)?;
    watch.progress.finish(key);
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
    push: &Push<'_>,
    artifact: &push::Artifact,
    manifest: &Manifest,
    (reference, tags): (&Reference, &[Tag]),
) -> anyhow::Result<()> {
    let out = &session.out;
    out.info(format!("Pushing {reference}"));
    artifact.blobs.iter().for_each(|(blob, _)| out.progress.expect_blob(blob));
    let digest = push.run(reference, tags, artifact).await?;
    out.result(format!("Pushed {digest}"), &Summary::new(&digest, reference, manifest))
}
