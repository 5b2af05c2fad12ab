//! What is measured once beside the large model: many small files, and text that is compressed.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result};
use serde::Serialize;

use super::{
    Arguments, data,
    program::{Kit, Ran},
    report::{Figure, megabytes, ratio, seconds},
    run::clear,
};

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Small {
    pub(super) files: u32,
    pub(super) pack_seconds: Figure<3>,
    pub(super) unpack_seconds: Figure<3>,
    pub(super) peak_memory_mb: Figure<1>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Text {
    pub(super) megabytes: u32,
    pub(super) gzip_seconds: Figure<3>,
    pub(super) zstd_seconds: Figure<3>,
    pub(super) zstd_of_gzip: Figure<2>,
    /// What is left of it.
    pub(super) gzip_mb: Figure<1>,
    pub(super) zstd_mb: Figure<1>,
    pub(super) peak_memory_mb: Figure<1>,
}

pub(super) fn small(kit: &Kit<'_>, arguments: &Arguments) -> Result<Small> {
    let (from, to) = (kit.scratch.join("small"), kit.scratch.join("unpacked"));
    data::small(&from, arguments.small_files)?;
    let pack = kit.run("here", &["pack", &from.to_string_lossy(), "--tag", "small:one"])?;
    let arguments_of = ["unpack", "small:one", "--dir", &to.to_string_lossy()];
    let unpack = kit.run("here", &arguments_of)?;
    clear(kit.scratch, &["here", "small", "unpacked"])?;
    Ok(Small {
        files: arguments.small_files,
        pack_seconds: seconds(pack.time),
        unpack_seconds: seconds(unpack.time),
        peak_memory_mb: megabytes(pack.peak.max(unpack.peak)),
    })
}

pub(super) fn text(kit: &Kit<'_>, arguments: &Arguments) -> Result<Text> {
    let from = kit.scratch.join("text");
    data::text(&from, arguments.text_megabytes)?;
    let pack = |compression: &str| -> Result<(Ran, Figure<1>)> {
        let compression = format!("--compression={compression}");
        let command = ["pack", &from.to_string_lossy(), "--tag", "text:one", &compression];
        let ran = kit.run("here", &command)?;
        let size = size_of(&kit.scratch.join("here/storage/blobs/sha256"))?;
        clear(kit.scratch, &["here"])?;
        Ok((ran, megabytes(size)))
    };
    let (gzip, gzip_mb) = pack("gzip")?;
    let (zstd, zstd_mb) = pack("zstd")?;
    clear(kit.scratch, &["text"])?;
    Ok(Text {
        megabytes: arguments.text_megabytes,
        gzip_seconds: seconds(gzip.time),
        zstd_seconds: seconds(zstd.time),
        zstd_of_gzip: ratio(zstd.time, gzip.time.max(Duration::from_millis(1))),
        gzip_mb,
        zstd_mb,
        peak_memory_mb: megabytes(gzip.peak.max(zstd.peak)),
    })
}

/// Of all files in a folder.
fn size_of(folder: &Path) -> Result<u64> {
    let sizes = fs::read_dir(folder).and_then(|files| {
        files.map(|file| Ok(file?.metadata()?.len())).sum::<std::io::Result<_>>()
    });
    sizes.with_context(|| format!("cannot look into {}", folder.display()))
}
