//! What the machine can do at all: the same bytes hashed and nothing else, copied and nothing else.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::data::Model;

const BLOCK: usize = 1 << 20;

/// How long each takes, in one thread.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) hash: Duration,
    pub(super) copy: Duration,
}

impl Limits {
    pub(super) fn measure(model: &Model, scratch: &Path) -> Result<Self> {
        fs::create_dir(scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
        let hash = hash(model)?;
        let copy = timed(model, |file| {
            let mut to = File::create(scratch.join(file.file_name().unwrap_or_default()))?;
            blocks(file, |block| to.write_all(block))?;
            // As stores and registries do before they say that they have it.
            to.sync_all()
        })?;
        fs::remove_dir_all(scratch).context("cannot remove the copies")?;
        Ok(Self { hash, copy })
    }
}

pub(super) fn hash(model: &Model) -> Result<Duration> {
    timed(model, |file| {
        let mut hash = Sha256::new();
        blocks(file, |block| {
            hash.update(block);
            Ok(())
        })?;
        std::hint::black_box(hash.finalize());
        Ok(())
    })
}

fn timed(model: &Model, mut work: impl FnMut(&Path) -> std::io::Result<()>) -> Result<Duration> {
    let start = Instant::now();
    for file in &model.files {
        work(file).with_context(|| format!("cannot measure with {}", file.display()))?;
    }
    Ok(start.elapsed())
}

/// Not [`std::io::copy`]: the kernel might share the blocks instead of copying them.
pub(super) fn blocks(
    file: &Path,
    mut take: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut file = File::open(file)?;
    let mut buffer = vec![0; BLOCK];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            read => take(&buffer[..read])?,
        }
    }
}
