//! A directory and its Kitfile become an artifact.

use std::io::{self, Read, Write};

use sha2::{Digest as _, Sha256};

use crate::{
    Digest, Kitfile,
    digest::HashWriter,
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
    let mut sample = Vec::new();
    layer.read().take(SAMPLE).read_to_end(&mut sample)?;
    let packed = zstd::bulk::compress(&sample, 3)?;
    Ok(packed.len() < sample.len() / 10 * 9)
}

/// Writes a layer, compressed unless it is a file as it is. Equal layers give equal bytes.
pub fn write(layer: &Layer, compression: Compression, into: impl Write) -> io::Result<Stored> {
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
            let mut encoder = zstd::stream::write::Encoder::new(&mut out, 3)?;
            encoder.include_checksum(true)?;
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
