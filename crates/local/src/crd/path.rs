//! Where in an object, as messages write it.

use std::fmt;

/// The root, as the field of a cause.
pub(super) const ROOT: &str = "<nil>";

/// A chain of steps down from the root; each part of a walk adds one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'a> {
    Root,
    /// Any place, in words.
    Text(&'a str),
    /// `parent.name`
    Field(&'a Path<'a>, &'a str),
    /// `parent[3]`
    Index(&'a Path<'a>, usize),
    /// `parent[key]`
    Key(&'a Path<'a>, &'a str),
}

impl<'a> Path<'a> {
    pub(super) fn field(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    pub(super) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    pub(super) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }

    /// As the field of a cause.
    pub(super) fn of_cause(&self) -> String {
        let text = self.to_string();
        if text.is_empty() { ROOT.to_owned() } else { text }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Text(text) => f.write_str(text),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Self::Key(parent, key) => write!(f, "{parent}[{key}]"),
        }
    }
}
