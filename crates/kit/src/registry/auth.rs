//! Who may ask.

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use super::error::Refused;

/// A user and a password, kept as a hash.
#[derive(Clone)]
pub struct Account {
    hash: [u8; 32],
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Account")
    }
}

impl Account {
    pub fn new(user: &str, password: &str) -> Self {
        Self { hash: hash(format!("{user}:{password}").as_bytes()) }
    }
}

fn hash(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// Hashes are compared, so that the time it takes tells nothing of the password.
pub(super) fn check(account: Option<&Account>, headers: &HeaderMap) -> Result<(), Refused> {
    let Some(account) = account else { return Ok(()) };
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.split_once(' '));
    let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
    let given = given.and_then(|(_, text)| BASE64_STANDARD.decode(text.trim()).ok());
    match given {
        Some(given) if hash(&given) == account.hash => Ok(()),
        _ => Err(Refused::unauthorized()),
    }
}
