//! Public keys, as cosign writes them.

use std::{fs, path::Path};

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};

use super::Error;

/// What stands before the point of each key on this curve (RFC 5480).
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Uncompressed: a byte that says so, and two coordinates.
const POINT: usize = 65;

#[derive(Clone, Debug)]
pub struct Key(Vec<u8>);

impl Key {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path)
            .map_err(|source| Error::File { path: path.to_owned(), source })?;
        Self::parse(&text).ok_or_else(|| Error::Key(path.to_owned()))
    }

    pub(super) fn parse(pem: &str) -> Option<Self> {
        let (_, rest) = pem.split_once("-----BEGIN PUBLIC KEY-----")?;
        let (text, _) = rest.split_once("-----END PUBLIC KEY-----")?;
        let text: String = text.split_whitespace().collect();
        let bytes = BASE64_STANDARD.decode(text).ok()?;
        let point = bytes.strip_prefix(&P256).filter(|point| point.len() == POINT)?;
        Some(Self(point.to_owned()))
    }

    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.0);
        key.verify(message, signature).is_ok()
    }

    #[cfg(test)]
    pub(super) fn pem(point: &[u8]) -> String {
        let bytes = [&P256[..], point].concat();
        let text = BASE64_STANDARD.encode(bytes);
        format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
    }
}
