//! Paths of mounts in what a plain process is told.
//!
//! The mount paths of a container do not exist for it. Where a text names one, the directory of the
//! volume is put in its place.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

/// Mount paths with the places they stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts {
    /// The longest first, so that a mount inside another is found before it.
    known: Vec<Mount>,
}

/// One path of a container and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Absolute, without a slash at its end.
    pub path: String,
    pub real: PathBuf,
    /// Only a sandbox can see to it.
    pub read_only: bool,
}

impl Mounts {
    /// Of two mounts at one path the later one counts. The root cannot be mounted.
    pub fn new(mounts: impl IntoIterator<Item = Mount>) -> Self {
        let mut known: Vec<Mount> = Vec::new();
        for mut mount in mounts {
            mount.path.truncate(mount.path.trim_end_matches('/').len());
            if mount.path.starts_with('/') {
                known.retain(|other| other.path != mount.path);
                known.push(mount);
            }
        }
        known.sort_by(|a, b| b.path.len().cmp(&a.path.len()).then_with(|| a.path.cmp(&b.path)));
        Self { known }
    }

    /// From the longest path to the shortest.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Mount> {
        self.known.iter()
    }

    /// Every whole mount path in `text` becomes the real one. What was put in is not looked at again.
    pub fn translate(&self, text: &str) -> String {
        let mut translated = String::with_capacity(text.len());
        let mut rest = text;
        let mut before = None;
        while let Some(letter) = rest.chars().next() {
            let found = match letter == '/' && before.is_none_or(is_border) {
                true => self.at_start_of(rest),
                false => None,
            };
            let taken = match found {
                Some(mount) => {
                    translated.push_str(&mount.real.to_string_lossy());
                    mount.path.len()
                }
                None => {
                    translated.push(letter);
                    letter.len_utf8()
                }
            };
            before = rest[..taken].chars().next_back();
            rest = &rest[taken..];
        }
        translated
    }

    /// The real place of a path of the container, if a mount holds it.
    pub fn real(&self, path: &str) -> Option<PathBuf> {
        let mount = self.at_start_of(path)?;
        let inside = path[mount.path.len()..].trim_start_matches('/');
        Some(if inside.is_empty() {
            mount.real.clone()
        } else {
            mount.real.join(Path::new(inside))
        })
    }

    fn at_start_of(&self, text: &str) -> Option<&Mount> {
        self.known.iter().find(|mount| {
            let after = text.strip_prefix(&*mount.path).map(|after| after.chars().next());
            after.is_some_and(|next| next.is_none_or(|next| next == '/' || is_border(next)))
        })
    }
}

/// What may stand beside a path without being part of it; in a script that is also what the shell reads.
/// Otherwise `>/dev/termination-log;` would write to a file of the machine.
fn is_border(letter: char) -> bool {
    matches!(letter, '=' | ':' | ',' | '"' | '\'' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`')
        || letter.is_whitespace()
}
