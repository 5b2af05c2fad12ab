//! What has been begun, so that a later run can go on with it.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use crate::{
    Digest, lock,
    remote::{Remote, Upload},
};

/// What an earlier run has begun is of no use for longer.
const AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Where it is kept what has been begun and where blobs are.
#[derive(Clone, Debug)]
pub struct Memory {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Begun {
    registry: String,
    repository: String,
    #[serde(flatten)]
    upload: Upload,
}

/// What is remembered of one blob. Two who send the same blob at once must not go on with the same
/// upload, so only the first of them remembers anything.
pub(super) struct Slot {
    place: PathBuf,
    registry: String,
    repository: String,
    held: Mutex<Option<Held>>,
}

/// As long as it lives, nobody else has it.
struct Held {
    path: PathBuf,
    file: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        // While it is still locked: whoever opened it before sees that it is gone, and makes another.
        // One that somebody has made since is theirs.
        if lock::is_at(&self.file, &self.path).unwrap_or(false) {
            drop(fs::remove_file(&self.path));
        }
    }
}

impl Memory {
    /// In the home of the store.
    pub fn new(home: &Path) -> Self {
        Self { folder: home.join("windlass/uploads") }
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(format!("{}.json", digest.hex()))
    }

    pub(super) fn slot(&self, remote: &Remote, repository: &str, digest: &Digest) -> Slot {
        Slot {
            place: self.path(digest),
            registry: remote.registry().to_owned(),
            repository: repository.to_owned(),
            held: Mutex::new(self.hold(digest)),
        }
    }

    fn hold(&self, digest: &Digest) -> Option<Held> {
        let path = self.path(digest).with_extension("lock");
        let file = lock::attempt(&path).unwrap_or_else(|error| {
            tracing::debug!(%error, "a push that is cut will begin anew");
            None
        })?;
        Some(Held { path, file })
    }

    /// What was begun for a blob that has come there by another way.
    pub(super) fn forget(&self, remote: &Remote, repository: &str, digest: &Digest) {
        if self.path(digest).exists() {
            let slot = self.slot(remote, repository, digest);
            // It may be for another place.
            if slot.begun().is_some() {
                slot.forget();
            }
        }
    }

    /// Of all blobs, also those that nobody will ever send again: what is of no use any more. What cannot
    /// be removed stays, which only takes room.
    pub(super) fn sweep(&self) {
        for child in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = child.path();
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            if !is_old(&path) {
                continue;
            }
            match format!("sha256:{name}").parse::<Digest>() {
                // The lock goes with whoever holds it last.
                Ok(digest) => {
                    let held = self.hold(&digest);
                    let note = self.path(&digest);
                    if held.is_some() && is_old(&note) {
                        drop(fs::remove_file(note));
                    }
                }
                // Begun by whoever was killed over it.
                Err(_) => drop(fs::remove_file(path)),
            }
        }
    }

    /// What was begun before its digest was known goes on under it.
    pub fn rename(&self, unknown: &Digest, digest: &Digest) {
        if let (Some(_from), Some(_to)) = (self.hold(unknown), self.hold(digest)) {
            // Where it was not begun there is nothing to go on with.
            drop(fs::rename(self.path(unknown), self.path(digest)));
        }
    }
}

/// Not what is not there.
fn is_old(path: &Path) -> bool {
    let changed = fs::metadata(path).and_then(|found| found.modified());
    let age = changed.map(|time| SystemTime::now().duration_since(time).unwrap_or_default());
    age.is_ok_and(|age| age >= AGE)
}

impl Slot {
    fn held(&self) -> std::sync::MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_held(&self) -> bool {
        self.held().is_some()
    }

    /// It is for others from now on, even if somebody still tells of the end of what was sent.
    pub(super) fn release(&self) {
        *self.held() = None;
    }

    pub(super) fn begun(&self) -> Option<Upload> {
        self.is_held().then_some(())?;
        if is_old(&self.place) {
            self.forget();
            return None;
        }
        let begun: Begun = serde_json::from_slice(&fs::read(&self.place).ok()?).ok()?;
        let is_same = begun.registry == self.registry && begun.repository == self.repository;
        is_same.then_some(begun.upload)
    }

