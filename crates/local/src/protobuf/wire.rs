//! The encoding beneath the messages: numbered fields of four shapes.

use super::Error;

pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// The next field and its number, if there is one.
    pub(super) fn field(&mut self) -> Result<Option<(u32, Wire<'a>)>, Error> {
        let Some(tag) = self.varint_or_end()? else { return Ok(None) };
        let number = u32::try_from(tag >> 3).map_err(|_| Error::Malformed)?;
        let value = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Error::Truncated)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Error::Malformed),
        };
        if number == 0 { Err(Error::Malformed) } else { Ok(Some((number, value))) }
    }

    pub(super) fn varint_or_end(&mut self) -> Result<Option<u64>, Error> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Error::Malformed)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.take(N)?.try_into().map_err(|_| Error::Truncated)
    }
}
