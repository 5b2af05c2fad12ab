//! What no artifact needs any more, and what is not what its name says.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read, Write},
    time::{Duration, SystemTime},
};

use super::{Error, INDEX, Store, at};
use crate::{Digest, digest::HashWriter, manifest::Descriptor};

/// Younger ones may belong to a pull that is under way.
const AGE: Duration = Duration::from_secs(60 * 60);
/// Read at a time.
const PIECE: usize = 1 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    pub blobs: u64,
    pub bytes: u64,
}

/// What a look at every byte has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    pub blobs: u64,
    pub damaged: Vec<Digest>,
    pub missing: Vec<Digest>,
}

impl Store {
    /// Blobs that no artifact names go, unless they are young and `now` is near.
    pub fn sweep(&self, now: SystemTime) -> Result<Freed, Error> {
        let _lock = self.lock(true)?;
        let _alone = self.unused()?.ok_or(Error::Busy)?;
        let used = self.used()?;
        let mut freed = Freed::default();
        let folder = self.blobs();
        for child in fs::read_dir(&folder).map_err(at(&folder))? {
            let child = child.map_err(at(&folder))?;
            let path = child.path();
            let found = child.metadata().map_err(at(&path))?;
            let name = child.file_name();
            let digest = name.to_str().and_then(|hex| format!("sha256:{hex}").parse().ok());
            let is_used = digest.is_some_and(|digest: Digest| used.contains(&digest));
            let changed = found.modified().map_err(at(&path))?;
            let is_old = now.duration_since(changed).is_ok_and(|since| since >= AGE);
            if !is_used && is_old {
                fs::remove_file(&path).map_err(at(&path))?;
                freed.blobs += 1;
                freed.bytes += found.len();
            }
        }
        Ok(freed)
    }

    /// The blobs of an artifact that is no longer listed go, whatever their age, unless another needs them.
    /// While somebody is at work here they stay for the next sweep, since nobody knows what that one needs.
    pub fn collect(&self, removed: &Descriptor) -> Result<Freed, Error> {
        let _lock = self.lock(true)?;
        let mut freed = Freed::default();
        let Some(_alone) = self.unused()? else { return Ok(freed) };
        let used = self.used()?;
        if used.contains(&removed.digest) || !self.has(&removed.digest) {
            return Ok(freed);
        }
        let read = self.manifest(removed)?;
        let blobs = read.layers.into_iter().chain([read.config]).map(|blob| blob.digest);
        let blobs: BTreeSet<Digest> = blobs.chain([removed.digest.clone()]).collect();
        for digest in blobs.difference(&used) {
            let path = self.blob(digest);
            match fs::metadata(&path).and_then(|found| fs::remove_file(&path).map(|()| found)) {
                Ok(found) => {
                    freed.blobs += 1;
                    freed.bytes += found.len();
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(at(&path)(error)),
            }
        }
        Ok(freed)
    }

    /// Reads everything.
    pub fn check(&self) -> Result<Checked, Error> {
        self.check_while(|| true)
    }

    /// As long as that is so. Whoever wants to change something need not wait for the end.
    pub fn check_while(&self, goes_on: impl Fn() -> bool) -> Result<Checked, Error> {
        let used = || self.lock(false).and_then(|_lock| self.used());
        let mut checked = Checked::default();
        for digest in used()? {
            let path = self.blob(&digest);
            match File::open(&path) {
                Ok(file) => {
                    checked.blobs += 1;
                    if hash(file, &goes_on).map_err(at(&path))? != digest {
                        checked.damaged.push(digest);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    checked.missing.push(digest);
                }
                Err(error) => return Err(at(&path)(error)),
            }
        }
        if !checked.missing.is_empty() {
            // What was removed meanwhile is not missed by anybody.
            let used = used()?;
            checked.missing.retain(|digest| used.contains(digest));
        }
        Ok(checked)
    }

    fn used(&self) -> Result<BTreeSet<Digest>, Error> {
        let mut used = BTreeSet::new();
        let mut manifests = self.index(&self.storage().join(INDEX))?.manifests;
        for (registry, repository) in self.repositories()? {
            let name = super::name(&registry, &repository);
            manifests
                .extend(self.index(&self.storage().join(format!("{name}-index.json")))?.manifests);
        }
        for manifest in manifests {
            // What cannot be read may name what is needed, so that nothing may be removed then.
            if self.has(&manifest.digest) {
                let read = self.manifest(&manifest)?;
                used.extend(read.layers.into_iter().map(|layer| layer.digest));
                used.insert(read.config.digest);
            }
            used.insert(manifest.digest);
        }
        Ok(used)
    }
}

fn hash(mut file: File, goes_on: impl Fn() -> bool) -> io::Result<Digest> {
    let (mut hash, mut piece) = (HashWriter::default(), vec![0; PIECE]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(Digest::finish(hash.0)),
            _ if !goes_on() => return Err(io::Error::other("told to end")),
            count => hash.write_all(&piece[..count])?,
        }
    }
}
