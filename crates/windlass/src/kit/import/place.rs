//! Where files are while they come.

use std::{
    fs::{self, File},
    path::PathBuf,
};

use anyhow::Context;
use windlass_kit::lock;

use super::super::{output::Output, session::Session};

/// They stay there if that is cut. One import at a time.
pub(super) struct Place {
    folder: PathBuf,
    _lock: File,
}

impl Place {
    pub(super) fn new(session: &Session, repository: &str, commit: &str) -> anyhow::Result<Self> {
        let folder = session.home().join("windlass/import").join(format!("{repository}@{commit}"));
        let lock = lock::wait(&folder.join("lock"));
        let lock = lock.with_context(|| format!("cannot use {}", folder.display()))?;
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    /// What was imported is imported, whatever stays behind.
    pub(super) fn clear(self, out: &Output) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            out.warn(format!("cannot remove {}: {error}", self.folder.display()));
        }
    }
}
