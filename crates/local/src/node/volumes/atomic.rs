//! Directories whose files change all at once.
//!
//! The files are in a directory named after the time. The link `..data` leads to it, and what a
//! process opens are links into `..data`. An update makes a new directory and turns the link.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, symlink},
    path::Path,
};

use jiff::Timestamp;

use super::{
    make_dir,
    payload::{File, Payload},
};
use crate::{directories::remove_all, node::users::Readers};

const DATA: &str = "..data";
const DATA_TO_BE: &str = "..data_tmp";

/// Who may read the files.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// They can be read by the owner, and nothing more.
    pub(super) private: bool,
    pub(super) readers: Readers,
}

/// Makes the directory hold `payload` and nothing else; whether that changed anything.
pub(super) fn write(dir: &Path, payload: &Payload, how: How, now: Timestamp) -> io::Result<bool> {
    make_dir(dir)?;
    how.readers.may_list(dir)?;
    let mode = |file| how.readers.may_read(mode(file, how.private)).2;
    let payload: BTreeMap<&str, (&File, u32)> =
        payload.iter().map(|(path, file)| (&**path, (file, mode(file)))).collect();
    let changed = !holds(&dir.join(DATA), &payload)?;
    if changed {
        let fresh = fill(dir, &payload, how.readers, now)?;
        turn(dir, DATA, DATA_TO_BE, Path::new(&fresh))?;
    }
    show(dir, &payload)?;
    clean(dir)?;
    Ok(changed)
}

/// Whoever owns a file has to be able to read it.
fn mode(file: &File, private: bool) -> u32 {
    match private {
        true => (file.mode & 0o500) | 0o400,
        false => file.mode | 0o400,
    }
}

/// Whether just these files are there already.
fn holds(data: &Path, payload: &BTreeMap<&str, (&File, u32)>) -> io::Result<bool> {
    let mut found = BTreeSet::new();
    match walk(data, "", &mut found) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        walked => walked?,
    }
    if !found.iter().map(String::as_str).eq(payload.keys().copied()) {
        return Ok(false);
    }
    for (path, (file, mode)) in payload {
        let there = data.join(path);
        if fs::symlink_metadata(&there)?.mode() & 0o777 != *mode || fs::read(&there)? != file.bytes
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn walk(dir: &Path, prefix: &str, found: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{path}/"), found)?;
        } else {
            found.insert(path);
        }
    }
    Ok(())
}

/// Writes the files into a new directory; its name.
fn fill(
    dir: &Path,
    payload: &BTreeMap<&str, (&File, u32)>,
    readers: Readers,
    now: Timestamp,
) -> io::Result<String> {
    let time = now.strftime("..%Y_%m_%d_%H_%M_%S.%9f").to_string();
    let mut name = time.clone();
    let mut tries = 0;
    while let Err(error) = DirBuilder::new().mode(0o700).create(dir.join(&name)) {
        // Clocks stand still or go back.
        if error.kind() != io::ErrorKind::AlreadyExists || tries == 100 {
            return Err(error);
        }
        tries += 1;
        name = format!("{time}{tries}");
    }
    let fresh = dir.join(&name);
    // A full disk should not fill with halves of what does not fit.
    fill_in(&fresh, payload, readers).inspect_err(|_| drop(remove_all(&fresh)))?;
    Ok(name)
}

fn fill_in(
    fresh: &Path,
    payload: &BTreeMap<&str, (&File, u32)>,
    readers: Readers,
) -> io::Result<()> {
    readers.may_list(fresh)?;
    for (path, (file, mode)) in payload {
        let to = fresh.join(path);
        let mut parents = to.ancestors().skip(1).take_while(|parent| *parent != fresh);
        if let Some(parent) = to.parent() {
            make_dir(parent)?;
        }
        parents.try_for_each(|parent| readers.may_list(parent))?;
        let mut made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to)?;
        made.write_all(&file.bytes)?;
        made.set_permissions(Permissions::from_mode(*mode))?;
        let (uid, gid, _) = readers.may_read(*mode);
        fchown(&made, uid, gid)?;
    }
    Ok(())
}

/// Puts a link in place, over whatever else was there.
fn turn(dir: &Path, link: &str, beside: &str, to: &Path) -> io::Result<()> {
    let beside = dir.join(beside);
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(to, &beside)?;
    fs::rename(&beside, dir.join(link))
}

/// The links that processes see: one for each first element of a path.
fn show(dir: &Path, payload: &BTreeMap<&str, (&File, u32)>) -> io::Result<()> {
    let tops = payload.keys().map(|path| path.split('/').next().unwrap_or(path));
    for top in tops.collect::<BTreeSet<_>>() {
        let to = Path::new(DATA).join(top);
        let there = fs::read_link(dir.join(top)).ok();
        if there.as_deref() != Some(&*to) {
            turn(dir, top, DATA_TO_BE, &to)?;
        }
    }
    Ok(())
}

/// Removes links that lead nowhere now, and directories of earlier times.
fn clean(dir: &Path) -> io::Result<()> {
    let current = fs::read_link(dir.join(DATA))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let is_dir = entry.file_type()?.is_dir();
        let name = name.to_string_lossy();
        if is_dir && name.starts_with("..") && *name != *current.to_string_lossy() {
            remove_all(&path)?;
        } else if fs::read_link(&path).is_ok_and(|to| to.starts_with(DATA))
            && fs::symlink_metadata(dir.join(DATA).join(&*name)).is_err()
        {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
