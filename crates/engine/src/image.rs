//! Image references, taken apart into pieces that can stand in names.

#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::names::dns_part;

const DEFAULT_REGISTRY: &str = "docker.io";
const DEFAULT_TAG: &str = "latest";
const DIGEST_DIGITS: usize = 6;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRef {
    /// As a DNS label.
    pub registry: String,
    /// The path as it was written, without the registry.
    pub repository: String,
    /// The last piece of the path, as a DNS label.
    pub name: String,
    /// As a DNS label; of a digest, its first digits.
    pub tag: String,
}

impl ImageRef {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let invalid = || Error::invalid_spec("InvalidImage", format!("{text:?} is no image"));
        if text.is_empty() || text.contains(char::is_whitespace) {
            return Err(invalid());
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest_digits(digest).ok_or_else(invalid)?)),
            None => (text, None),
        };
        let (registry, path) = split_registry(rest);
        let (repository, tag) = match path.split_once(':') {
            Some((_, "")) => return Err(invalid()),
            Some((repository, tag)) => (repository, tag),
            None => (path, DEFAULT_TAG),
        };
        let Some(name) = repository.split('/').next_back() else { return Err(invalid()) };
        if repository.split('/').any(str::is_empty) {
            return Err(invalid());
        }
        Ok(Self {
            registry: dns_part(registry),
            repository: repository.to_owned(),
            name: dns_part(name),
            tag: digest.unwrap_or_else(|| dns_part(tag)),
        })
    }
}

/// Only a first piece that looks like a host is one; `team/image` lives in the default registry.
fn split_registry(text: &str) -> (&str, &str) {
    match text.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (host, path),
        _ => (DEFAULT_REGISTRY, text),
    }
}

fn digest_digits(digest: &str) -> Option<String> {
    let (algorithm, hex) = digest.split_once(':')?;
    let is_hex = hex.len() >= DIGEST_DIGITS && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    (!algorithm.is_empty() && is_hex).then(|| hex[..DIGEST_DIGITS].to_lowercase())
}
