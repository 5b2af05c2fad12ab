//! `kit remove`: artifacts and tags go, and the blobs that nothing else needs.

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use windlass_kit::{
    Reference,
    manifest::Descriptor,
    reference::Version,
    remote,
    store::{Listed, Store},
};

use super::{flags::Network, outcome::NotThere, session::Session};

#[derive(Debug, Args)]
#[group(id = "kit-remove")]
pub(super) struct Flags {
    /// What to remove
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    reference: Option<String>,
    /// With all its tags; with --all everything
    #[arg(short, long)]
    force: bool,
    /// All that have no tag
    #[arg(short, long, conflicts_with = "remote")]
    all: bool,
    /// From the registry
    #[arg(short, long)]
    remote: bool,
    #[command(flatten)]
    network: Network,
}

pub(super) async fn run(session: &Session, flags: &Flags) -> anyhow::Result<()> {
    let removed = match &flags.reference {
        Some(text) => {
            let (reference, more) = session.references(text)?;
            let tags = more.into_iter().map(|tag| reference.with(Version::Tag(tag)));
            let references: Vec<_> = [reference.clone()].into_iter().chain(tags).collect();
            match flags.remote {
                true => elsewhere(session, &references, flags).await?,
                false => local(&session.store()?, &references, flags.force)?,
            }
        }
        None => all(&session.store()?, flags.force)?,
    };
    if session.out.json {
        let object = |(reference, digest): &(String, String)| json!({"reference": reference, "digest": digest});
        return session.out.object(&removed.iter().map(object).collect::<Value>());
    }
    let line =
        |(reference, digest): &(String, String)| format!("Removed {reference} (digest {digest})\n");
    session.out.data(removed.iter().map(line).collect::<String>())
}

/// What they were called, and their digests.
type Removed = Vec<(String, String)>;

async fn elsewhere(
    session: &Session,
    references: &[Reference],
    flags: &Flags,
) -> anyhow::Result<Removed> {
    let mut removed = Vec::new();
    for reference in references {
        if reference.is_local() {
            bail!("registry is required when removing from one: {reference} names none");
        }
        let remote = session.remote(reference.registry(), &flags.network)?;
        let found = remote.resolve(reference).await?;
        let Some(digest) = found else {
            return Err(NotThere(format!("{reference} is not in its registry")).into());
        };
        let gone = match flags.force {
            true => reference.with(Version::Digest(digest.clone())),
            false => reference.clone(),
        };
        remote.delete_manifest(&gone).await.map_err(|error| with_advice(error, &gone))?;
        removed.push((reference.to_string(), digest.to_string()));
    }
    Ok(removed)
}

/// Many registries remove no single tags, and some nothing at all.
fn with_advice(error: remote::Error, gone: &Reference) -> anyhow::Error {
    let is_unable = matches!(
        &error,
        remote::Error::Refused { status, .. } if matches!(status.as_u16(), 400 | 405)
    );
    let advice = match gone.version() {
        Version::Tag(_) => {
            "its registry removes no single tags; --force removes it with all of them"
        }
        Version::Digest(_) => "its registry lets nobody remove anything",
    };
    match is_unable {
        true => anyhow::Error::from(error).context(format!("cannot remove {gone}: {advice}")),
        false => error.into(),
    }
}

fn local(store: &Store, references: &[Reference], force: bool) -> anyhow::Result<Removed> {
    let mut removed = Vec::new();
    for reference in references {
        let found = store.resolve(reference)?;
        let gone = match force {
            true => reference.with(Version::Digest(found.digest.clone())),
            false => reference.clone(),
        };
        removed.push(one(store, &gone, reference)?);
    }
    Ok(removed)
}

fn all(store: &Store, force: bool) -> anyhow::Result<Removed> {
    let mut removed = Vec::new();
    for Listed { registry, repository, manifest, tags } in store.list()? {
        if force || tags.is_empty() {
            let reference = Reference::parse(&format!("{registry}/{repository}"))?;
            let reference = reference.with(Version::Digest(manifest.digest.clone()));
            removed.push(one(store, &reference, &reference)?);
        }
    }
    Ok(removed)
}

fn one(store: &Store, gone: &Reference, told: &Reference) -> anyhow::Result<(String, String)> {
    let found: Descriptor = store.remove(gone)?;
    store.collect(&found)?;
    Ok((told.to_string(), found.digest.to_string()))
}
