//! Secrets of a control plane: random tokens and a signing key, with no crypto library at hand.

use std::{fs::File, io::Read};

use anyhow::{Context, Result};

/// A random token, unguessable for other users of the machine.
pub(super) fn token() -> Result<String> {
    Ok(random::<24>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut source = File::open("/dev/urandom").context("cannot open /dev/urandom")?;
    source.read_exact(&mut bytes).context("cannot read /dev/urandom")?;
    Ok(bytes)
}

/// A private key on the curve P-256 as PEM, for service-account tokens.
///
/// Such a key is nothing but a random number in a fixed frame (RFC 5915): the public half may be
/// left out, and the readers, all of them written in Go, compute it.
pub(super) fn signing_key() -> Result<String> {
    // SEQUENCE { INTEGER 1, OCTET STRING of 32 bytes, [0] { OID prime256v1 } }
    const BEFORE: [u8; 7] = [0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20];
    const AFTER: [u8; 12] =
        [0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    let mut number = random::<32>()?;
    // Below the order of the curve, which starts with four bytes of 0xff, and never zero.
    number[0] = number[0] & 0x7f | 0x40;
    let body = base64(&[&BEFORE[..], &number, &AFTER].concat());
    Ok(format!("-----BEGIN EC PRIVATE KEY-----\n{body}\n-----END EC PRIVATE KEY-----\n"))
}

/// Standard base64, with padding and without line breaks.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = at(0) << 16 | at(1) << 8 | at(2);
        for position in 0..4 {
            let symbol = ALPHABET[(group >> (18 - 6 * position) & 0x3f) as usize];
            text.push(if position <= chunk.len() { char::from(symbol) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_vectors_of_rfc_4648() {
        for (plain, want) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), want, "{plain}");
        }
    }

    #[test]
    fn two_tokens_differ() {
        assert_ne!(token().unwrap(), token().unwrap());
    }
}
