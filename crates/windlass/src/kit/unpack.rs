//! `kit unpack`: the files of an artifact, from the local storage or straight from a registry.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, bail};
use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::task::spawn_blocking;
use windlass_kit::{
    Reference,
    kitfile::NAMES,
    manifest::Compression,
    unpack::{self, Existing, Expected, Filter, InvalidFilter, Limits, Target},
};

use super::{
    artifact::{Artifact, CHAIN, Look},
    flags::{Network, bytes},
    output::Summary,
    session::Session,
    verify,
};

const ENTRIES: u64 = 10_000_000;
/// What a compressed layer may become: so many times what is stored, and this much at least.
const EXPANSION: u64 = 100;
const ROOM: u64 = 1 << 30;

#[derive(Debug, Args)]
#[group(id = "kit-unpack")]
pub(super) struct Flags {
    /// What to unpack
    reference: String,
    /// Where to; made if it is not there
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Replace files that are there
    #[arg(short, long, conflicts_with = "ignore_existing")]
    overwrite: bool,
    /// Leave files that are there as they are
    #[arg(short, long)]
    ignore_existing: bool,
    /// Only these: types, separated by commas, and after a colon names or paths; may be given several
    /// times
    #[arg(short, long, value_name = "TYPES[:NAMES]", value_parser = filter)]
    filter: Vec<Filter>,
    /// What a compressed layer may become at most; a hundred times its size and at least 1GiB if not given
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    max_size: Option<u64>,
    /// Unpack nothing that the holder of this key has not signed; ECDSA P-256, as PEM
    #[arg(long, value_name = "FILE")]
    verify_key: Option<PathBuf>,
    #[command(flatten)]
    old: Old,
    #[command(flatten)]
    network: Network,
}

/// What `--filter` was before.
#[derive(Debug, Args)]
#[group(id = "kit-unpack-old")]
struct Old {
    #[arg(long, hide = true)]
    kitfile: bool,
    #[arg(long, hide = true)]
    model: bool,
    #[arg(long, hide = true)]
    code: bool,
    #[arg(long, hide = true)]
    datasets: bool,
    #[arg(long, hide = true)]
    docs: bool,
}

fn filter(text: &str) -> Result<Filter, InvalidFilter> {
    text.parse()
}

impl Flags {
    fn filters(&self) -> anyhow::Result<Vec<Filter>> {
        let old = [
            ("kitfile", self.old.kitfile),
            ("model", self.old.model),
            ("code", self.old.code),
            ("datasets", self.old.datasets),
            ("docs", self.old.docs),
        ];
        let mut filters = self.filter.clone();
        for (name, _) in old.iter().filter(|(_, is_given)| *is_given) {
            filters.push(name.parse()?);
        }
        Ok(filters)
    }

    fn existing(&self) -> Existing {
        match (self.overwrite, self.ignore_existing) {
            (true, _) => Existing::Replace,
            (false, true) => Existing::Keep,
            (false, false) => Existing::Refuse,
        }
    }

    fn limits(&self, layer: &Expected) -> Limits {
        let bytes = match (layer.compression, self.max_size) {
            (Compression::None, _) => layer.size,
            (_, Some(limit)) => limit,
            (_, None) => layer.size.saturating_mul(EXPANSION).max(ROOM),
        };
        Limits { entries: ENTRIES, bytes }
    }
}

pub(super) async fn run(session: &Session, flags: &Flags) -> anyhow::Result<()> {
    let wanted = session.reference(&flags.reference)?;
    let target = Target::open(&flags.dir)
        .with_context(|| format!("cannot unpack into {}", flags.dir.display()))?;
    let target = Arc::new(target);
    let mut filters = flags.filters()?;
    let mut summary = None;
    let mut next = Some(wanted);
    for _ in 0..CHAIN {
        let Some(mut reference) = next.take() else { break };
        if let Some(key) = &flags.verify_key {
            reference = verify::signed(session, &reference, key, &flags.network).await?;
        }
        let artifact =
            Artifact::find(session, &reference, Look::StoreFirst, &flags.network).await?;
        one(session, flags, &artifact, &filters, &target).await?;
        next = parent(&artifact, &filters);
        summary.get_or_insert_with(|| {
            Summary::new(&artifact.descriptor.digest, &reference, &artifact.manifest)
        });
        // Of what it rests on, only the model.
        filters = vec!["model".parse()?];
    }
    if let Some(next) = next {
        bail!("more than {CHAIN} artifacts rest on each other; the next would be {next}");
    }
    let Some(summary) = summary else { return Ok(()) };
    session.out.result(format!("Unpacked to {}", flags.dir.display()), &summary)
}

/// The artifact that has the model, where it is wanted.
fn parent(artifact: &Artifact, filters: &[Filter]) -> Option<Reference> {
    let parent = artifact.contents.kitfile.as_ref()?.parent()?;
    let entry = windlass_kit::kitfile::Entry {
        kind: windlass_kit::kitfile::Kind::Model,
        name: String::new(),
        path: windlass_kit::kitfile::Path::parse(".").ok()?,
    };
    unpack::wants(filters, &entry).then_some(parent)
}

async fn one(
    session: &Session,
    flags: &Flags,
    artifact: &Artifact,
    filters: &[Filter],
    target: &Arc<Target>,
) -> anyhow::Result<()> {
    let out = &session.out;
    out.info(format!("Unpacking {}", artifact.reference));
    for media_type in &artifact.contents.unknown {
        out.warn(format!("a layer of type {media_type} is passed over"));
    }
    if artifact.contents.has_wrong_diff_ids {
        out.warn("the config has other diffIds than the Kitfile, as kit before 1.15 made them");
    }
    if let Some(kitfile) = &artifact.contents.kitfile
        && unpack::wants_kitfile(filters)
    {
        let text = kitfile.to_yaml()?;
        unpack::file(NAMES[0], text.as_bytes(), target, flags.existing())?;
    }
    let layers = artifact.contents.layers.iter().filter(|f| unpack::wants(filters, &f.entry));
    let layers: Vec<_> = layers.collect();
    for layer in &layers {
        let expected = &layer.expected;
        out.progress.expect(expected.digest.as_str(), layer.entry.path.as_str(), expected.size);
    }
    stream::iter(layers)
        .map(Ok)
        .try_for_each_concurrent(flags.network.concurrency.get(), async |layer| {
            let expected = layer.expected.clone();
            let from = artifact.open(session, &expected)?;
            let (existing, limits) = (flags.existing(), flags.limits(&expected));
            let target = target.clone();
            let work = move || unpack::layer(from, &expected, &target, existing, limits);
            let done = spawn_blocking(work).await?;
            let (kind, path) = (layer.entry.kind, &layer.entry.path);
            done.with_context(|| format!("cannot unpack {kind} {path}"))?;
            out.progress.finish(layer.expected.digest.as_str());
            anyhow::Ok(())
        })
        .await
}
