//! Layers become files again: nothing outside the target, nothing under its name before it is verified.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read, Write},
};

use sha2::{Digest as _, Sha256};

use crate::{
    Digest,
    layer::Format,
    manifest::Compression,
    tar::{
        Type,
        read::{self, Archive},
    },
};

mod select;
mod staged;
mod target;

pub use select::{Filter, InvalidFilter, wants, wants_kitfile};
pub use target::Target;

use staged::Staged;

/// Of all names of a layer's directories, which are kept until it is verified.
const NAMES: usize = 8 << 20;
/// What a compressed layer may want to have in memory, as a power of two. What every level of zstd but the
/// extreme ones takes.
const WINDOW: u32 = 23;
/// Read and written at a time.
const PIECE: usize = 1 << 20;

/// What to do with a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Existing {
    #[default]
    Refuse,
    Keep,
    Replace,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub entries: u64,
    /// Of a layer, once it is no longer compressed.
    pub bytes: u64,
}

/// What the manifest says of a layer.
#[derive(Clone, Debug)]
pub struct Expected {
    pub digest: Digest,
    pub size: u64,
    /// Of the bytes before they were compressed, where that can be trusted.
    pub diff_id: Option<Digest>,
    pub format: Format,
    pub compression: Compression,
    /// The file of a layer that is no archive.
    pub path: String,
    pub mode: u32,
    /// The folder that the names of an archive begin in; empty for the target itself.
    pub under: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("layer {digest} does not match: its bytes have the digest {is}")]
    Digest { digest: Digest, is: Digest },
    #[error("layer {digest} has {is} bytes instead of {size}")]
    Size { digest: Digest, size: u64, is: u64 },
    #[error("layer {digest} holds other content than its config says: {is}")]
    DiffId { digest: Digest, is: Digest },
    #[error("path '{0}' already exists")]
    Exists(String),
    #[error("path '{0}' already exists and is no file")]
    NoFile(String),
    #[error("illegal file path: {path:?} leads through a link or a file in the target")]
    Through { path: String },
    #[error("the layer has more than {0} entries")]
    Entries(u64),
    #[error("the layer becomes larger than {0} bytes")]
    Bytes(u64),
    #[error("the names of the layer's directories take more than {NAMES} bytes")]
    Names,
    #[error(transparent)]
    Archive(#[from] read::Error),
    #[error("cannot read the layer")]
    Read(#[source] io::Error),
    #[error("cannot write {path}")]
    Write { path: String, source: io::Error },
}

/// Unpacks one layer. Where it fails, the target is as before.
pub fn layer(
    from: impl Read,
    expected: &Expected,
    target: &Target,
    existing: Existing,
    limits: Limits,
) -> Result<(), Error> {
    // Whoever sends more than was announced is not listened to for ever.
    let mut stored = Hashed::new(from.take(expected.size.saturating_add(1)));
    let mut work = Work {
        target,
        existing,
        limits,
        staged: Staged::new(target).map_err(cannot_write("."))?,
        directories: BTreeMap::new(),
        piece: vec![0; PIECE],
    };
    let diff_id = {
        let plain = decompress(&mut stored, expected.compression).map_err(Error::Read)?;
        let mut plain = Hashed::new(plain.take(limits.bytes.saturating_add(1)));
        // Of what is not compressed the bytes are the same, and are hashed already.
        if expected.compression == Compression::None {
            plain.hash = None;
        }
        let extracted = work.extract(&mut plain, expected).and_then(|()| drain(&mut plain));
        // It is cut there, which looks like a fault of the archive.
        if plain.count > limits.bytes {
            return Err(Error::Bytes(limits.bytes));
        }
        extracted?;
        plain.hash.map(Digest::finish)
    };
    drain(&mut stored)?;
    verify(expected, stored, diff_id)?;
    work.publish()
}

/// Writes a file that is in no layer. One that is there and says the same is as good.
pub fn file(name: &str, bytes: &[u8], target: &Target, existing: Existing) -> Result<(), Error> {
    let failed = |source| Error::Write { path: name.to_owned(), source };
    match (target.look(name)?, existing) {
        (None, _) | (Some(Type::File), Existing::Replace) => {}
        (Some(Type::File), Existing::Keep) => return Ok(()),
        (Some(Type::File), Existing::Refuse) => {
            return match target.has(name, bytes)? {
                true => Ok(()),
                false => Err(Error::Exists(name.to_owned())),
            };
        }
        (Some(Type::Directory), _) => return Err(Error::NoFile(name.to_owned())),
    }
    let folder = target.stage().map_err(failed)?;
    let place = folder.path().join("0");
    fs::write(&place, bytes).map_err(failed)?;
    target.move_in(&place, name, existing)
}

fn cannot_write(path: &str) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Write { path, source }
}

