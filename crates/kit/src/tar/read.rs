//! Archives of anybody: read one entry after another, in constant memory, and trusted in nothing.

use std::io::{self, Read};

use super::BLOCK;

/// Of names and other things that stand in extra headers.
const EXTRA: u64 = 1 << 20;
const NAME: usize = 4096;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the archive")]
    Read(#[source] io::Error),
    #[error("the archive ends in the middle of {0:?}")]
    Cut(String),
    #[error("the archive is damaged: {0}")]
    Damaged(&'static str),
    #[error("unrecognized type in archive: {type_:?} of {name:?}")]
    Type { name: String, type_: char },
    #[error("illegal file path: {0:?}")]
    Name(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Relative, without `..`, as [`crate::kitfile::Path`] has it.
    pub name: String,
    pub type_: super::Type,
    /// Permissions only.
    pub mode: u32,
    pub size: u64,
}

/// An archive that is read from its beginning to its end.
pub struct Archive<R> {
    from: R,
    /// What is left of the entry, then of its padding.
    left: u64,
    padding: usize,
    name: String,
}

/// What extra headers say of the entry that follows.
#[derive(Default)]
struct Extra {
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

impl<R: Read> Archive<R> {
    pub fn new(from: R) -> Self {
        Self { from, left: 0, padding: 0, name: String::new() }
    }

    /// What is left of the last entry is passed over.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        self.pass_over()?;
        let mut extra = Extra::default();
        loop {
            let Some(block) = self.block()? else { return Ok(None) };
            let size = number(&block[124..136]).ok_or(Error::Damaged("a size is no number"))?;
            match block[156] {
                // For all that follow; nothing that is said so is of use here.
                b'g' => {
                    self.extra(size)?;
                }
                b'x' => records(&self.extra(size)?, &mut extra)?,
                b'L' => extra.name = Some(until_nul(&self.extra(size)?).to_vec()),
                // The target of a link, which is refused anyway.
                b'K' => {
                    self.extra(size)?;
                }
                type_ => return self.entry(&block, type_, size, extra).map(Some),
            }
        }
    }

    /// Of the entry that was named last; nothing at its end.
    pub fn read_content(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if room == 0 {
            return Ok(0);
        }
        match self.from.read(&mut buffer[..room]) {
            Ok(0) => Err(Error::Cut(self.name.clone())),
            Ok(count) => {
                self.left -= count as u64;
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.read_content(buffer),
            Err(error) => Err(Error::Read(error)),
        }
    }

    /// What comes after the end, so that all bytes have been seen.
    pub fn into_rest(self) -> R {
        self.from
    }

    fn entry(
        &mut self,
        block: &[u8; BLOCK],
        type_: u8,
        size: u64,
        extra: Extra,
    ) -> Result<Entry, Error> {
        let name = extra.name.unwrap_or_else(|| plain_name(block));
        let name = String::from_utf8(name)
            .map_err(|error| Error::Name(String::from_utf8_lossy(error.as_bytes()).into_owned()))?;
        let size = extra.size.unwrap_or(size);
        let type_ = match type_ {
            // In archives older than ustar a directory has a slash at its end.
            0 | b'0' | b'7' if name.ends_with('/') => super::Type::Directory,
            0 | b'0' | b'7' => super::Type::File,
            b'5' => super::Type::Directory,
            other => return Err(Error::Type { name, type_: char::from(other) }),
        };
        let mode = number(&block[100..108]).ok_or(Error::Damaged("a mode is no number"))?;
        self.name.clone_from(&name);
        self.left = size;
        self.padding = super::padding(size);
        Ok(Entry {
            name: legal(&name)?,
            type_,
            mode: u32::try_from(mode & 0o777).unwrap_or_default(),
            size,
        })
    }

    fn pass_over(&mut self) -> Result<(), Error> {
        let rest = self.left.saturating_add(self.padding as u64);
        let passed = io::copy(&mut (&mut self.from).take(rest), &mut io::sink());
        if passed.map_err(Error::Read)? < rest {
            return Err(Error::Cut(self.name.clone()));
        }
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    /// Nothing at the end: two blocks of zeros, or one, or simply no more.
    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, Error> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.from.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(Error::Damaged("it ends in the middle of a header")),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Read(error)),
            }
        }
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let stated = number(&block[148..156]);
        let sum = |(at, byte): (usize, &u8)| match at {
            148..156 => u64::from(b' '),
            _ => u64::from(*byte),
        };
        if stated != Some(block.iter().enumerate().map(sum).sum()) {
            return Err(Error::Damaged("the sum of a header is wrong"));
        }
        Ok(Some(block))
    }

    fn extra(&mut self, size: u64) -> Result<Vec<u8>, Error> {
        if size > EXTRA {
            return Err(Error::Damaged("an extra header is too large"));
        }
        let mut bytes = Vec::new();
        let whole = size + super::padding(size) as u64;
        (&mut self.from).take(whole).read_to_end(&mut bytes).map_err(Error::Read)?;
        if (bytes.len() as u64) < whole {
            return Err(Error::Damaged("it ends in the middle of an extra header"));
        }
        bytes.truncate(usize::try_from(size).unwrap_or_default());
        Ok(bytes)
    }
}

/// Octal digits, or for large ones the bytes of the number itself.
fn number(field: &[u8]) -> Option<u64> {
    match field.split_first() {
        Some((0x80, rest)) => {
            let (large, small) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
            let small = <[u8; 8]>::try_from(small).ok()?;
            let number = u64::from_be_bytes(small);
            // What no disk has is a mistake.
            (large.iter().all(|byte| *byte == 0) && number <= i64::MAX as u64).then_some(number)
        }
        _ => {
            let text = std::str::from_utf8(until_nul(field)).ok()?.trim_matches(' ');
            if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
        }
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn plain_name(block: &[u8; BLOCK]) -> Vec<u8> {
    let name = until_nul(&block[..100]);
    // GNU's own form has other things in the room of the prefix.
    let prefix = match &block[257..265] {
        b"ustar\x0000" => until_nul(&block[345..500]),
        _ => &[],
    };
    if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
}

fn records(mut text: &[u8], extra: &mut Extra) -> Result<(), Error> {
    const WRONG: Error = Error::Damaged("an extra header makes no sense");
    while !text.is_empty() {
        let blank = text.iter().position(|byte| *byte == b' ').ok_or(WRONG)?;
        let length = std::str::from_utf8(&text[..blank]).ok().and_then(|text| text.parse().ok());
        let length: usize = length.ok_or(WRONG)?;
        let record = text.get(blank + 1..length).ok_or(WRONG)?;
        let record = record.strip_suffix(b"\n").ok_or(WRONG)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or(WRONG)?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        match key {
            b"path" => extra.name = Some(value.to_vec()),
            b"size" => {
                let size = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                let size: u64 = size.filter(|size| *size <= i64::MAX as u64).ok_or(WRONG)?;
                extra.size = Some(size);
            }
            _ => {}
        }
        text = text.get(length..).ok_or(WRONG)?;
    }
    Ok(())
}

/// A name that stays where it is unpacked.
fn legal(name: &str) -> Result<String, Error> {
    let illegal = || Error::Name(name.to_owned());
    if name.len() > NAME || name.split('/').any(|element| element == "..") {
        return Err(illegal());
    }
    let path = crate::kitfile::Path::parse(name).map_err(|_| illegal())?;
    Ok(path.as_str().to_owned())
}

#[cfg(test)]
mod tests;
