//! How artifacts are called: `[host[:port]/]repository[:tag|@digest]`.

use std::fmt;

use crate::Digest;

/// Artifacts that are in the local store only.
pub const LOCAL: &str = "localhost";
/// Of artifacts that have no name.
pub const UNNAMED: &str = "_";
const LATEST: &str = "latest";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    registry: String,
    repository: String,
    version: Version,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    Tag(Tag),
    Digest(Digest),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag(String);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("invalid reference {0:?}: it names no repository")]
    Empty(String),
    #[error("repository ({0}) name must be lowercase")]
    UpperCase(String),
    #[error("invalid repository name {0:?}")]
    Repository(String),
    #[error("invalid registry {0:?}")]
    Registry(String),
    #[error("invalid tag {0:?}: up to 128 letters, digits, dots, dashes and underscores")]
    Tag(String),
    #[error(transparent)]
    Digest(#[from] crate::digest::Invalid),
}

impl Reference {
    /// One artifact. Without tag and digest the tag is `latest`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (first, _) = Self::parse_with_tags(text)?;
        Ok(first)
    }

    /// As `repository:tag1,tag2`: the artifact under the first tag, and the others.
    pub fn parse_with_tags(text: &str) -> Result<(Self, Vec<Tag>), Error> {
        if let Ok(digest) = text.parse::<Digest>() {
            return Ok((Self::unnamed(digest), Vec::new()));
        }
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.parse::<Digest>()?)),
            None => (text, None),
        };
        let (name, tags) = match name.rsplit_once(':') {
            // A colon before a slash belongs to the port.
            Some((name, tags)) if !tags.contains('/') => (name, tags),
            _ => (name, LATEST),
        };
        let mut tags = tags.split(',').map(Tag::parse).collect::<Result<Vec<_>, _>>()?.into_iter();
        let first = tags.next().unwrap_or_else(Tag::latest);
        let (registry, repository) = split(name);
        if repository.is_empty() {
            return Err(Error::Empty(text.to_owned()));
        }
        // A digest says more than a tag.
        let version = digest.map_or(Version::Tag(first), Version::Digest);
        let reference = Self {
            registry: check_registry(registry)?.to_owned(),
            repository: check_repository(repository)?.to_owned(),
            version,
        };
        Ok((reference, tags.collect()))
    }

    pub fn unnamed(digest: Digest) -> Self {
        let (registry, repository) = (LOCAL.to_owned(), UNNAMED.to_owned());
        Self { registry, repository, version: Version::Digest(digest) }
    }

    pub fn registry(&self) -> &str {
        &self.registry
    }

    pub fn repository(&self) -> &str {
        &self.repository
    }

    pub fn version(&self) -> &Version {
        &self.version
    }

    pub fn is_local(&self) -> bool {
        self.registry == LOCAL
    }

    pub fn with(&self, version: Version) -> Self {
        Self { version, ..self.clone() }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_local() {
            write!(f, "{}/", self.registry)?;
        }
        f.write_str(&self.repository)?;
        match &self.version {
            Version::Tag(tag) => write!(f, ":{tag}"),
            Version::Digest(digest) => write!(f, "@{digest}"),
        }
    }
}

impl Tag {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let fits = |byte: u8| is_word(byte) || matches!(byte, b'.' | b'-');
        let is_tag =
            text.len() <= 128 && text.bytes().next().is_some_and(is_word) && text.bytes().all(fits);
        match is_tag {
            true => Ok(Self(text.to_owned())),
            false => Err(Error::Tag(text.to_owned())),
        }
    }

    pub fn latest() -> Self {
        Self(LATEST.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Only what looks like a host is one.
fn split(name: &str) -> (&str, &str) {
    match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == LOCAL => (first, rest),
        _ => (LOCAL, name),
    }
}

fn check_registry(registry: &str) -> Result<&str, Error> {
    let (host, port) = match registry.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (registry, None),
    };
    let host_fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let named = !host.is_empty() && host.bytes().all(host_fits);
    let ported = port.is_none_or(|port| port.parse::<u16>().is_ok());
    match named && ported {
        true => Ok(registry),
        false => Err(Error::Registry(registry.to_owned())),
    }
}

fn check_repository(name: &str) -> Result<&str, Error> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(Error::UpperCase(name.to_owned()));
    }
    match name == UNNAMED || is_repository(name) {
        true => Ok(name),
        false => Err(Error::Repository(name.to_owned())),
    }
}

/// Components of lower-case words, joined by a dot, one or two underscores, or any number of dashes.
pub(crate) fn is_repository(name: &str) -> bool {
    let is_component = |component: &str| {
        let is_word = |c: char| matches!(c, 'a'..='z' | '0'..='9');
        let mut joints = component.split(is_word).filter(|joint| !joint.is_empty());
        let joined = |joint: &str| {
            matches!(joint, "." | "_" | "__") || joint.bytes().all(|byte| byte == b'-')
        };
        component.starts_with(is_word) && component.ends_with(is_word) && joints.all(joined)
    };
    name.len() <= 255 && name.split('/').all(is_component)
}

#[cfg(test)]
mod tests;
