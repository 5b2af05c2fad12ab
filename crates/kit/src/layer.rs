//! Layers: which files each has, how large it is, and its bytes one after another.

use std::{
    fs,
    io::{self, Read, Seek, SeekFrom},
    sync::Arc,
};

use crate::{
    context::{Context, File},
    kitfile::{self, Entry},
    tar::{self, Header, Type},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    #[default]
    Tar,
    /// The bytes of a single file as they are.
    Raw,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    pub entry: Entry,
    pub format: Format,
    pub files: Arc<[File]>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path} of the Kitfile is not there, or is ignored")]
    Missing { path: kitfile::Path },
    #[error("{path} of the Kitfile is a symbolic link or no file, and is not packed")]
    Link { path: kitfile::Path },
    #[error("there is nothing to pack in {path} but symbolic links, such as {link}")]
    OnlyLinks { path: kitfile::Path, link: String },
}

/// The layers of all entries. A file is in the layer of the entry that names it most closely.
pub fn split(context: &Context, entries: &[Entry], format: Format) -> Result<Vec<Layer>, Error> {
    entries.iter().map(|entry| layer(context, entries, entry, format)).collect()
}

fn layer(
    context: &Context,
    entries: &[Entry],
    entry: &Entry,
    wanted: Format,
) -> Result<Layer, Error> {
    let path = &entry.path;
    let nested = |other: &&Entry| other.path != *path && path.contains(other.path.as_str());
    let nested: Vec<&Entry> = entries.iter().filter(nested).collect();
    let is_own =
        |name: &str| path.contains(name) && !nested.iter().any(|other| other.path.contains(name));
    let is_in = |file: &&File| match file.type_ {
        Type::Directory => is_own(&file.name) || path.is_below(&file.name),
        Type::File => is_own(&file.name),
    };
    let files: Arc<[File]> = context.files.iter().filter(is_in).cloned().collect();
    let is_there = path.is_whole() || files.iter().any(|file| path.contains(&file.name));
    let link = context.skipped.iter().find(|name| is_own(name));
    if !is_there {
        return Err(match link {
            Some(_) => Error::Link { path: path.clone() },
            None => Error::Missing { path: path.clone() },
        });
    }
    let has_files = files.iter().any(|file| file.type_ == Type::File);
    if let Some(link) = link.filter(|_| !has_files) {
        return Err(Error::OnlyLinks { path: path.clone(), link: link.clone() });
    }
    let is_single =
        files.iter().any(|file| *file.name == *path.as_str() && file.type_ == Type::File);
    let format = if is_single { wanted } else { Format::Tar };
    Ok(Layer { entry: entry.clone(), format, files })
}

impl Layer {
    /// Known before anything is read.
    pub fn size(&self) -> u64 {
        match self.format {
            Format::Raw => self.content().map(|file| file.size).sum(),
            Format::Tar => {
                let sizes = self.files.iter().map(|file| {
                    let header = header(file).blocks().len() as u64;
                    header + file.size + tar::padding(file.size) as u64
                });
                sizes.sum::<u64>() + tar::END.len() as u64
            }
        }
    }

    /// The file of a raw layer; all files of another.
    pub fn content(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.type_ == Type::File)
    }

    pub fn read(&self) -> Reader {
        self.read_from(0)
    }

    /// What stands before this byte is not even opened.
    pub fn read_from(&self, from: u64) -> Reader {
        Reader {
            format: self.format,
            files: self.files.clone(),
            next: 0,
            is_ending: false,
            part: Part::None,
            skip: from,
        }
    }
}

fn header(file: &File) -> Header<'_> {
    Header { name: &file.name, type_: file.type_, mode: file.mode, size: file.size }
}

/// The bytes of a layer. A file that has another size than before is an error.
pub struct Reader {
    format: Format,
    files: Arc<[File]>,
    next: usize,
    is_ending: bool,
    part: Part,
    /// What is still to be passed over.
    skip: u64,
}

enum Part {
    None,
    Bytes { bytes: Vec<u8>, at: usize, then: Option<usize> },
    File { open: fs::File, number: usize, left: u64 },
}

impl Reader {
    /// What follows the part that has ended.
    fn advance(&mut self, ended: Part) -> io::Result<bool> {
        self.part = match ended {
            Part::Bytes { then: Some(number), .. } => self.content(number)?,
            Part::File { mut open, number, .. } => {
                if open.read(&mut [0])? != 0 {
                    return Err(self.changed(number));
                }
                self.padding(number)
            }
            Part::Bytes { then: None, .. } | Part::None => match self.files.get(self.next) {
                Some(file) => {
                    let bytes = match self.format {
                        Format::Tar => header(file).blocks(),
                        Format::Raw => Vec::new(),
                    };
                    let then = (file.type_ == Type::File).then_some(self.next);
                    self.next += 1;
                    Part::Bytes { bytes, at: 0, then }
                }
                None if self.is_ending => return Ok(false),
                None => {
                    self.is_ending = true;
                    let bytes = match self.format {
                        Format::Tar => tar::END.to_vec(),
                        Format::Raw => Vec::new(),
                    };
                    Part::Bytes { bytes, at: 0, then: None }
                }
            },
        };
        if let Part::Bytes { bytes, at, .. } = &mut self.part {
            *at = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
            self.skip -= *at as u64;
        }
        Ok(true)
    }

    fn content(&mut self, number: usize) -> io::Result<Part> {
        let Some(file) = self.files.get(number) else { return Ok(Part::None) };
        let skipped = self.skip.min(file.size);
        self.skip -= skipped;
        if skipped > 0 && skipped == file.size {
            return Ok(self.padding(number));
        }
        let mut open = open(file)?;
        open.seek(SeekFrom::Start(skipped))?;
        Ok(Part::File { open, number, left: file.size - skipped })
    }

    fn padding(&self, number: usize) -> Part {
        let size = self.files.get(number).map_or(0, |file| file.size);
        let padding = match self.format {
            Format::Tar => tar::padding(size),
            Format::Raw => 0,
        };
        Part::Bytes { bytes: vec![0; padding], at: 0, then: None }
    }

    fn changed(&self, number: usize) -> io::Error {
        let place = self.files.get(number).map(|file| file.place().display().to_string());
        let place = place.unwrap_or_default();
        io::Error::other(format!("{place} has changed while it was packed"))
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match &mut self.part {
                Part::Bytes { bytes, at, .. } if *at < bytes.len() => {
                    let count = (&bytes[*at..]).read(buffer)?;
                    *at += count;
                    return Ok(count);
                }
                Part::File { open, number, left } if *left > 0 => {
                    let room = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
                    let count = open.read(&mut buffer[..room])?;
                    if count == 0 {
                        let number = *number;
                        return Err(self.changed(number));
                    }
                    *left -= count as u64;
                    return Ok(count);
                }
                _ => {
                    let ended = std::mem::replace(&mut self.part, Part::None);
                    if !self.advance(ended)? {
                        return Ok(0);
                    }
                }
            }
        }
    }
}

fn open(file: &File) -> io::Result<fs::File> {
    let place = file.place();
    fs::File::open(&place).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot open {}: {error}", place.display()))
    })
}

#[cfg(test)]
mod tests;
