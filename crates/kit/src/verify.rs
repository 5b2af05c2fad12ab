//! Whether the holder of a key has signed an artifact, as cosign stores signatures: under a tag beside
//! it, or as an artifact that refers to it.
//!
//! `signature` judges one; here they are found. What was signed is the digest, never a tag.

use std::{io, path::PathBuf};

use crate::{
    Digest, Reference,
    manifest::Manifest,
    reference::{self, Tag, Version},
    remote::{self, Remote},
};

mod key;
mod signature;

pub use key::Key;

use signature::{BUNDLE, SIGNED, Signature};

/// Whoever wants to keep us busy can store any number of them.
const MOST: usize = 100;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the key {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} is no public key that can be used: it must be ECDSA P-256, as PEM", .0.display())]
    Key(PathBuf),
    #[error(transparent)]
    Remote(#[from] remote::Error),
    #[error(transparent)]
    Reference(#[from] reference::Error),
    #[error("{0} is not signed")]
    Unsigned(Reference),
    #[error("no signature of {reference} is by this key; {tried} looked at: {last}")]
    Other { reference: Reference, tried: usize, last: signature::Refused },
}

/// Nothing but the manifest and the signatures is read. Returns the digest that was signed.
pub async fn verify(remote: &Remote, reference: &Reference, key: &Key) -> Result<Digest, Error> {
    let (descriptor, manifest) = remote.manifest(reference).await?;
    let digest = descriptor.digest;
    let mut refused = Vec::new();
    for signature in signatures(remote, reference, &digest).await? {
        match signature.check(key, &digest, &manifest) {
            Ok(()) => return Ok(digest),
            Err(reason) => refused.push(reason),
        }
    }
    let reference = reference.with(Version::Digest(digest));
    let tried = refused.len();
    match refused.pop() {
        Some(last) => Err(Error::Other { reference, tried, last }),
        None => Err(Error::Unsigned(reference)),
    }
}

async fn signatures(
    remote: &Remote,
    reference: &Reference,
    digest: &Digest,
) -> Result<Vec<Signature>, Error> {
    let mut found = Vec::new();
    let beside = Tag::parse(&format!("sha256-{}.sig", digest.hex()))?;
    if let Some(manifest) = manifest(remote, &reference.with(Version::Tag(beside))).await? {
        read(remote, reference, &manifest, SIGNED, &mut found).await?;
    }
    for referrer in remote.referrers(reference.repository(), digest, BUNDLE).await? {
        let referrer = reference.with(Version::Digest(referrer.digest));
        if let Some(manifest) = manifest(remote, &referrer).await? {
            read(remote, reference, &manifest, BUNDLE, &mut found).await?;
        }
    }
    Ok(found)
}

/// Nothing where there is none, or none that makes sense: then nobody has signed with it.
async fn manifest(remote: &Remote, reference: &Reference) -> Result<Option<Manifest>, Error> {
    match remote.manifest(reference).await {
        Ok((_, bytes)) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if is_broken(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whoever may write there could else spoil every good signature with a bad one.
fn is_broken(error: &remote::Error) -> bool {
    use remote::Error as E;
    matches!(error, E::NotFound { .. } | E::Mismatch { .. } | E::Nonsense { .. })
}

async fn read(
    remote: &Remote,
    reference: &Reference,
    manifest: &Manifest,
    media_type: &str,
    found: &mut Vec<Signature>,
) -> Result<(), Error> {
    let layers = manifest.layers.iter().filter(|layer| layer.media_type == media_type);
    for layer in layers.take(MOST.saturating_sub(found.len())) {
        found.push(match remote.small_blob(reference.repository(), layer).await {
            Ok(bytes) if media_type == SIGNED => Signature::beside(&bytes, &layer.annotations),
            Ok(bytes) => Signature::bundle(&bytes),
            Err(error) if is_broken(&error) => Signature::Nonsense,
            Err(error) => return Err(error.into()),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
