//! Images are rules: which program stands for an image.
//!
//! Rules come from the command line, from the user's file and, last, from the caller as data. The
//! first that fits is taken. The file is read again when it has changed.

mod executable;
mod glob;
mod reference;
mod rule;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

pub use executable::{Executables, Missing, find as find_executable};
pub use reference::{Invalid, Reference};
pub use rule::{PathMode, Placeholders, Rule, Unfilled, Unreadable};

/// Why no program stands for an image. Each text is fit for the message of a waiting container.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `InvalidImageName`.
    #[error(
        "Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: {why}"
    )]
    Name { image: String, why: Invalid },
    /// `ErrImagePull`, as are the others.
    /// With the lines that are to be put there, as they are.
    #[error("no rule maps image {image:?}{hint}; add to {}:\n{advice}", .file.display())]
    NoRule { image: String, hint: String, file: PathBuf, advice: String },
    #[error("cannot use the image rules of {}: {why}", .file.display())]
    File { file: PathBuf, why: String },
}

/// All rules that are in force.
#[derive(Debug)]
pub struct Images {
    file: PathBuf,
    first: Vec<Arc<Rule>>,
    last: Vec<Arc<Rule>>,
    read: Mutex<Option<(Stamp, Own)>>,
}

/// The rules of the file, or what is wrong with it.
type Own = Result<Vec<Arc<Rule>>, String>;

/// By what a changed file is told from an unchanged one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Images {
    /// `first` are the rules of the command line, `last` those that come with the program. The file
    /// need not be there.
    pub fn new(file: &Path, first: Vec<Rule>, last: Vec<Rule>) -> Self {
        let shared = |rules: Vec<Rule>| rules.into_iter().map(Arc::new).collect();
        Self {
            file: file.to_owned(),
            first: shared(first),
            last: shared(last),
            read: Mutex::new(None),
        }
    }

    /// The rule for a container, with the image in its normal form.
    ///
    /// A file that cannot be read hides what it says first, so it fails even images that other rules
    /// would map, except those of the command line.
    pub fn find(&self, image: &str, command: &[String]) -> Result<(Arc<Rule>, Reference), Error> {
        let reference =
            Reference::parse(image).map_err(|why| Error::Name { image: image.to_owned(), why })?;
        let fits = |rule: &&Arc<Rule>| rule.fits(&reference, command);
        if let Some(rule) = self.first.iter().find(fits) {
            return Ok((rule.clone(), reference));
        }
        let own = self.own().map_err(|why| Error::File { file: self.file.clone(), why })?;
        match own.iter().chain(&self.last).find(fits) {
            Some(rule) => Ok((rule.clone(), reference)),
            None => Err(self.no_rule(image, &reference, &own)),
        }
    }

    fn no_rule(&self, image: &str, reference: &Reference, own: &[Arc<Rule>]) -> Error {
        let all = self.first.iter().chain(own).chain(&self.last);
        let near: Vec<_> = all
            // One for all images says nothing of this one.
            .filter(|rule| rule.pattern != "*" && rule.names(reference))
            .map(|rule| format!("{:?}", rule.command))
            .collect();
        let hint = match &*near {
            [] => String::new(),
            near => format!(" with this command (rules for it want {})", near.join(" or ")),
        };
        Error::NoRule {
            image: image.to_owned(),
            hint,
            file: self.file.clone(),
            advice: format!(
                "[[image]]\nmatch = \"{}\"\nargv = [\"/path/to/program\"]",
                reference.pattern()
            ),
        }
    }

    /// The rules of the file, which may have changed.
    fn own(&self) -> Own {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = match fs::metadata(&self.file) {
            Ok(found) => Stamp {
                inode: found.ino(),
                length: found.len(),
                modified: (found.mtime(), found.mtime_nsec()),
                changed: (found.ctime(), found.ctime_nsec()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.to_string()),
        };
        if let Some((known, rules)) = &*read
            && *known == stamp
        {
            return rules.clone();
        }
        let text = fs::read_to_string(&self.file).map_err(|error| error.to_string())?;
        let rules = Rule::parse_all(&text).map_err(|error| error.to_string());
        let rules: Own = rules.map(|rules| rules.into_iter().map(Arc::new).collect());
        *read = Some((stamp, rules.clone()));
        rules
    }
}
