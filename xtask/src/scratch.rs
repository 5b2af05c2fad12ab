//! A folder for one run of a command.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::workspace::target_folder;

/// Everything of one run; gone with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// In the target folder, named after the command and this process.
    pub(crate) fn new(command: &str) -> Result<Folder> {
        let path = target_folder()?.join(format!("{command}-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Folder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("xtask: cannot remove {}: {error}", self.0.display());
        }
    }
}
