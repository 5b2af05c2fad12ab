//! What a path means.

use percent_encoding::percent_decode_str;

use super::error::Refused;
use crate::{
    Digest,
    reference::{Tag, Version},
};

/// The name of a repository, safe as a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id(String);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Base,
    Catalog,
    Blob { name: Name, digest: Digest },
    Uploads { name: Name },
    Upload { name: Name, id: Id },
    Manifest { name: Name, reference: Version },
    Tags { name: Name },
    Referrers { name: Name, digest: Digest },
}

impl Name {
    pub(super) fn parse(text: &str) -> Result<Self, Refused> {
        match crate::reference::is_repository(text) {
            true => Ok(Self(text.to_owned())),
            false => Err(Refused::name(text)),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Id {
    pub(super) fn new(random: u128) -> Self {
        Self(format!("{random:032x}"))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_id =
            text.len() == 32 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        is_id.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

pub(super) fn parse(path: &str) -> Result<Target, Refused> {
    let path = percent_decode_str(path).decode_utf8().map_err(|_| Refused::path())?;
    let rest = match path.strip_prefix("/v2") {
        Some("" | "/") => return Ok(Target::Base),
        Some(rest) => rest.strip_prefix('/').ok_or_else(Refused::path)?,
        None => return Err(Refused::path()),
    };
    if rest == "_catalog" {
        return Ok(Target::Catalog);
    }
    // The name may have any number of elements, so it is read from the end.
    let mut elements: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
    let last = elements.pop().ok_or_else(Refused::path)?;
    let what = elements.pop().ok_or_else(Refused::path)?;
    let within = |elements: &[&str]| Name::parse(&elements.join("/"));
    match (what, last) {
        ("tags", "list") => Ok(Target::Tags { name: within(&elements)? }),
        ("blobs", "uploads") => Ok(Target::Uploads { name: within(&elements)? }),
        ("uploads", id) if elements.last() == Some(&"blobs") => {
            elements.pop();
            let name = within(&elements)?;
            Ok(Target::Upload { name, id: Id::parse(id).ok_or_else(Refused::upload)? })
        }
        ("blobs", digest) => {
            Ok(Target::Blob { name: within(&elements)?, digest: self::digest(digest)? })
        }
        ("referrers", digest) => {
            Ok(Target::Referrers { name: within(&elements)?, digest: self::digest(digest)? })
        }
        ("manifests", reference) => {
            let name = within(&elements)?;
            let reference = match reference.contains(':') {
                true => Version::Digest(digest(reference)?),
                false => Version::Tag(
                    Tag::parse(reference).map_err(|error| Refused::tag(error.to_string()))?,
                ),
            };
            Ok(Target::Manifest { name, reference })
        }
        _ => Err(Refused::path()),
    }
}

pub(super) fn digest(text: &str) -> Result<Digest, Refused> {
    text.parse().map_err(|error: crate::digest::Invalid| Refused::digest(error.to_string()))
}

/// The parameters of an address.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let decoded = |text: &str| {
            percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key), decoded(value))
        };
        Self(pairs.map(pair).collect())
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn names_may_have_any_number_of_elements() {
        for name in ["m", "a/b", "a/b/c", "tags/list/x", "blobs/uploads", "a/manifests/b"] {
            let known = Name(name.to_owned());
            let target = |path: &str| parse(&format!("/v2/{name}/{path}")).unwrap();
            assert_eq!(target("tags/list"), Target::Tags { name: known.clone() }, "{name}");
            assert_eq!(target("blobs/uploads/"), Target::Uploads { name: known.clone() }, "{name}");
            let (name, digest) = (known.clone(), DIGEST.parse().unwrap());
            assert_eq!(target(&format!("blobs/{DIGEST}")), Target::Blob { name, digest });
            let reference = Version::Tag(Tag::parse("v1").unwrap());
            assert_eq!(target("manifests/v1"), Target::Manifest { name: known, reference });
        }
    }

    #[test]
    fn nothing_that_leads_elsewhere_is_a_name() {
        for path in [
            "/",
            "/v1/",
            "/v2x",
            "/v2/m",
            "/v2/../etc/tags/list",
            "/v2/%2e%2e/tags/list",
            "/v2/A/tags/list",
            "/v2/a%2F..%2Fb/tags/list",
            "/v2//tags/list",
            "/v2/m/blobs/sha256:00",
            "/v2/m/manifests/..",
            "/v2/m/manifests/%2e%2e%2fx",
            "/v2/m/blobs/uploads/../x",
            "/v2/m/manifests/sha512:00",
            "/v2/tags/list",
            "/v2/%ff/tags/list",
        ] {
            assert!(parse(path).is_err(), "{path}");
        }
    }
}