fn drain(from: &mut impl Read) -> Result<(), Error> {
    io::copy(from, &mut io::sink()).map(drop).map_err(Error::Read)
}

fn verify(
    expected: &Expected,
    stored: Hashed<impl Read>,
    diff_id: Option<Digest>,
) -> Result<(), Error> {
    let digest = expected.digest.clone();
    if stored.count != expected.size {
        return Err(Error::Size { digest, size: expected.size, is: stored.count });
    }
    let is = Digest::finish(stored.hash.unwrap_or_default());
    if is != digest {
        return Err(Error::Digest { digest, is });
    }
    let diff_id = diff_id.unwrap_or(is);
    match &expected.diff_id {
        Some(wanted) if *wanted != diff_id => Err(Error::DiffId { digest, is: diff_id }),
        _ => Ok(()),
    }
}

fn decompress<'a>(
    from: &'a mut (impl Read + 'a),
    compression: Compression,
) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match compression {
        Compression::None => Box::new(from),
        Compression::Gzip | Compression::GzipFastest => {
            Box::new(flate2::read::MultiGzDecoder::new(from))
        }
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(from)?;
            decoder.window_log_max(WINDOW)?;
            Box::new(decoder)
        }
    })
}

struct Work<'a> {
    target: &'a Target,
    existing: Existing,
    limits: Limits,
    staged: Staged,
    directories: BTreeMap<String, u32>,
    piece: Vec<u8>,
}

impl Work<'_> {
    fn extract(&mut self, from: &mut impl Read, expected: &Expected) -> Result<(), Error> {
        if expected.format == Format::Raw {
            return self.file(&expected.path, expected.mode, |piece| {
                from.read(piece).map_err(Error::Read)
            });
        }
        let mut archive = Archive::new(from);
        let (mut count, mut names, mut announced) = (0, 0, 0_u64);
        while let Some(entry) = archive.next_entry()? {
            count += 1;
            if count > self.limits.entries {
                return Err(Error::Entries(self.limits.entries));
            }
            // What will be too much is not begun with.
            announced = announced.saturating_add(entry.size);
            if announced > self.limits.bytes {
                return Err(Error::Bytes(self.limits.bytes));
            }
            let name = match expected.under.as_str() {
                "" => entry.name,
                under => format!("{under}/{}", entry.name),
            };
            match entry.type_ {
                Type::Directory => {
                    names += name.len();
                    if names > NAMES {
                        return Err(Error::Names);
                    }
                    self.directories.insert(name, entry.mode);
                }
                Type::File => {
                    self.file(&name, entry.mode, |piece| Ok(archive.read_content(piece)?))?;
                }
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        name: &str,
        mode: u32,
        mut read: impl FnMut(&mut [u8]) -> Result<usize, Error>,
    ) -> Result<(), Error> {
        if !self.is_wanted(name)? {
            return Ok(());
        }
        let mut file = self.staged.create(name, mode).map_err(cannot_write(name))?;
        loop {
            match read(&mut self.piece)? {
                0 => return Ok(()),
                count => file.write_all(&self.piece[..count]).map_err(cannot_write(name))?,
            }
        }
    }

    /// Told before anything is written.
    fn is_wanted(&self, name: &str) -> Result<bool, Error> {
        match (self.target.look(name)?, self.existing) {
            (None, _) | (Some(Type::File), Existing::Replace) => Ok(true),
            (Some(_), Existing::Keep) => Ok(false),
            (Some(Type::File), Existing::Refuse) => Err(Error::Exists(name.to_owned())),
            (Some(Type::Directory), _) => Err(Error::NoFile(name.to_owned())),
        }
    }

    fn publish(mut self) -> Result<(), Error> {
        let mut made = Vec::new();
        for (name, mode) in &self.directories {
            if self.target.make_directory(name, mode | 0o700)? {
                made.push((name, *mode));
            }
        }
        let (target, existing) = (self.target, self.existing);
        self.staged.each(|name, place| target.move_in(&place, name, existing))?;
        // What cannot be written to is closed when everything is in it. What was there is not ours.
        for (name, mode) in made.into_iter().filter(|(_, mode)| mode & 0o700 != 0o700) {
            self.target.close_later(name, mode);
        }
        Ok(())
    }
}

/// Counts what is read through it, and hashes it if that is wanted.
struct Hashed<R> {
    from: R,
    hash: Option<Sha256>,
    count: u64,
}

impl<R> Hashed<R> {
    fn new(from: R) -> Self {
        Self { from, hash: Some(Sha256::new()), count: 0 }
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        if let Some(hash) = &mut self.hash {
            hash.update(&buffer[..count]);
        }
        self.count += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
