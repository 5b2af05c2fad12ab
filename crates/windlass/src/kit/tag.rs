//! `kit tag`: another name for what is in the local storage.

use anyhow::bail;
use clap::Args;
use windlass_kit::reference::Version;

use super::{output::Summary, session::Session};

#[derive(Debug, Args)]
#[group(id = "kit-tag")]
pub(super) struct Flags {
    /// What it is called
    source: String,
    /// What it is to be called too: [REGISTRY/]REPOSITORY[:TAG[,TAG...]]
    destination: String,
}

pub(super) fn run(session: &Session, flags: &Flags) -> anyhow::Result<()> {
    let source = session.reference(&flags.source)?;
    let (to, more) = session.references(&flags.destination)?;
    let Version::Tag(tag) = to.version() else { bail!("cannot tag as {to}: a digest is no tag") };
    let store = session.store()?;
    let descriptor = store.resolve(&source)?;
    let tags: Vec<_> = [tag.clone()].into_iter().chain(more).collect();
    store.add(&to, &descriptor, &tags)?;
    let manifest = store.manifest(&descriptor)?;
    let summary = Summary::new(&descriptor.digest, &to, &manifest);
    session.out.result(format!("Modelkit {source} tagged as {to}"), &summary)
}
