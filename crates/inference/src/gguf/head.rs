//! The head of a GGUF file: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.
//!
//! A file may claim what it likes: no room is taken for what was not seen, and nothing is larger than
//! the file.

use std::{
    collections::HashMap,
    io::{self, Read},
};

/// More than the largest vocabularies have.
const LONGEST_LIST: u64 = 1 << 22;
/// More than the largest networks have.
const MOST: u64 = 1 << 16;
const DIMENSIONS: u32 = 4;
/// Where the file does not say it.
const ALIGNMENT: u64 = 32;

#[derive(Debug, PartialEq)]
pub(super) enum Value {
    Whole(i128),
    Float(f64),
    Flag(bool),
    Text(String),
    List(Vec<Value>),
}

#[derive(Debug)]
pub(super) struct Head {
    pub(super) metadata: HashMap<String, Value>,
    pub(super) tensors: HashMap<String, Tensor>,
    /// Where the weights begin.
    pub(super) start: u64,
}

#[derive(Debug)]
pub(super) struct Tensor {
    /// Rows first, which the file has last.
    pub(super) shape: Vec<usize>,
    /// As the file counts them.
    pub(super) kind: u32,
    pub(super) offset: u64,
}

impl Head {
    /// `length` is that of the whole file.
    pub(super) fn read(reader: impl Read, length: u64) -> io::Result<Self> {
        let mut reader = Reader { inner: reader, at: 0, length };
        if &reader.bytes()? != b"GGUF" {
            return Err(odd("it does not begin as such files do"));
        }
        if !matches!(reader.u32()?, 2 | 3) {
            return Err(odd("its version is neither 2 nor 3"));
        }
        let (tensors, values) = (reader.count(MOST)?, reader.count(MOST)?);
        let mut metadata = HashMap::new();
        for _ in 0..values {
            let key = reader.text()?;
            let kind = reader.u32()?;
            metadata.insert(key, reader.value(kind)?);
        }
        let alignment = match metadata.get("general.alignment") {
            None => ALIGNMENT,
            Some(Value::Whole(given)) => u64::try_from(*given)
                .ok()
                .filter(|given| given.is_power_of_two())
                .ok_or_else(|| odd("its alignment is no power of two"))?,
            Some(_) => return Err(odd("its alignment is no number")),
        };
        let mut infos = HashMap::new();
        for _ in 0..tensors {
            infos.insert(reader.text()?, reader.tensor()?);
        }
        let start = reader.at.checked_next_multiple_of(alignment);
        let start = start.ok_or_else(|| odd("its alignment is too large"))?;
        Ok(Self { metadata, tensors: infos, start })
    }
}

struct Reader<R> {
    inner: R,
    at: u64,
    length: u64,
}

impl<R: Read> Reader<R> {
    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> io::Result<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn count(&mut self, most: u64) -> io::Result<u64> {
        let count = self.u64()?;
        if count > most { Err(odd("a list in it is too long")) } else { Ok(count) }
    }

    fn text(&mut self) -> io::Result<String> {
        let length = self.u64()?;
        if length > self.length.saturating_sub(self.at) {
            return Err(odd("a text in it is longer than the file"));
        }
        let mut bytes = Vec::new();
        self.inner.by_ref().take(length).read_to_end(&mut bytes)?;
        self.at += bytes.len() as u64;
        if bytes.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Some vocabularies have tokens that are no UTF-8.
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn value(&mut self, kind: u32) -> io::Result<Value> {
        const LIST: u32 = 9;
        if kind != LIST {
            return self.single(kind);
        }
        let kind = self.u32()?;
        let count = self.count(LONGEST_LIST)?;
        // Lists of lists are single values that there are not.
        (0..count).map(|_| self.single(kind)).collect::<io::Result<_>>().map(Value::List)
    }

    fn single(&mut self, kind: u32) -> io::Result<Value> {
        Ok(match kind {
            0 => Value::Whole(u8::from_le_bytes(self.bytes()?).into()),
            1 => Value::Whole(i8::from_le_bytes(self.bytes()?).into()),
            2 => Value::Whole(u16::from_le_bytes(self.bytes()?).into()),
            3 => Value::Whole(i16::from_le_bytes(self.bytes()?).into()),
            4 => Value::Whole(self.u32()?.into()),
            5 => Value::Whole(i32::from_le_bytes(self.bytes()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.bytes()?).into()),
            7 => Value::Flag(self.bytes::<1>()? != [0]),
            8 => Value::Text(self.text()?),
            10 => Value::Whole(self.u64()?.into()),
            11 => Value::Whole(i64::from_le_bytes(self.bytes()?).into()),
            12 => Value::Float(f64::from_le_bytes(self.bytes()?)),
            _ => return Err(odd("a value in it is of an unknown kind")),
        })
    }

    fn tensor(&mut self) -> io::Result<Tensor> {
        let dimensions = self.u32()?;
        if dimensions > DIMENSIONS {
            return Err(odd("a tensor in it has too many dimensions"));
        }
        let size = |reader: &mut Self| {
            usize::try_from(reader.u64()?).map_err(|_| odd("a tensor in it is too large"))
        };
        let mut shape = (0..dimensions).map(|_| size(self)).collect::<io::Result<Vec<_>>>()?;
        shape.reverse();
        Ok(Tensor { shape, kind: self.u32()?, offset: self.u64()? })
    }
}

pub(super) fn odd(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
