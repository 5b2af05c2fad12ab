//! Files of a commit, resumed where they were cut.

use std::{
    fs,
    path::{Path, PathBuf},
};

use http::StatusCode;
use percent_encoding::utf8_percent_encode;

use crate::fetch::{Hash, Part, range};

use super::{Asked, ESCAPED, Error, File, Hub, Repository, Sum};

/// Told as it goes.
pub trait Progress: Send + Sync {
    fn received(&self, path: &str, bytes: u64);
    /// They are there from an earlier run.
    fn resumed(&self, path: &str, bytes: u64) {
        self.received(path, bytes);
    }
}

impl Hub {
    /// Into a folder. What is there from an earlier run is not asked for again.
    pub async fn download(
        &self,
        repository: &Repository,
        commit: &str,
        file: &File,
        folder: &Path,
        progress: &dyn Progress,
    ) -> Result<PathBuf, Error> {
        let whole = folder.join(&file.path);
        if fs::metadata(&whole).is_ok_and(|found| found.len() == file.size) {
            progress.resumed(&file.path, file.size);
            return Ok(whole);
        }
        let hash = match file.sum {
            Sum::Sha256(_) => Hash::sha256(),
            Sum::Git(_) => Hash::git(file.size),
        };
        let part = Part::open(folder, &file.path, hash, file.size).await?;
        progress.resumed(&file.path, part.size);
        let is_left_over = part.size > 0;
        let (mut part, pieces) = self.rest(repository, commit, file, part, progress).await?;
        // What came in pieces may have been put together of two files.
        if (is_left_over || pieces > 1) && mismatch(&part, file).is_some() {
            part = part.restart().await?;
            (part, _) = self.rest(repository, commit, file, part, progress).await?;
        }
        match mismatch(&part, file) {
            None => Ok(part.finish(whole).await?),
            Some(error) => {
                part.discard().await?;
                Err(error)
            }
        }
    }

    /// What is missing, and in how many pieces it has come.
    async fn rest(
        &self,
        repository: &Repository,
        commit: &str,
        file: &File,
        mut part: Part,
        progress: &dyn Progress,
    ) -> Result<(Part, u32), Error> {
        let path =
            file.path.split('/').map(|element| utf8_percent_encode(element, ESCAPED).to_string());
        let path = path.collect::<Vec<_>>().join("/");
        let url = self.url(&format!("{}/resolve/{commit}/{path}", repository.files()))?;
        let attempt = format!("read {} of {}", file.path, repository.name);
        let (mut failures, mut pieces) = (0, 0);
        while part.size < file.size {
            let asked = Asked { repository, revision: commit, attempt: &attempt };
            let before = part.size;
            let mut response = self.get(url.clone(), range(part.size), &asked).await?;
            pieces += 1;
            if response.status() != StatusCode::PARTIAL_CONTENT && part.size > 0 {
                // The server knows no ranges.
                part = part.restart().await?;
            }
            let broken = loop {
                match response.chunk().await {
                    Ok(Some(piece)) => {
                        progress.received(&file.path, piece.len() as u64);
                        part = part.append(piece).await?;
                        if part.size > file.size {
                            break None;
                        }
                    }
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            failures = if part.size > before { 0 } else { failures + 1 };
            if failures >= self.attempts {
                let source = broken.map(reqwest::Error::without_url);
                let told = String::new();
                return Err(Error::Failed { attempt, attempts: failures, told, source });
            }
        }
        Ok((part, pieces))
    }
}

/// Nothing if it is what it should be.
fn mismatch(part: &Part, file: &File) -> Option<Error> {
    let (kind, wanted) = match &file.sum {
        Sum::Sha256(sum) => ("SHA-256", sum.clone()),
        Sum::Git(sum) => ("git hash", sum.clone()),
    };
    let of_size =
        (part.size != file.size).then(|| ("size", file.size.to_string(), part.size.to_string()));
    let of_sum = || Some((kind, wanted, part.sum())).filter(|(_, wanted, is)| wanted != is);
    let (kind, wanted, is) = of_size.or_else(of_sum)?;
    Some(Error::Mismatch { path: file.path.clone(), kind, wanted, is })
}
