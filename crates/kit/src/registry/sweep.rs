//! Blobs that no manifest leads to, and uploads that nobody ends.

use std::{
    collections::BTreeSet,
    fs, io,
    path::Path,
    time::{Duration, SystemTime},
};

use super::{
    disk::{Disk, blocking, found, removed},
    manifests::Links,
    route::Id,
    uploads::Uploads,
};
use crate::{Digest, whole};

const UPLOAD: Duration = Duration::from_secs(24 * 60 * 60);

/// What a sweep has removed, or would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub blobs: u64,
    pub uploads: u64,
    pub bytes: u64,
}

pub(super) async fn run(
    disk: &Disk,
    uploads: &Uploads,
    now: SystemTime,
    age: Duration,
    dry_run: bool,
) -> io::Result<Swept> {
    let _alone = disk.storing.write().await;
    // Otherwise what is removed would go on to take room until the end.
    uploads.forget_idle();
    let used = mark(disk).await?;
    let (blobs, uploads) = (disk.blobs(), disk.uploads());
    blocking(move || {
        let mut swept = Swept::default();
        for folder in folders(&blobs)? {
            // Files of others are left alone.
            let is_stray = |name: &str| match format!("sha256:{name}").parse::<Digest>() {
                Ok(digest) => !used.contains(&digest),
                Err(_) => name.starts_with(whole::PREFIX),
            };
            let (count, bytes) = remove(&folder, now, age, is_stray, dry_run)?;
            swept.blobs += count;
            swept.bytes += bytes;
        }
        let (count, bytes) =
            remove(&uploads, now, UPLOAD, |name| Id::parse(name).is_some(), dry_run)?;
        swept.uploads += count;
        swept.bytes += bytes;
        Ok(swept)
    })
    .await
}

/// Everything that the manifests of all repositories are and name.
async fn mark(disk: &Disk) -> io::Result<BTreeSet<Digest>> {
    let mut used = BTreeSet::new();
    for name in disk.all().await? {
        for digest in disk.digests(disk.manifests(&name)).await? {
            // What cannot be read may name what is needed, so nothing is removed then.
            let bytes = found(tokio::fs::read(disk.blob(&digest)).await)?.unwrap_or_default();
            let links = match bytes.is_empty() {
                true => Links::default(),
                false => Links::parse(&bytes).map_err(io::Error::other)?,
            };
            used.extend(links.blobs().cloned());
            used.insert(digest);
        }
    }
    Ok(used)
}

fn folders(root: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let children = fs::read_dir(root)?.collect::<io::Result<Vec<_>>>()?;
    Ok(children.into_iter().map(|child| child.path()).filter(|path| path.is_dir()).collect())
}

fn remove(
    folder: &Path,
    now: SystemTime,
    age: Duration,
    is_stray: impl Fn(&str) -> bool,
    dry_run: bool,
) -> io::Result<(u64, u64)> {
    let (mut count, mut bytes) = (0, 0);
    for child in fs::read_dir(folder)? {
        let child = child?;
        // It may have gone meanwhile.
        let Some(found) = found(child.metadata())? else { continue };
        let is_old = now.duration_since(found.modified()?).is_ok_and(|since| since >= age);
        let name = child.file_name();
        if !found.is_file() || !is_old || !name.to_str().is_some_and(&is_stray) {
            continue;
        }
        if !dry_run {
            removed(fs::remove_file(child.path()))?;
        }
        count += 1;
        bytes += found.len();
    }
    Ok((count, bytes))
}
