//! A directory and its Kitfile become an artifact.

use std::io::{self, Read, Write};

use sha2::{Digest as _, Sha256};
use zstd::{
    stream::write::Encoder,
    zstd_safe::{CParameter, Strategy},
};

use crate::{
    Digest, Kitfile,
    digest::HashWriter,
    kitfile::Entry,
    layer::{Format, Layer},
    manifest::{self, Artifact, Compression, Profile, RawFile, Stored, model_kit, model_pack},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Form {
    #[default]
    ModelKit,
    ModelPack,
}

/// What the hash of a layer is fed with at a time.
const PIECE: usize = 1 << 20;
/// Of a layer that may be worth compressing.
const SAMPLE: u64 = 4 << 20;
const LEVEL: i32 = 3;
/// What the level says is quick, but leaves more of some text than gzip does. Longer matches, looked for a
/// little harder, leave less, and several threads make up for the time.
const SEARCH: [CParameter; 6] = [
    CParameter::WindowLog(21),
    CParameter::Strategy(Strategy::ZSTD_greedy),
    CParameter::MinMatch(6),
    CParameter::HashLog(17),
    CParameter::ChainLog(16),
    CParameter::SearchLog(2),
];
/// What a thread compresses at a time, in bytes, and how much of what is before it looks at: a
/// sixteenth of the window. Each thread has a few of these in memory.
const JOBS: [CParameter; 2] = [CParameter::JobSize(512 << 10), CParameter::OverlapSizeLog(5)];

/// The digest of a layer that is stored as it is.
pub fn hash(layer: &Layer) -> io::Result<Digest> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut reader = layer.read();
    loop {
        match reader.read(&mut piece)? {
            0 => return Ok(Digest::finish(hash)),
            count => hash.update(&piece[..count]),
        }
    }
}

/// What a layer of plain bytes is in a manifest.
pub fn stored(layer: &Layer, digest: Digest) -> Stored {
    let raw = layer.content().next().filter(|_| layer.format == Format::Raw);
    Stored {
        kind: layer.entry.kind,
        path: layer.entry.path.as_str().to_owned(),
        format: layer.format,
        compression: Compression::None,
        diff_id: digest.clone(),
        digest,
        size: layer.size(),
        file: raw.map(|file| RawFile { mode: file.mode & 0o777, size: file.size }),
    }
}

/// Whether it would be worth it to compress a layer, judged by its beginning; so equal layers are
/// judged alike.
pub fn shrinks(layer: &Layer) -> io::Result<bool> {
    let mut packed = Tee { hash: HashWriter::default(), count: 0, into: io::sink() };
    let mut encoder = encoder(&mut packed, 1)?;
    let sample = io::copy(&mut layer.read().take(SAMPLE), &mut encoder)?;
    encoder.finish()?;
    Ok(packed.count < sample / 10 * 9)
}

/// Writes a layer, compressed unless it is a file as it is. Equal layers give equal bytes, by however many
/// threads.
pub fn write(
    layer: &Layer,
    compression: Compression,
    threads: u32,
    into: impl Write,
) -> io::Result<Stored> {
    let compression = match layer.format {
        Format::Tar => compression,
        Format::Raw => Compression::None,
    };
    let mut plain = Tee { hash: HashWriter::default(), count: 0, into: io::sink() };
    let mut out = Tee { hash: HashWriter::default(), count: 0, into };
    match compression {
        Compression::None => copy(layer, &mut out, None)?,
        Compression::Gzip => gzip(layer, &mut out, &mut plain, flate2::Compression::new(6))?,
        Compression::GzipFastest => gzip(layer, &mut out, &mut plain, flate2::Compression::new(1))?,
        Compression::Zstd => {
            let mut encoder = encoder(&mut out, threads)?;
            copy(layer, &mut encoder, Some(&mut plain))?;
            encoder.finish()?;
        }
    }
    out.flush()?;
    let digest = Digest::finish(out.hash.0);
    let diff_id = match compression {
        Compression::None => digest.clone(),
        _ => Digest::finish(plain.hash.0),
    };
    Ok(Stored { diff_id, size: out.count, compression, ..stored(layer, digest) })
}

fn encoder<W: Write>(into: W, threads: u32) -> io::Result<Encoder<'static, W>> {
    let mut encoder = Encoder::new(into, LEVEL)?;
    encoder.include_checksum(true)?;
    // One is not the same as none, which would give other bytes.
    encoder.multithread(threads.max(1))?;
    for parameter in SEARCH.into_iter().chain(JOBS) {
        encoder.set_parameter(parameter)?;
    }
    Ok(encoder)
}

fn gzip(
    layer: &Layer,
    out: &mut impl Write,
    plain: &mut dyn Write,
    level: flate2::Compression,
) -> io::Result<()> {
    // Neither a time nor a system in its header.
    let mut encoder = flate2::GzBuilder::new().mtime(0).operating_system(255).write(out, level);
    copy(layer, &mut encoder, Some(plain))?;
    encoder.finish().map(drop)
}

fn copy(
    layer: &Layer,
    into: &mut impl Write,
    mut beside: Option<&mut dyn Write>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut reader = layer.read();
    loop {
        match reader.read(&mut piece)? {
            0 => return Ok(()),
            count => {
                into.write_all(&piece[..count])?;
                if let Some(beside) = &mut beside {
                    beside.write_all(&piece[..count])?;
                }
            }
        }
    }
}

/// Hashes and counts what is written through it.
struct Tee<W> {
    hash: HashWriter,
    count: u64,
    into: W,
}

impl<W: Write> Write for Tee<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.into.write(bytes)?;
        self.hash.write_all(&bytes[..count])?;
        self.count += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}

/// Whether so many layers can be in one manifest, judged before any of them is looked at: whatever is not
/// known of them only makes it larger.
pub fn fits(kitfile: &Kitfile, form: Form) -> Result<(), manifest::Error> {
    let unknown = Digest::of(b"");
    let least = |entry: Entry| Stored {
        kind: entry.kind,
        path: entry.path.as_str().to_owned(),
        format: Format::Tar,
        compression: Compression::None,
        digest: unknown.clone(),
        diff_id: unknown.clone(),
        size: 0,
        file: None,
    };
    let layers: Vec<Stored> = kitfile.entries()?.into_iter().map(least).collect();
    assemble(kitfile, &layers, form, &Profile::Kit111).map(drop)
}

/// The manifest and the config over layers that are stored.
pub fn assemble(
    kitfile: &Kitfile,
    layers: &[Stored],
    form: Form,
    profile: &Profile,
) -> Result<Artifact, manifest::Error> {
    let mut kitfile = kitfile.clone();
    for (entry, layer) in kitfile.stored().zip(layers) {
        *entry.digest = Some(layer.digest.clone());
        *entry.diff_id = Some(layer.diff_id.clone());
    }
    match form {
        Form::ModelKit => model_kit::artifact(&kitfile, layers, profile),
        Form::ModelPack => model_pack::artifact(&kitfile, layers, profile),
    }
}

#[cfg(test)]
mod tests;
