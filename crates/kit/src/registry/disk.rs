//! The files of a registry. Each is whole or not there.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use tokio::sync::RwLock;

pub(super) use crate::whole::blocking;

use super::route::Name;
use crate::{
    Digest,
    reference::Tag,
    whole::{make_parent, sync_parent, write},
};

pub(super) struct Disk {
    root: PathBuf,
    /// A sweep has it alone; whoever stores a manifest shares it with others.
    pub(super) storing: RwLock<()>,
}

/// What is kept of a manifest beside its bytes, which are a blob.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    pub(super) media_type: String,
    pub(super) size: u64,
}

// No element of a name begins with an underscore, so these are never part of one.
const TAGS: &str = "_tags";
const MANIFESTS: &str = "_manifests";
const REFERRERS: &str = "_referrers";

impl Disk {
    pub(super) fn open(root: PathBuf) -> io::Result<Self> {
        for name in ["blobs/sha256", "repos", "uploads"] {
            fs::create_dir_all(root.join(name))?;
        }
        Ok(Self { root, storing: RwLock::new(()) })
    }

    pub(super) fn uploads(&self) -> PathBuf {
        self.root.join("uploads")
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.root.join("blobs/sha256")
    }

    pub(super) fn repositories(&self) -> PathBuf {
        self.root.join("repos")
    }

    pub(super) fn blob(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        self.blobs().join(hex.get(..2).unwrap_or_default()).join(hex)
    }

    fn repository(&self, name: &Name) -> PathBuf {
        self.repositories().join(name.as_str())
    }

    pub(super) fn manifests(&self, name: &Name) -> PathBuf {
        self.repository(name).join(MANIFESTS)
    }

    fn manifest(&self, name: &Name, digest: &Digest) -> PathBuf {
        self.manifests(name).join(digest.hex())
    }

    fn tag(&self, name: &Name, tag: &Tag) -> PathBuf {
        self.repository(name).join(TAGS).join(tag.as_str())
    }

    pub(super) fn referrers(&self, name: &Name, subject: &Digest) -> PathBuf {
        self.repository(name).join(REFERRERS).join(subject.hex())
    }

    /// Size of a blob that is there.
    pub(super) async fn size(&self, digest: &Digest) -> io::Result<Option<u64>> {
        found(tokio::fs::metadata(self.blob(digest)).await.map(|found| found.len()))
    }

    /// Whether it is there; then it counts as new, since somebody is about to name it.
    pub(super) async fn touch(&self, digest: &Digest) -> io::Result<bool> {
        let path = self.blob(digest);
        let touched = blocking(move || {
            let file = fs::File::options().write(true).open(path)?;
            file.set_modified(SystemTime::now())
        });
        removed(touched.await)
    }

    /// A file that is complete becomes a blob; one that is there already stays, and counts as new.
    pub(super) async fn keep_blob(&self, from: PathBuf, digest: &Digest) -> io::Result<()> {
        let to = self.blob(digest);
        blocking(move || {
            make_parent(&to)?;
            fs::rename(&from, &to)?;
            sync_parent(&to)
        })
        .await
    }

    pub(super) async fn write_blob(&self, digest: &Digest, bytes: Vec<u8>) -> io::Result<()> {
        let to = self.blob(digest);
        blocking(move || write(&to, &bytes)).await
    }

    pub(super) async fn kept(&self, name: &Name, digest: &Digest) -> io::Result<Option<Kept>> {
        let path = self.manifest(name, digest);
        let Some(bytes) = found(tokio::fs::read(path).await)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other)
    }

    pub(super) async fn tagged(&self, name: &Name, tag: &Tag) -> io::Result<Option<Digest>> {
        let Some(text) = found(tokio::fs::read_to_string(self.tag(name, tag)).await)? else {
            return Ok(None);
        };
        text.trim().parse().map(Some).map_err(io::Error::other)
    }

    /// Its bytes are a blob already.
    pub(super) async fn keep_manifest(
        &self,
        name: &Name,
        digest: &Digest,
        kept: &Kept,
        subject: Option<&Digest>,
    ) -> io::Result<()> {
        let record = serde_json::to_vec(kept).map_err(io::Error::other)?;
        let mut files = vec![(self.manifest(name, digest), record)];
        if let Some(subject) = subject {
            files.push((self.referrers(name, subject).join(digest.hex()), Vec::new()));
        }
        blocking(move || files.iter().try_for_each(|(path, bytes)| write(path, bytes))).await
    }

    pub(super) async fn set_tag(&self, name: &Name, tag: &Tag, digest: &Digest) -> io::Result<()> {
        let (path, text) = (self.tag(name, tag), digest.to_string());
        blocking(move || write(&path, text.as_bytes())).await
    }

    pub(super) async fn remove_tag(&self, name: &Name, tag: &Tag) -> io::Result<bool> {
        removed(tokio::fs::remove_file(self.tag(name, tag)).await)
    }

    /// With all tags that lead to it.
    pub(super) async fn remove_manifest(
        &self,
        name: &Name,
        digest: &Digest,
        subject: Option<&Digest>,
    ) -> io::Result<bool> {
        for tag in self.tags(name).await? {
            if self.tagged(name, &tag).await?.as_ref() == Some(digest) {
                self.remove_tag(name, &tag).await?;
            }
        }
        if let Some(subject) = subject {
            let path = self.referrers(name, subject).join(digest.hex());
            removed(tokio::fs::remove_file(path).await)?;
        }
        removed(tokio::fs::remove_file(self.manifest(name, digest)).await)
    }

    pub(super) async fn tags(&self, name: &Name) -> io::Result<BTreeSet<Tag>> {
        let names = names(self.repository(name).join(TAGS)).await?;
        Ok(names.iter().filter_map(|name| Tag::parse(name).ok()).collect())
    }

    pub(super) async fn digests(&self, folder: PathBuf) -> io::Result<Vec<Digest>> {
        let names = names(folder).await?;
        Ok(names.iter().filter_map(|hex| format!("sha256:{hex}").parse().ok()).collect())
    }

    /// All that have a manifest, by their names.
    pub(super) async fn all(&self) -> io::Result<BTreeSet<Name>> {
        let root = self.repositories();
        blocking(move || {
            let mut found = BTreeSet::new();
            walk(&root, "", &mut found)?;
            Ok(found)
        })
        .await
    }
}

fn walk(place: &Path, name: &str, into: &mut BTreeSet<Name>) -> io::Result<()> {
    for child in fs::read_dir(place)? {
        let child = child?;
        let Ok(element) = child.file_name().into_string() else { continue };
        if element == MANIFESTS {
            let has_some = fs::read_dir(child.path())?.next().is_some();
            into.extend(Some(name).filter(|_| has_some).and_then(|name| Name::parse(name).ok()));
        } else if !element.starts_with('_') && child.file_type()?.is_dir() {
            let name = if name.is_empty() { element } else { format!("{name}/{element}") };
            walk(&child.path(), &name, into)?;
        }
    }
    Ok(())
}

async fn names(folder: PathBuf) -> io::Result<Vec<String>> {
    blocking(move || {
        let Some(children) = found(fs::read_dir(folder))? else { return Ok(Vec::new()) };
        let name = |child: io::Result<fs::DirEntry>| Ok(child?.file_name().into_string().ok());
        children.filter_map(|child| name(child).transpose()).collect()
    })
    .await
}

/// What is not there is no failure.
pub(super) fn found<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn removed(outcome: io::Result<()>) -> io::Result<bool> {
    found(outcome).map(|removed| removed.is_some())
}
