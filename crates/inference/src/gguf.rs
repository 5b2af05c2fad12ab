//! What a GGUF file says, with the names of what is missing or odd.

mod head;
mod kind;

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use crate::Error;
use head::{Head, Value, odd};
pub(crate) use kind::{Kind, half};

/// How many bytes of weights are read at once, unless a row has more.
const PIECE: usize = 1 << 18;

/// The head of a file: everything but the weights.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    length: u64,
    head: Head,
}

/// Where weights are in the file, which is that long.
#[derive(Debug)]
pub(crate) struct Tensor {
    name: String,
    kind: Kind,
    row: usize,
    from: u64,
    length: usize,
}

impl Tensor {
    /// Whole rows after each other, as the bytes of some blocks.
    pub(crate) fn pieces(
        &self,
        reader: &mut File,
        mut take: impl FnMut(Kind, &[u8]),
    ) -> Result<(), Error> {
        let failed = |source| Error::Tensor { name: self.name.clone(), source };
        reader.seek(SeekFrom::Start(self.from)).map_err(failed)?;
        let mut piece = vec![0; ((PIECE / self.row).max(1) * self.row).min(self.length)];
        let mut left = self.length;
        while left > 0 {
            let length = piece.len().min(left);
            reader.read_exact(&mut piece[..length]).map_err(failed)?;
            take(self.kind, &piece[..length]);
            left -= length;
        }
        Ok(())
    }
}

impl Gguf {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = open(path)?;
        let read = |source| Error::Read { path: path.to_owned(), source };
        let length = file.metadata().map_err(read)?.len();
        let head = Head::read(BufReader::new(file), length)
            .map_err(|source| Error::Gguf { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), length, head })
    }

    /// Another handle for the weights, so that several threads can read them.
    pub(crate) fn reader(&self) -> Result<File, Error> {
        open(&self.path)
    }

    pub(crate) fn tensors(&self) -> impl Iterator<Item = &str> {
        self.head.tensors.keys().map(String::as_str)
    }

    pub(crate) fn has(&self, tensor: &str) -> bool {
        self.head.tensors.contains_key(tensor)
    }

    /// A tensor of this shape that is in the file as a whole.
    pub(crate) fn tensor(&self, name: &str, shape: &[usize]) -> Result<Tensor, Error> {
        let failed = |why| Error::Tensor { name: name.to_owned(), source: odd(why) };
        let tensor = self.head.tensors.get(name).ok_or_else(|| failed("it is not in the file"))?;
        if tensor.shape != shape {
            let (want, got) = (shape.to_vec(), tensor.shape.clone());
            return Err(Error::Shape { name: name.to_owned(), want, got });
        }
        let kind = Kind::of(tensor.kind).ok_or_else(|| failed("its type is not supported"))?;
        let (values, bytes) = kind.block();
        let Some((columns, rows)) = shape.split_last().filter(|(c, _)| c.is_multiple_of(values))
        else {
            return Err(failed("its rows are no whole blocks"));
        };
        let row = (columns / values).checked_mul(bytes).filter(|row| *row > 0);
        let length = row.and_then(|row| rows.iter().try_fold(row, |all, n| all.checked_mul(*n)));
        let from = self.head.start.checked_add(tensor.offset);
        let ends_within = |from: u64, length: usize| {
            from.checked_add(length as u64).is_some_and(|to| to <= self.length)
        };
        match (row, length, from) {
            (Some(row), Some(length), Some(from)) if ends_within(from, length) => {
                Ok(Tensor { name: name.to_owned(), kind, row, from, length })
            }
            _ => Err(failed("it goes beyond the end of the file")),
        }
    }

    /// How many rows a matrix has; the size of the vocabulary, where the file does not say it.
    pub(crate) fn rows(&self, tensor: &str) -> Option<usize> {
        self.head.tensors.get(tensor)?.shape.first().copied()
    }

    pub(crate) fn says(&self, key: &str) -> bool {
        self.head.metadata.contains_key(key)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.head.metadata.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        match self.head.metadata.get(key)? {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    pub(crate) fn number(&self, key: &str) -> Option<usize> {
        whole(self.head.metadata.get(key)?)
    }

    pub(crate) fn float(&self, key: &str) -> Option<f32> {
        match self.head.metadata.get(key)? {
            // No such value is large enough to lose anything that matters.
            Value::Float(number) => Some(*number as f32),
            _ => None,
        }
    }

    /// A number that must be there and not be zero.
    pub(crate) fn size(&self, key: &str) -> Result<usize, Error> {
        match self.number(key) {
            Some(size @ 1..=0x4000_0000) => Ok(size),
            _ => Err(self.odd(key, "a size")),
        }
    }

    pub(crate) fn texts(&self, key: &str) -> Result<Vec<&str>, Error> {
        let odd = || self.odd(key, "a list of texts");
        let Some(Value::List(values)) = self.head.metadata.get(key) else { return Err(odd()) };
        let texts = values.iter().map(|value| match value {
            Value::Text(text) => Ok(text.as_str()),
            _ => Err(odd()),
        });
        texts.collect()
    }

    /// Empty where there is none.
    pub(crate) fn numbers(&self, key: &str) -> Vec<usize> {
        let Some(Value::List(values)) = self.head.metadata.get(key) else { return Vec::new() };
        values.iter().map(|value| whole(value).unwrap_or_default()).collect()
    }

    /// Empty where there is none.
    pub(crate) fn floats(&self, key: &str) -> Vec<f32> {
        let Some(Value::List(values)) = self.head.metadata.get(key) else { return Vec::new() };
        let float = |value: &Value| match value {
            Value::Float(number) => *number as f32,
            _ => 0.0,
        };
        values.iter().map(float).collect()
    }

    pub(crate) fn odd(&self, key: &str, rule: &'static str) -> Error {
        let got = match self.head.metadata.get(key) {
            None => "nothing".to_owned(),
            Some(Value::List(values)) => format!("a list of {}", values.len()),
            Some(Value::Text(text)) => format!("{:?}", text.chars().take(64).collect::<String>()),
            Some(Value::Whole(number)) => number.to_string(),
            Some(Value::Float(number)) => number.to_string(),
            Some(Value::Flag(flag)) => flag.to_string(),
        };
        Error::Metadata { key: key.to_owned(), rule, got }
    }
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

fn whole(value: &Value) -> Option<usize> {
    match value {
        Value::Whole(number) => usize::try_from(*number).ok(),
        _ => None,
    }
}
