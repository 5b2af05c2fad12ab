//! Artifacts on this machine, in the layout that kit has too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_URL_SAFE};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Digest, Reference, left_over,
    manifest::{Descriptor, Manifest},
    reference::{Tag, Version},
};

mod sweep;

pub use sweep::{Checked, Freed};

const INDEX: &str = "index.json";
const LAYOUT: &str = "oci-layout";

pub struct Store {
    home: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot use {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is damaged", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error("{0} is not in the local storage")]
    Missing(Reference),
    #[error("{0} is not in the local storage, and the artifact needs it")]
    Incomplete(Digest),
    #[error("others are at work in the local storage; try again when they are done")]
    Busy,
}

/// The lock that is held while indexes are read or changed.
#[must_use]
pub struct Locked {
    _file: File,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub registry: String,
    pub repository: String,
    pub manifest: Descriptor,
    pub tags: Vec<Tag>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    schema_version: u32,
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

type Tags = BTreeMap<String, Descriptor>;

impl Store {
    /// Whether anything was ever kept there.
    pub fn is_at(home: &Path) -> bool {
        home.join("storage").join(INDEX).is_file()
    }

    /// `home` is what `KITOPS_HOME` says.
    pub fn open(home: PathBuf) -> Result<Self, Error> {
        let store = Self { home };
        for folder in [store.blobs(), store.home.join("windlass")] {
            fs::create_dir_all(&folder).map_err(at(&folder))?;
        }
        let layout = store.storage().join(LAYOUT);
        if !layout.exists() {
            write(&layout, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        }
        Ok(store)
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    fn storage(&self) -> PathBuf {
        self.home.join("storage")
    }

    fn blobs(&self) -> PathBuf {
        self.storage().join("blobs/sha256")
    }

    pub fn blob(&self, digest: &Digest) -> PathBuf {
        self.blobs().join(digest.hex())
    }

    /// Where a blob is written before it is whole. On the same disk, so that it only needs to be moved.
    pub fn scratch(&self) -> Result<tempfile::NamedTempFile, Error> {
        let folder = self.home.join("cache/pack");
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        left_over::remove(&folder, "layer-");
        left_over::file(&folder, "layer-").map_err(at(&folder))
    }

    /// Where a blob is while it comes from elsewhere. It stays there if that is cut.
    pub fn partial(&self, digest: &Digest) -> Result<PathBuf, Error> {
        let folder = self.storage().join("ingest");
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        Ok(folder.join(digest.hex()))
    }

    pub fn has(&self, digest: &Digest) -> bool {
        self.blob(digest).is_file()
    }

    /// A complete file becomes a blob.
    pub fn keep(&self, file: tempfile::NamedTempFile, digest: &Digest) -> Result<(), Error> {
        let path = self.blob(digest);
        file.as_file().sync_all().map_err(at(&path))?;
        let kept = file.persist(&path).map(drop).map_err(|error| error.error);
        kept.and_then(|()| crate::whole::sync_parent(&path)).map_err(at(&path))
    }

    /// A complete file becomes a blob and stays where it is, as the same file where the disk allows that;
    /// so nobody may change it. Whether it was not there yet.
    pub fn link(&self, file: &Path, digest: &Digest) -> Result<bool, Error> {
        let path = self.blob(digest);
        match fs::hard_link(file, &path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            // On another disk, or one that knows no links.
            Err(_) => {
                let mut copy = self.scratch()?;
                let from = File::open(file).and_then(|mut from| io::copy(&mut from, &mut copy));
                from.map_err(at(file))?;
                return self.keep(copy, digest).map(|()| true);
            }
        }
        let synced = File::open(&path).and_then(|file| file.sync_all());
        synced.and_then(|()| crate::whole::sync_parent(&path)).map_err(at(&path))?;
        Ok(true)
    }

    pub fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let digest = Digest::of(bytes);
        if !self.has(&digest) {
            write(&self.blob(&digest), bytes)?;
        }
        Ok(digest)
    }

    /// The bytes of something small.
    pub fn read(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let path = self.blob(digest);
        let mut bytes = Vec::new();
        let limit = crate::manifest::LIMIT as u64 + 1;
        let read = File::open(&path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
        read.map_err(at(&path))?;
        Ok(bytes)
    }

    /// Several may read at once; one changes.
    pub fn lock(&self, exclusive: bool) -> Result<Locked, Error> {
        let path = self.home.join("windlass/lock");
        let file = self.lock_file(&path, exclusive)?;
        let locked = if exclusive { file.lock() } else { file.lock_shared() };
        locked.map_err(at(&path))?;
        Ok(Locked { _file: file })
    }

    fn lock_file(&self, path: &Path, is_for_changes: bool) -> Result<File, Error> {
        let file = match File::options().create(true).truncate(false).write(true).open(path) {
            // Where nothing can be written nobody changes anything.
            Err(error) if !is_for_changes && is_for_reading_only(&error) => {
                File::open(path).or_else(|_| File::open(self.storage()))
            }
            file => file,
        };
        file.map_err(at(path))
    }

    /// For whoever relies on blobs that no artifact names yet, or no longer: none goes meanwhile.
    pub fn using(&self) -> Result<Locked, Error> {
        let path = self.users();
        let file = self.lock_file(&path, false)?;
        file.lock_shared().map_err(at(&path))?;
        Ok(Locked { _file: file })
    }

    /// Nobody begins to use blobs meanwhile. Nothing while somebody does.
    fn unused(&self) -> Result<Option<Locked>, Error> {
        let path = self.users();
        let file = self.lock_file(&path, true)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Locked { _file: file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(at(&path)(error)),
        }
    }

    fn users(&self) -> PathBuf {
        self.home.join("windlass/users")
    }

    pub fn resolve(&self, reference: &Reference) -> Result<Descriptor, Error> {
        let _lock = self.lock(false)?;
        self.find(reference)
    }

    /// Whoever asks has the lock.
    fn find(&self, reference: &Reference) -> Result<Descriptor, Error> {
        let found = match reference.version() {
            Version::Tag(tag) => self.tags(reference)?.remove(tag.as_str()),
            Version::Digest(digest) => {
                let manifests = self.index(&self.index_of(reference))?.manifests;
                manifests.into_iter().find(|manifest| manifest.digest == *digest)
            }
        };
        found.ok_or_else(|| Error::Missing(reference.clone()))
    }

    pub fn manifest(&self, descriptor: &Descriptor) -> Result<Manifest, Error> {
        let bytes = self.read(&descriptor.digest)?;
        let path = self.blob(&descriptor.digest);
        serde_json::from_slice(&bytes).map_err(|source| Error::Damaged { path, source })
    }

    /// The blobs of the manifest are there already. Without a tag it is found by its digest.
    pub fn add(
        &self,
        reference: &Reference,
        manifest: &Descriptor,
        tags: &[Tag],
    ) -> Result<(), Error> {
        let _lock = self.lock(true)?;
        // A sweep may have come between.
        let needed = self.manifest(manifest)?;
        let needed = needed.layers.into_iter().chain([needed.config]).map(|blob| blob.digest);
        if let Some(missing) = { needed }.find(|digest| !self.has(digest)) {
            return Err(Error::Incomplete(missing));
        }
        for path in [self.storage().join(INDEX), self.index_of(reference)] {
            let mut index = self.index(&path)?;
            if index.manifests.iter().all(|known| known.digest != manifest.digest) {
                index.manifests.push(manifest.clone());
                write_json(&path, &index)?;
            }
        }
        if !tags.is_empty() {
            let mut known = self.tags(reference)?;
            known.extend(tags.iter().map(|tag| (tag.to_string(), manifest.clone())));
            write_json(&self.tags_of(reference), &known)?;
        }
        Ok(())
    }

    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        let _lock = self.lock(false)?;
        let mut all = Vec::new();
        for (registry, repository) in self.repositories()? {
            let name = name(&registry, &repository);
            let tags: Tags = read_json(&self.storage().join(format!("{name}-tags.json")))?;
            let index = self.index(&self.storage().join(format!("{name}-index.json")))?;
            for manifest in index.manifests {
                let tagged = tags.iter().filter(|(_, known)| known.digest == manifest.digest);
                let tags = tagged.filter_map(|(tag, _)| Tag::parse(tag).ok()).collect();
                let (registry, repository) = (registry.clone(), repository.clone());
                all.push(Listed { registry, repository, manifest, tags });
            }
        }
        Ok(all)
    }

    /// Takes a tag away, or, by digest, the artifact with all its tags. Blobs go at the next sweep.
    pub fn remove(&self, reference: &Reference) -> Result<Descriptor, Error> {
        let _lock = self.lock(true)?;
        let found = self.find(reference)?;
        let mut tags = self.tags(reference)?;
        let before = tags.len();
        tags.retain(|tag, known| match reference.version() {
            Version::Tag(gone) => tag != gone.as_str(),
            Version::Digest(gone) => known.digest != *gone,
        });
        if tags.len() != before {
            self.write_or_remove(&self.tags_of(reference), &tags, tags.is_empty())?;
        }
        let is_tagged = tags.values().any(|known| known.digest == found.digest);
        if !is_tagged {
            self.forget(reference, &found.digest)?;
        }
        Ok(found)
    }

    fn forget(&self, reference: &Reference, digest: &Digest) -> Result<(), Error> {
        let own = self.index_of(reference);
        let mut index = self.index(&own)?;
        index.manifests.retain(|known| known.digest != *digest);
        self.write_or_remove(&own, &index, index.manifests.is_empty())?;
        // Another repository may have it too.
        let mut elsewhere = BTreeSet::new();
        for (registry, repository) in self.repositories()? {
            let path = self.storage().join(format!("{}-index.json", name(&registry, &repository)));
            elsewhere.extend(self.index(&path)?.manifests.into_iter().map(|known| known.digest));
        }
        if !elsewhere.contains(digest) {
            let path = self.storage().join(INDEX);
            let mut all = self.index(&path)?;
            all.manifests.retain(|known| known.digest != *digest);
            write_json(&path, &all)?;
        }
        Ok(())
    }

    fn write_or_remove(
        &self,
        path: &Path,
        value: &impl Serialize,
        is_empty: bool,
    ) -> Result<(), Error> {
        match is_empty {
            true => fs::remove_file(path).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(Error::Io { path: path.to_owned(), source: error }),
            }),
            false => write_json(path, value),
        }
    }

