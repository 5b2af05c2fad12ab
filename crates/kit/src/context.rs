//! The directory that is packed: which files there are, in the order of archives.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    ignore::{self, Ignore},
    kitfile,
    tar::Type,
};

/// A file or directory that may be packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// From the context on, with forward slashes. Shared by all who have the file, since there may be many.
    pub name: Arc<str>,
    /// Where the context is.
    pub root: Arc<Path>,
    pub type_: Type,
    pub mode: u32,
    /// None for directories.
    pub size: u64,
}

impl File {
    pub fn place(&self) -> PathBuf {
        self.root.join(&*self.name)
    }
}

/// Everything in the directory that is not ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Depth first, the names of a directory by their bytes, a directory before what is in it.
    pub files: Vec<File>,
    /// What is neither a file nor a directory, and not packed.
    pub skipped: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot pack {}: its name is no text", .0.display())]
    Name(PathBuf),
    #[error(transparent)]
    Ignore(#[from] ignore::Invalid),
    #[error("{} leads to a directory above it", .0.display())]
    Loop(PathBuf),
}

/// What symbolic links stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Links {
    #[default]
    Skip,
    Follow,
}

impl Context {
    pub fn read(root: &Path, links: Links) -> Result<Self, Error> {
        let mut context = Self::default();
        let ignore = read_ignore(root)?;
        let (above, into) = (Vec::new(), &mut context);
        let mut walk = Walk { root: root.into(), ignore: &ignore, links, above, into };
        walk.directory(root, "")?;
        Ok(context)
    }

    /// As if everybody had the same umask: what was downloaded has no modes of its own.
    pub fn with_plain_modes(mut self) -> Self {
        for file in &mut self.files {
            file.mode = match file.type_ {
                Type::File => 0o644,
                Type::Directory => 0o755,
            };
        }
        self
    }
}

impl Context {
    /// These files and no others, with the directories above them.
    pub fn with_only(mut self, files: &BTreeSet<&str>) -> Self {
        let mut above = BTreeSet::new();
        for file in files {
            let mut rest = *file;
            while let Some((parent, _)) = rest.rsplit_once('/') {
                above.insert(parent);
                rest = parent;
            }
        }
        self.files.retain(|file| match file.type_ {
            Type::File => files.contains(&*file.name),
            Type::Directory => above.contains(&*file.name),
        });
        self
    }
}

fn read_ignore(root: &Path) -> Result<Ignore, Error> {
    let path = root.join(ignore::FILE);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Ignore::parse(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Ignore::default()),
        Err(source) => Err(Error::Read { path, source }),
    }
}

struct Walk<'a> {
    root: Arc<Path>,
    ignore: &'a Ignore,
    links: Links,
    /// Device and inode of the directories that it is in, so that no link leads round in circles.
    above: Vec<(u64, u64)>,
    into: &'a mut Context,
}

impl Walk<'_> {
    fn directory(&mut self, place: &Path, name: &str) -> Result<(), Error> {
        let failed = |source| Error::Read { path: place.to_owned(), source };
        let found = fs::metadata(place).map_err(failed)?;
        let id = (found.dev(), found.ino());
        if self.above.contains(&id) {
            return Err(Error::Loop(place.to_owned()));
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().into_string();
            names.push(name.map_err(|_| Error::Name(entry.path()))?);
        }
        names.sort_unstable();
        self.above.push(id);
        for child in names {
            let path = if name.is_empty() { child.clone() } else { format!("{name}/{child}") };
            self.entry(&place.join(&child), path)?;
        }
        self.above.pop();
        Ok(())
    }

    fn entry(&mut self, place: &Path, name: String) -> Result<(), Error> {
        if name == ignore::FILE || kitfile::NAMES.contains(&name.as_str()) {
            return Ok(());
        }
        let is_ignored = self.ignore.has(&name);
        if is_ignored && self.ignore.is_final() {
            return Ok(());
        }
        let found = match self.links {
            Links::Skip => fs::symlink_metadata(place),
            Links::Follow => fs::metadata(place),
        };
        let found = found.map_err(|source| Error::Read { path: place.to_owned(), source })?;
        let type_ = match (found.is_file(), found.is_dir()) {
            (true, _) => Type::File,
            (_, true) => Type::Directory,
            _ => {
                if !is_ignored {
                    self.into.skipped.push(name);
                }
                return Ok(());
            }
        };
        if !is_ignored {
            self.into.files.push(File {
                name: name.as_str().into(),
                root: self.root.clone(),
                type_,
                mode: found.mode() & 0o7777,
                size: if type_ == Type::File { found.len() } else { 0 },
            });
        }
        // Something in an ignored directory may be kept.
        if type_ == Type::Directory { self.directory(place, &name) } else { Ok(()) }
    }
}
