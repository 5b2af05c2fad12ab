//! The words by which a process starts inside a sandbox that has the mount paths.
//!
//! The sandbox shows the machine's own files, with the mounts in their places. A directory in which
//! a mount needs a place that the machine lacks is made anew and filled with what the machine has
//! there, so that nothing is ever made in the machine's own directories.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fs, io, path::Path};

use super::translate::Mounts;

/// What is in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// Where it leads if it is a link.
    pub link: Option<String>,
}

/// The words to put before the process's own. `list` tells what is in a directory of the machine.
pub fn words(mounts: &Mounts, dir: &str, list: impl Fn(&str) -> Vec<Entry>) -> Vec<String> {
    let mut words = strings(&["bwrap", "--die-with-parent", "--unshare-pid"]);
    let anew: BTreeSet<String> = mounts.iter().flat_map(|mount| parents(&mount.path)).collect();
    let places: BTreeSet<&str> = mounts.iter().map(|mount| &*mount.path).collect();
    fill("/", &anew, &places, &list, &mut words);
    words.extend(strings(&["--proc", "/proc"]));
    // The outer ones first, or they would hide those inside them.
    for mount in mounts.iter().rev() {
        let bind = if mount.read_only { "--ro-bind" } else { "--bind" };
        words.extend([bind.into(), mount.real.to_string_lossy().into_owned(), mount.path.clone()]);
    }
    words.extend(strings(&["--chdir", dir, "--"]));
    words
}

/// The machine's own directories. What cannot be read is shown as empty.
pub fn list(dir: &str) -> Vec<Entry> {
    let read = |dir: &str| -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let link = fs::read_link(entry.path()).ok();
            let link = link.map(|link| link.to_string_lossy().into_owned());
            entries.push(Entry { name, link });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    };
    read(dir).unwrap_or_default()
}

/// Whether the sandbox's program is there.
pub fn is_installed(path: &str) -> bool {
    super::images::find_executable("bwrap", path, Path::new("/")).is_ok()
}

/// Whether this program runs others in a sandbox, and keeps signals from them.
pub fn is_sandbox(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name == "bwrap")
}

fn fill(
    dir: &str,
    anew: &BTreeSet<String>,
    places: &BTreeSet<&str>,
    list: &impl Fn(&str) -> Vec<Entry>,
    words: &mut Vec<String>,
) {
    for entry in list(dir) {
        let path = match dir {
            "/" => format!("/{}", entry.name),
            dir => format!("{dir}/{}", entry.name),
        };
        if path == "/proc" || places.contains(&*path) {
            continue;
        }
        // A link on the way to a mount would lead out of the directory that is made for it.
        if anew.contains(&path) {
            words.extend(["--dir".into(), path.clone()]);
            fill(&path, anew, places, list, words);
        } else if let Some(link) = entry.link {
            words.extend(["--symlink".into(), link, path]);
        } else {
            let bind = if path.starts_with("/dev") { "--dev-bind-try" } else { "--bind-try" };
            words.extend([bind.into(), path.clone(), path]);
        }
    }
}

/// Every directory above a path but the root.
fn parents(path: &str) -> Vec<String> {
    let slashes = path.match_indices('/').map(|(at, _)| at).skip(1);
    slashes.map(|at| path[..at].to_owned()).collect()
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
