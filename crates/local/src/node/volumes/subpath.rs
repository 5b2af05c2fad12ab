//! Parts of volumes.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt, lchown},
    path::{Component, Path, PathBuf},
};

use super::{make_dir, told};
use crate::{directories::remove_all, node::users::Readers};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Error {
    /// The pod's fault; it may read this.
    Path(String),
    /// For the log.
    Disk(String),
}

/// The place of `sub` in a volume; a directory is made if there is nothing. Links are followed as
/// long as they stay in the volume.
pub(super) fn beneath(volume: &Path, sub: &str, readers: Readers) -> Result<PathBuf, Error> {
    let sub_path = Path::new(sub);
    if sub_path.is_absolute() {
        return Err(Error::Path(format!("error SubPath `{sub}` must not be an absolute path")));
    }
    if sub_path.components().any(|part| part == Component::ParentDir) {
        let text = format!("unable to provision SubPath `{sub}`: must not contain '..'");
        return Err(Error::Path(text));
    }
    let disk = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| Error::Disk(told(&path, &error))
    };
    let root = fs::canonicalize(volume).map_err(disk(volume))?;
    let mut at = root.clone();
    for part in sub_path.components() {
        // Only `.` is left beside plain names.
        let Component::Normal(name) = part else { continue };
        let next = at.join(name);
        match fs::symlink_metadata(&next) {
            Ok(found) if found.is_symlink() => {
                at = fs::canonicalize(&next).map_err(disk(&next))?;
                if !at.starts_with(&root) {
                    let text = format!("{} leads out of the volume", next.display());
                    return Err(Error::Disk(text));
                }
            }
            Ok(_) => at = next,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = DirBuilder::new().mode(0o700).create(&next);
                made.and_then(|()| readers.may_fill(&next)).map_err(disk(&next))?;
                at = next;
            }
            Err(error) => return Err(disk(&next)(error)),
        }
    }
    Ok(at)
}

/// Copies a file or directory to a place that no other uses. Links and special files are left out:
/// what we write has none.
pub(super) fn copy(from: &Path, to: &Path, readers: Readers) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        make_dir(parent)?;
    }
    if fs::symlink_metadata(to).is_ok() {
        remove_all(to)?;
    }
    copy_into(from, to, readers)
}

fn copy_into(from: &Path, to: &Path, readers: Readers) -> io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    if found.is_dir() {
        DirBuilder::new().mode(0o700).create(to)?;
        readers.may_list(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_into(&entry.path(), &to.join(entry.file_name()), readers)?;
        }
    } else if found.is_file() {
        fs::copy(from, to)?;
        fs::set_permissions(to, Permissions::from_mode(found.permissions().mode() & 0o777))?;
        let (uid, gid, _) = readers.may_read(0);
        lchown(to, uid, gid)?;
    }
    Ok(())
}
