//! The client alone: to a registry that does nothing, from a hub on this machine, and with files that
//! have to come from the disk.

use std::{
    fs::{self, File},
    io,
    net::SocketAddr,
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise};
use serde::Serialize;

use super::{
    data::Model,
    limits::{self, Limits},
    program::{Kit, Ran},
    report::{Figure, Step, median, rate, seconds},
    run::{clear, same},
    sink::Sink,
};

/// The rounds.
#[derive(Default)]
pub(super) struct Measured {
    warm: Vec<Limits>,
    /// With what it takes to hash files that are not in memory.
    cold: Vec<Limits>,
    pack_push: Sent,
    import: Sent,
    pack_push_cold: Sent,
    unpack_cold: Sent,
}

/// Rounds of a command, and the most that one of them has sent.
#[derive(Default)]
struct Sent {
    ran: Vec<Ran>,
    bytes: u64,
}

/// What a field means is said in CONTRIBUTING.md.
#[derive(Debug, Serialize)]
pub(super) struct Client {
    pub(super) cold_hash_mb_per_second: Figure<1>,
    pub(super) pack_push: Row,
    pub(super) import: Row,
    pub(super) pack_push_cold: Row,
    pub(super) unpack_cold: Row,
}

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) seconds: Figure<3>,
    #[serde(flatten)]
    pub(super) step: Step,
    /// By the size of the model.
    pub(super) sent: Figure<4>,
}

impl Measured {
    /// After the limits of the same round.
    pub(super) fn round(
        &mut self,
        kit: &Kit<'_>,
        model: &Model,
        hub: SocketAddr,
        limits: Limits,
    ) -> Result<()> {
        let from = model.folder.to_string_lossy();
        let sink = Sink::start()?;
        let reference = format!("{}/bench/model:one", sink.address);
        let push = ["--tag", &reference, "--push", "--plain-http"];
        let pack = [&["pack", &from][..], &push].concat();
        self.warm.push(limits);
        self.pack_push.run(kit, &sink, &pack)?;
        let hub = format!("http://{hub}");
        let import = ["import", "bench/model", "--endpoint", &hub, "--use-model-pack"];
        self.import.run(kit, &sink, &[&import[..], &push].concat())?;

        forget(&model.folder)?;
        self.cold.push(Limits { hash: limits::hash(model)?, ..limits });
        forget(&model.folder)?;
        self.pack_push_cold.run(kit, &sink, &pack)?;
        let target = kit.scratch.join("unpacked");
        kit.run("here", &["pack", &from, "--tag", "model:one"])?;
        forget(&kit.scratch.join("here"))?;
        let unpack = ["unpack", "model:one", "--dir", &target.to_string_lossy()];
        self.unpack_cold.ran.push(kit.run("here", &unpack)?);
        same(model, &target)?;
        clear(kit.scratch, &["here", "unpacked"])
    }

    pub(super) fn report(&self, bytes: u64) -> Client {
        let row = |sent: &Sent, limits: &[Limits]| Row {
            seconds: seconds(median(sent.ran.iter().map(|ran| ran.time))),
            step: Step::of(bytes, limits, &sent.ran),
            sent: Figure(sent.bytes as f64 / bytes as f64),
        };
        let hash: Duration = median(self.cold.iter().map(|limits| limits.hash));
        Client {
            cold_hash_mb_per_second: rate(bytes, hash),
            pack_push: row(&self.pack_push, &self.warm),
            import: row(&self.import, &self.warm),
            pack_push_cold: row(&self.pack_push_cold, &self.cold),
            unpack_cold: row(&self.unpack_cold, &self.cold),
        }
    }
}

impl Sent {
    /// By somebody who has nothing yet.
    fn run(&mut self, kit: &Kit<'_>, sink: &Sink, arguments: &[&str]) -> Result<()> {
        sink.forget();
        let before = sink.taken();
        self.ran.push(kit.run("here", arguments)?);
        self.bytes = self.bytes.max(sink.taken() - before);
        clear(kit.scratch, &["here"])
    }
}

impl Client {
    pub(super) fn rows(&self) -> [(&'static str, &Row); 4] {
        [
            ("pack --push", &self.pack_push),
            ("... cold", &self.pack_push_cold),
            ("import --push", &self.import),
            ("unpack, cold", &self.unpack_cold),
        ]
    }
}

/// What the kernel has of these files in memory, so that they are read from the disk.
fn forget(folder: &Path) -> Result<()> {
    let failed = || format!("cannot have {} forgotten", folder.display());
    for child in fs::read_dir(folder).with_context(failed)? {
        let path = child.with_context(failed)?.path();
        match path.is_dir() {
            true => forget(&path)?,
            false => forget_file(&path).with_context(failed)?,
        }
    }
    Ok(())
}

/// What is not on the disk yet would stay.
fn forget_file(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}
