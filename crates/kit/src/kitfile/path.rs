//! Paths inside an artifact.

use std::fmt;

/// Relative, with forward slashes, without empty elements, `.` and `..`. The whole context is `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(String);

#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("{0:?} is an absolute path; it must be relative to the directory that is packed")]
    Absolute(String),
    #[error("{0:?} leaves the directory that is packed")]
    Leaves(String),
    #[error("{0:?} has a NUL character")]
    Nul(String),
}

impl Path {
    pub fn parse(text: &str) -> Result<Self, Unusable> {
        if text.starts_with('/') {
            return Err(Unusable::Absolute(text.to_owned()));
        }
        if text.contains('\0') {
            return Err(Unusable::Nul(text.to_owned()));
        }
        let mut clean: Vec<&str> = Vec::new();
        for element in text.split('/') {
            match element {
                "" | "." => {}
                ".." => {
                    clean.pop().ok_or_else(|| Unusable::Leaves(text.to_owned()))?;
                }
                name => clean.push(name),
            }
        }
        match clean.is_empty() {
            true => Ok(Self(".".to_owned())),
            false => Ok(Self(clean.join("/"))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_whole(&self) -> bool {
        self.0 == "."
    }

    /// By whole elements: `data` has `data/a` in it and not `database`.
    pub fn contains(&self, other: &str) -> bool {
        self.is_whole() || is_within(other, &self.0)
    }

    /// Whether this is in that directory, itself not counted.
    pub fn is_below(&self, directory: &str) -> bool {
        self.0 != directory && is_within(&self.0, directory)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_within(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
