//! `kit pull`: an artifact of a registry comes into the local storage, and those that it rests on.

use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use windlass_kit::{Reference, pull::Pull};

use super::{
    artifact::{Artifact, CHAIN, Look},
    flags::Network,
    output::Summary,
    session::Session,
};

#[derive(Debug, Args)]
#[group(id = "kit-pull")]
pub(super) struct Flags {
    /// What to pull: REGISTRY/REPOSITORY[:TAG]
    reference: String,
    #[command(flatten)]
    network: Network,
}

pub(super) async fn run(session: &Session, flags: &Flags) -> anyhow::Result<()> {
    let out = &session.out;
    let wanted = session.reference(&flags.reference)?;
    if wanted.is_local() {
        bail!("registry is required when pulling: {wanted} names none");
    }
    let mut summary = None;
    let mut next = Some(wanted);
    for _ in 0..CHAIN {
        let Some(reference) = next.take() else { break };
        out.info(format!("Pulling {reference}"));
        let one = one(session, &reference, &flags.network).await?;
        next = one.parent.filter(|parent| !parent.is_local());
        summary.get_or_insert(one.summary);
    }
    if let Some(next) = next {
        bail!("more than {CHAIN} artifacts rest on each other; the next would be {next}");
    }
    let Some(summary) = summary else { return Ok(()) };
    out.result(format!("Pulled {}", summary.digest), &summary)
}

struct Pulled {
    summary: Summary,
    parent: Option<Reference>,
}

async fn one(
    session: &Session,
    reference: &Reference,
    network: &Network,
) -> anyhow::Result<Pulled> {
    let remote = session.remote(reference.registry(), network)?;
    let store = session.store()?;
    let pull = Pull {
        remote: &remote,
        store: &store,
        concurrency: network.concurrency.get(),
        progress: Arc::new(session.out.progress.clone()),
    };
    let (descriptor, manifest) = pull.run(reference).await?;
    let summary = Summary::new(&descriptor.digest, reference, &manifest);
    let artifact = Artifact::find(session, reference, Look::Store, network).await?;
    let parent = artifact.contents.kitfile.as_ref().and_then(|kitfile| kitfile.parent());
    Ok(Pulled { summary, parent })
}
