//! The name of content: a hash of its bytes.

use std::{fmt, io, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// `sha256:` and 64 digits, so it is a safe name for a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest(String);

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no digest: it must be sha256: and 64 digits from 0 to f")]
pub struct Invalid(String);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    /// Of all that can be read, and how much that was.
    pub fn of_all(mut reader: impl io::Read) -> io::Result<(Self, u64)> {
        let mut hash = HashWriter::default();
        let size = io::copy(&mut reader, &mut hash)?;
        Ok((Self::finish(hash.0), size))
    }

    pub fn finish(hash: Sha256) -> Self {
        let digits = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Self(format!("sha256:{digits}"))
    }

    /// The digits alone.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix("sha256:").unwrap_or(&self.0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let digits = text.strip_prefix("sha256:").filter(|digits| {
            digits.len() == 64 && digits.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
        });
        match digits {
            Some(_) => Ok(Self(text.to_owned())),
            None => Err(Invalid(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Digest {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Everything written to it is hashed.
#[derive(Default)]
pub(crate) struct HashWriter(pub(crate) Sha256);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_a_name_of_a_file_is_a_digest() {
        let known = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").as_str(), known);
        assert_eq!(known.parse::<Digest>().unwrap(), Digest::of(b""));
        for bad in
            ["", "sha256:", "sha512:00", "sha256:../../etc", &known.to_uppercase(), &known[..70]]
        {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
