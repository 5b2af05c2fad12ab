//! Digests of layers whose files have not changed since: they need not be read again.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Digest, layer::Layer};

/// The oldest go first.
const MOST: usize = 10_000;
/// Clocks of file systems tick; who writes twice within a tick leaves no trace of the second time.
const SETTLED: Duration = Duration::from_secs(2);

/// Kept in the home of the store. Whatever is wrong with it only costs the reading.
pub struct Digests {
    path: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct Known(Vec<(Digest, Digest)>);

/// How the files of a layer are, without looking into them.
#[derive(PartialEq, Eq)]
pub struct Look {
    print: Digest,
    /// Of all files, the last time that one was touched.
    touched: Duration,
}

impl Digests {
    pub fn new(home: &Path) -> Self {
        Self { path: home.join("windlass/digests") }
    }

    /// That of the layer as it is stored without compression, if its files are as they were.
    pub fn find(&self, look: &Look) -> Option<Digest> {
        let known = self.known().0.into_iter().find(|(print, _)| *print == look.print);
        known.map(|(_, digest)| digest)
    }

    /// What was read of the layer after this look.
    pub fn remember(&self, layer: &Layer, before: Look, digest: &Digest) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_same = look(layer).is_ok_and(|after| after == before);
        if is_same && before.touched + SETTLED < now {
            self.keep(before.print, digest.clone());
        }
    }

    fn known(&self) -> Known {
        fs::read(&self.path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    fn keep(&self, print: Digest, digest: Digest) {
        // Several layers are packed at once. Who packs elsewhere may still win, which costs a reading.
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = self.known();
        known.0.push((print, digest));
        let surplus = known.0.len().saturating_sub(MOST);
        known.0.drain(..surplus);
        let written = serde_json::to_vec(&known)
            .map_err(io::Error::other)
            .and_then(|bytes| crate::whole::write(&self.path, &bytes));
        if let Err(error) = written {
            tracing::debug!(%error, "unchanged files will be read again");
        }
    }
}

impl Look {
    /// Stands for the digest of the layer as long as nobody knows that.
    pub fn key(&self) -> &Digest {
        &self.print
    }
}

pub fn look(layer: &Layer) -> io::Result<Look> {
    let mut hash = Sha256::new();
    let mut touched = Duration::ZERO;
    hash.update(format!("2 {:?}\n", layer.format));
    for file in layer.files.iter() {
        // Of what is packed: where that is behind a link, the link says nothing of it.
        let found = fs::metadata(file.place())?;
        let (name, mode, size) = (&file.name, file.mode, file.size);
        hash.update(format!("{} {mode:o} {size} {name}\n", name.len()));
        hash.update(format!(
            "{} {} {} {} {} {} {}\n",
            found.dev(),
            found.ino(),
            found.size(),
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
        ));
        let at = Duration::from_secs(u64::try_from(found.ctime()).unwrap_or_default());
        touched = touched.max(at + Duration::from_secs(1));
    }
    Ok(Look { print: Digest::finish(hash), touched })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        context::File,
        kitfile::{Entry, Kind},
        layer::Format,
        pack,
        tar::Type,
    };

    /// As whoever packs asks.
    fn hash(digests: &Digests, layer: &Layer) -> Digest {
        let before = look(layer).unwrap();
        digests.find(&before).unwrap_or_else(|| {
            let digest = pack::hash(layer).unwrap();
            digests.remember(layer, before, &digest);
            digest
        })
    }

    fn layer(folder: &Path) -> Layer {
        let place = folder.join("weights");
        let size = fs::metadata(&place).unwrap().len();
        let (name, root) = ("weights".into(), folder.into());
        let file = File { name, root, type_: Type::File, mode: 0o644, size };
        let path = crate::kitfile::Path::parse("weights").unwrap();
        let entry = Entry { kind: Kind::Model, name: String::new(), path };
        Layer { entry, format: Format::Tar, files: [file].into() }
    }

    /// As if it had been written long ago; only then is it remembered.
    fn remember(digests: &Digests, layer: &Layer) -> Digest {
        let digest = pack::hash(layer).unwrap();
        digests.keep(look(layer).unwrap().print, digest.clone());
        digest
    }

    #[test]
    fn files_that_are_as_they_were_are_not_read_again() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("weights"), "12345").unwrap();
        let (digests, layer) = (Digests::new(folder.path()), layer(folder.path()));
        let digest = remember(&digests, &layer);
        assert_eq!(hash(&digests, &layer), digest);
        // What is remembered is answered, so it was not read.
        let other = Digest::of(b"other");
        fs::remove_file(folder.path().join("windlass/digests")).unwrap();
        digests.keep(look(&layer).unwrap().print, other.clone());
        assert_eq!(hash(&digests, &layer), other);
    }

    #[test]
    fn what_was_just_written_is_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("weights"), "12345").unwrap();
        let digests = Digests::new(folder.path());
        hash(&digests, &layer(folder.path()));
        assert!(digests.known().0.is_empty());
    }

    #[test]
    fn other_bytes_of_the_same_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("weights");
        fs::write(&file, "12345").unwrap();
        let digests = Digests::new(folder.path());
        let before = remember(&digests, &layer(folder.path()));
        // Another file under the name, as every careful writer makes.
        fs::write(folder.path().join("new"), "54321").unwrap();
        fs::rename(folder.path().join("new"), &file).unwrap();
        let after = hash(&digests, &layer(folder.path()));
        assert_ne!(after, before);
        assert_eq!(after, pack::hash(&layer(folder.path())).unwrap());
    }

    #[test]
    fn what_a_link_leads_to_is_read_again_when_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("blob"), "12345").unwrap();
        std::os::unix::fs::symlink("blob", folder.path().join("weights")).unwrap();
        let digests = Digests::new(folder.path());
        let before = remember(&digests, &layer(folder.path()));
        fs::write(folder.path().join("new"), "54321").unwrap();
        fs::rename(folder.path().join("new"), folder.path().join("blob")).unwrap();
        let after = hash(&digests, &layer(folder.path()));
        assert_ne!(after, before);
        assert_eq!(after, pack::hash(&layer(folder.path())).unwrap());
    }

    #[test]
    fn a_file_that_grew_before_it_was_looked_at_is_not_the_one_that_was_counted() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("weights"), "12345").unwrap();
        let layer = layer(folder.path());
        let [file] = &*layer.files else { unreachable!() };
        let longer = Layer { files: [File { size: 6, ..file.clone() }].into(), ..layer.clone() };
        assert!(look(&layer).unwrap() != look(&longer).unwrap());
    }

    #[test]
    fn a_damaged_memory_is_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("weights"), "12345").unwrap();
        fs::create_dir(folder.path().join("windlass")).unwrap();
        fs::write(folder.path().join("windlass/digests"), "{").unwrap();
        let (digests, layer) = (Digests::new(folder.path()), layer(folder.path()));
        assert_eq!(hash(&digests, &layer), pack::hash(&layer).unwrap());
    }
}