    fn index_of(&self, reference: &Reference) -> PathBuf {
        let name = name(reference.registry(), reference.repository());
        self.storage().join(format!("{name}-index.json"))
    }

    fn tags_of(&self, reference: &Reference) -> PathBuf {
        let name = name(reference.registry(), reference.repository());
        self.storage().join(format!("{name}-tags.json"))
    }

    fn index(&self, path: &Path) -> Result<Index, Error> {
        let index: Index = read_json(path)?;
        Ok(Index { schema_version: 2, ..index })
    }

    fn tags(&self, reference: &Reference) -> Result<Tags, Error> {
        read_json(&self.tags_of(reference))
    }

    /// Registry and name of all that have an index, by their names.
    fn repositories(&self) -> Result<BTreeSet<(String, String)>, Error> {
        let folder = self.storage();
        let mut found = BTreeSet::new();
        for child in fs::read_dir(&folder).map_err(at(&folder))? {
            let child = child.map_err(at(&folder))?.file_name();
            let name = child.to_str().and_then(|name| name.strip_suffix("-index.json"));
            let name = name.and_then(|name| BASE64_URL_SAFE.decode(name).ok());
            let name = name.and_then(|name| String::from_utf8(name).ok());
            if let Some((registry, repository)) = name.as_deref().and_then(|n| n.split_once('/')) {
                found.insert((registry.to_owned(), repository.to_owned()));
            }
        }
        Ok(found)
    }
}

fn is_for_reading_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

fn name(registry: &str, repository: &str) -> String {
    BASE64_URL_SAFE.encode(format!("{registry}/{repository}"))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, source }
}

/// What is not there is as good as empty.
fn read_json<T: DeserializeOwned + Default>(path: &Path) -> Result<T, Error> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|source| Error::Damaged { path: path.to_owned(), source }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(at(path)(error)),
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let bytes = serde_json::to_vec(value)
        .map_err(|source| Error::Damaged { path: path.to_owned(), source })?;
    write(path, &bytes)
}

/// Nobody ever sees a part of it.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    crate::whole::write(path, bytes).map_err(at(path))
}

#[cfg(test)]
mod tests;
