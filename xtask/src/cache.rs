//! Where things that are built once live: outside the checkout, shared by all checkouts of a user.

use std::{
    env,
    fs::{self, File},
    path::PathBuf,
};

use anyhow::{Context, Result};

/// The cache folder: `WINDLASS_CACHE`, else the user's cache folder. It need not exist yet.
pub fn dir() -> Result<PathBuf> {
    let from = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    from("WINDLASS_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|cache| cache.join("windlass")))
        .or_else(|| from("HOME").map(|home| home.join(".cache/windlass")))
        .context("cannot place the cache folder: set WINDLASS_CACHE")
}

/// Holds a named lock of the cache until dropped, so that two commands do not build the same thing.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock. The operating system frees it when the holder dies.
    pub fn take(name: &str) -> Result<Lock> {
        let cache = dir()?;
        fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
        let path = cache.join(format!("{name}.lock"));
        let file =
            File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        if file.try_lock().is_err() {
            eprintln!("xtask: another command holds {}; waiting for it", path.display());
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        }
        Ok(Lock { _file: file })
    }
}
