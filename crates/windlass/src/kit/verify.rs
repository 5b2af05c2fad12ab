//! `kit verify`: whether the holder of a key has signed an artifact of a registry.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use windlass_kit::{
    Reference,
    manifest::Manifest,
    reference::Version,
    verify::{Key, verify},
};

use super::{flags::Network, output::Summary, session::Session};

#[derive(Debug, Args)]
#[group(id = "kit-verify")]
pub(super) struct Flags {
    /// What to look at: REGISTRY/REPOSITORY[:TAG]
    reference: String,
    /// Public key of whoever must have signed it, as cosign writes it (ECDSA P-256, PEM)
    #[arg(long, value_name = "FILE")]
    verify_key: PathBuf,
    #[command(flatten)]
    network: Network,
}

pub(super) async fn run(session: &Session, flags: &Flags) -> anyhow::Result<()> {
    let reference = session.reference(&flags.reference)?;
    let signed = signed(session, &reference, &flags.verify_key, &flags.network).await?;
    let remote = session.remote(signed.registry(), &flags.network)?;
    let (descriptor, bytes) = remote.manifest(&signed).await?;
    let manifest: Manifest = serde_json::from_slice(&bytes)?;
    let summary = Summary::new(&descriptor.digest, reference, &manifest);
    session.out.result(format!("Verified {}", descriptor.digest), &summary)
}

/// By the digest that was signed: what its tag means may change.
pub(super) async fn signed(
    session: &Session,
    reference: &Reference,
    key: &Path,
    network: &Network,
) -> anyhow::Result<Reference> {
    if reference.is_local() {
        bail!("registry is required when verifying: {reference} names none");
    }
    let key = Key::open(key)?;
    let remote = session.remote(reference.registry(), network)?;
    let digest = verify(&remote, reference, &key).await?;
    Ok(reference.with(Version::Digest(digest)))
}
