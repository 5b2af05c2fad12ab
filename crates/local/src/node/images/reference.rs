//! Names of images in their normal form.

use std::{fmt, sync::LazyLock};

use regex::Regex;

const LONGEST_NAME: usize = 255;
const DOMAIN: &str = "docker.io";

/// A name with registry and tag: `nginx` is `docker.io/library/nginx:latest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    domain: String,
    path: String,
    /// With its colon or at sign; both if both were given.
    version: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("invalid reference format")]
    Format,
    #[error("invalid reference format: repository name ({0}) must be lowercase")]
    Case(String),
    #[error("invalid repository name ({0}), cannot specify 64-byte hexadecimal strings")]
    Digest(String),
    #[error("repository name must not be more than {LONGEST_NAME} characters")]
    Long,
}

static WHOLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let label = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    let host = format!(r"(?:{label}(?:\.{label})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?");
    let element = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
    let tag = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}";
    let digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
    Regex::new(&format!("^({host})/({element}(?:/{element})*)(:{tag})?(@{digest})?$")).ok()
});

impl Reference {
    pub fn parse(image: &str) -> Result<Self, Invalid> {
        if image.len() == 64 && image.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        {
            return Err(Invalid::Digest(image.to_owned()));
        }
        let (domain, rest) = split_domain(image);
        let end = rest.find([':', '@']).unwrap_or(rest.len());
        let name = &rest[..end];
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(Invalid::Case(name.to_owned()));
        }
        let whole = format!("{domain}/{rest}");
        let found = WHOLE.as_ref().and_then(|known| known.captures(&whole));
        let found = found.ok_or(Invalid::Format)?;
        let part = |at| found.get(at).map_or("", |part| part.as_str());
        if domain.len() + 1 + part(2).len() > LONGEST_NAME {
            return Err(Invalid::Long);
        }
        let version = match (part(3), part(4)) {
            ("", "") => ":latest".to_owned(),
            (tag, digest) => format!("{tag}{digest}"),
        };
        Ok(Self { domain, path: part(2).to_owned(), version })
    }

    /// The last element of its path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// As people write it, without tag and digest.
    pub fn repository(&self) -> String {
        match (&*self.domain, self.path.strip_prefix("library/")) {
            (DOMAIN, Some(path)) => path.to_owned(),
            (DOMAIN, None) => self.path.clone(),
            (domain, _) => format!("{domain}/{}", self.path),
        }
    }

    /// A pattern for all versions of it.
    pub(super) fn pattern(&self) -> String {
        let any = if self.version.starts_with('@') { "@*" } else { ":*" };
        format!("{}{any}", self.repository())
    }

    /// What a pattern may describe: the whole, and the short form of names at the usual registry.
    pub(super) fn forms(&self) -> Vec<String> {
        let mut forms = vec![self.to_string()];
        if self.domain == DOMAIN {
            forms.push(format!("{}{}", self.path, self.version));
            forms.push(format!("{}{}", self.repository(), self.version));
        }
        forms
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}{}", self.domain, self.path, self.version)
    }
}

/// A first element without dot, port or capital letter is no registry but part of the path.
fn split_domain(image: &str) -> (String, String) {
    let (domain, rest) = match image.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':'])
                || first == "localhost"
                || first.bytes().any(|byte| byte.is_ascii_uppercase()) =>
        {
            (if first == "index.docker.io" { DOMAIN } else { first }, rest)
        }
        _ => (DOMAIN, image),
    };
    let rest = match (domain, rest.contains('/')) {
        (DOMAIN, false) => format!("library/{rest}"),
        _ => rest.to_owned(),
    };
    (domain.to_owned(), rest)
}