    pub(super) fn reached(&self, upload: &Upload) -> io::Result<()> {
        if !self.is_held() {
            return Ok(());
        }
        let (registry, repository) = (self.registry.clone(), self.repository.clone());
        let begun = Begun { registry, repository, upload: upload.clone() };
        let bytes = serde_json::to_vec(&begun).map_err(io::Error::other)?;
        crate::whole::note(&self.place, &bytes)
    }

    pub(super) fn forget(&self) {
        if self.is_held() {
            // What is not there need not be removed.
            drop(fs::remove_file(&self.place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_who_sends_a_blob_remembers_it() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::new(folder.path());
        let remote = Remote::new("r.io", &crate::remote::Settings::default()).unwrap();
        let (digest, other) = (Digest::of(b"blob"), Digest::of(b"other"));
        let upload = |path: &str| Upload {
            location: format!("https://r.io/{path}").parse().unwrap(),
            offset: 7,
            least_chunk: 0,
        };
        let first = memory.slot(&remote, "a/m", &digest);
        first.reached(&upload("first")).unwrap();
        let second = memory.slot(&remote, "a/m", &digest);
        assert_eq!(second.begun(), None, "it is the first one's");
        second.reached(&upload("second")).unwrap();
        second.forget();
        // Not even under another name.
        memory.rename(&digest, &other);
        assert_eq!(first.begun(), Some(upload("first")));
        first.release();
        first.reached(&upload("late")).unwrap();
        drop((first, second));
        memory.rename(&digest, &other);
        let third = memory.slot(&remote, "a/m", &other);
        assert_eq!(third.begun(), Some(upload("first")), "whoever comes later goes on with it");
        assert_eq!(memory.slot(&remote, "a/other", &digest).begun(), None);
        third.forget();
        drop(third);
        assert_eq!(fs::read_dir(&memory.folder).unwrap().count(), 0, "no lock stays behind");
    }

    #[test]
    fn what_other_models_have_left_goes_with_the_next_push() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::new(folder.path());
        let (old, held, new) = (Digest::of(b"old"), Digest::of(b"held"), Digest::of(b"new"));
        let _held = memory.hold(&held).unwrap();
        let killed = memory.folder.join(".new-x");
        let lock = memory.path(&old).with_extension("lock");
        for path in [&memory.path(&old), &lock, &memory.path(&held), &memory.path(&new), &killed] {
            fs::write(path, "{}").unwrap();
            let note = File::options().write(true).open(path).unwrap();
            if *path != memory.path(&new) {
                note.set_modified(SystemTime::now() - AGE).unwrap();
            }
        }
        memory.sweep();
        assert!(!memory.path(&old).exists() && !lock.exists() && !killed.exists());
        assert!(memory.path(&held).exists(), "somebody has it just now");
        assert!(memory.path(&new).exists());
        assert!(!memory.path(&new).with_extension("lock").exists());
    }

    #[test]
    fn what_is_too_old_goes_and_what_is_anothers_stays() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::new(folder.path());
        let remote = Remote::new("r.io", &crate::remote::Settings::default()).unwrap();
        let digest = Digest::of(b"blob");
        let location = "https://r.io/u".parse().unwrap();
        let upload = Upload { location, offset: 7, least_chunk: 0 };
        let first = memory.slot(&remote, "a/m", &digest);
        first.reached(&upload).unwrap();
        let note = File::options().write(true).open(memory.path(&digest)).unwrap();
        note.set_modified(SystemTime::now() - AGE).unwrap();
        assert_eq!(first.begun(), None);
        assert!(!memory.path(&digest).exists());
        // As if somebody had tidied up.
        let lock = memory.path(&digest).with_extension("lock");
        fs::remove_file(&lock).unwrap();
        let second = memory.slot(&remote, "a/m", &digest);
        assert!(second.is_held());
        drop(first);
        assert!(lock.exists(), "it is the second one's");
        second.reached(&upload).unwrap();
        drop(second);
        memory.forget(&remote, "a/other", &digest);
        assert!(memory.path(&digest).exists());
        memory.forget(&remote, "a/m", &digest);
        assert!(!memory.path(&digest).exists());
    }
}
