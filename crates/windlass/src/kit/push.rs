//! `kit push`: an artifact of the local storage goes to a registry.

use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use windlass_kit::{
    Reference,
    manifest::{Descriptor, Manifest},
    push::{self, Memory, Push},
    remote::Source,
    store::Store,
};

use super::{artifact, flags::Network, packing, session::Session};

#[derive(Debug, Args)]
#[group(id = "kit-push")]
pub(super) struct Flags {
    /// What to push
    source: String,
    /// What to call it there: REGISTRY/REPOSITORY[:TAG[,TAG...]]
    destination: Option<String>,
    #[command(flatten)]
    network: Network,
}

pub(super) async fn run(session: &Session, flags: &Flags) -> anyhow::Result<()> {
    let (source, more) = session.references(&flags.source)?;
    let (to, tags) = match &flags.destination {
        Some(destination) => session.references(destination)?,
        None => (source.clone(), more),
    };
    if to.is_local() {
        bail!("registry is required when pushing: {to} names none");
    }
    let store = session.store()?;
    let _using = store.using()?;
    let descriptor = store.resolve(&source)?;
    let manifest = store.manifest(&descriptor)?;
    let artifact = artifact(&store, &descriptor, &manifest)?;
    let from = elsewhere(&store, &descriptor, &to)?;
    let push = Push {
        remote: &session.remote(to.registry(), &flags.network)?,
        memory: &Memory::new(session.home()),
        concurrency: flags.network.concurrency.get(),
        from: from.as_deref(),
        progress: Arc::new(session.out.progress.clone()),
    };
    packing::send(session, &push, &artifact, &manifest, (&to, &tags)).await
}

fn artifact(
    store: &Store,
    descriptor: &Descriptor,
    manifest: &Manifest,
) -> anyhow::Result<push::Artifact> {
    let source = |blob: &Descriptor| {
        let source: Arc<dyn Source> = Arc::new(store.blob(&blob.digest));
        (blob.clone(), source)
    };
    let blobs = manifest.layers.iter().chain([&manifest.config]).map(source);
    Ok(push::Artifact {
        media_type: descriptor.media_type.clone(),
        manifest: artifact::verified(store, descriptor)?.into(),
        blobs: packing::once(blobs),
    })
}

/// Another repository of the same registry that has it, as far as the local storage knows.
fn elsewhere(
    store: &Store,
    descriptor: &Descriptor,
    to: &Reference,
) -> anyhow::Result<Option<String>> {
    let is_other = |registry: &str, repository: &str| {
        registry == to.registry() && repository != to.repository()
    };
    let listed = store.list()?.into_iter();
    let mut others = listed
        .filter(|listed| listed.manifest.digest == descriptor.digest)
        .filter(|listed| is_other(&listed.registry, &listed.repository));
    Ok(others.next().map(|listed| listed.repository))
}
