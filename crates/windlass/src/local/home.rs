//! The directory of a local cluster: where it is, and that it is used by one process at a time.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{self, Path, PathBuf},
};

use anyhow::Context;
use clap::Args;
use rustix::process::geteuid;
use tempfile::TempDir;
use windlass_local::{auth::private_dir, directories::remove_all};

use super::{
    lock::{self, Holder, Lock},
    shell, sweep,
};
use crate::exit::BadInput;

/// Of the names of temporary directories.
pub(super) const PREFIX: &str = "windlass-";

#[derive(Debug, Clone, Args)]
#[group(id = "home")]
pub(super) struct Flags {
    /// Directory of the cluster's state; `windlass` in $XDG_STATE_HOME or ~/.local/state if not given
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Flags {
    pub(super) fn path(&self) -> anyhow::Result<PathBuf> {
        let path = match &self.dir {
            Some(path) => path.clone(),
            None => usual(|name| env::var_os(name))?,
        };
        path::absolute(&path).with_context(|| format!("cannot use {}", path.display()))
    }

    pub(super) fn is_usual(&self) -> bool {
        self.dir.is_none()
    }

    /// The command that ends what runs there.
    fn down(&self) -> anyhow::Result<String> {
        Ok(if self.is_usual() { "windlass down".to_owned() } else { down(&self.path()?) })
    }
}

/// The directories of ephemeral clusters of this user that run now.
pub(super) fn ephemeral() -> Vec<(PathBuf, Holder)> {
    let entries = fs::read_dir(env::temp_dir()).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let user = geteuid().as_raw();
    let own = named.filter(|entry| entry.metadata().is_ok_and(|meta| meta.uid() == user));
    // What cannot be looked into is none of them.
    let held = own.filter_map(|entry| Some((entry.path(), lock::holder(&entry.path()).ok()??)));
    held.collect()
}

pub(super) fn down(path: &Path) -> String {
    format!("windlass down --dir {}", shell::word(path))
}

fn usual(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, BadInput> {
    // Relative paths do not count, by the XDG base directory specification.
    let set = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    let nowhere = "cannot tell where to keep the state: neither XDG_STATE_HOME nor HOME is set; \
                   use --dir";
    Ok(state.ok_or_else(|| BadInput(nowhere.to_owned()))?.join("windlass"))
}

/// A directory that only this process uses.
pub(super) struct Home {
    path: PathBuf,
    /// The command that ends this process.
    pub(super) down: String,
    temporary: Option<TempDir>,
    // Last, so that the directory is gone or complete before anybody else may have it.
    _lock: Lock,
}

impl Home {
    pub(super) fn open(flags: &Flags) -> anyhow::Result<Self> {
        let path = flags.path()?;
        private_dir(&path).context("cannot keep the state")?;
        Self::locked(path, flags.down()?, None)
    }

    /// Nothing is left of it at the end.
    pub(super) fn ephemeral() -> anyhow::Result<Self> {
        sweep::sweep(&env::temp_dir());
        let temporary = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()
            .context("cannot make a temporary directory")?;
        let path = path::absolute(temporary.path())?;
        let down = down(&path);
        let home = Self::locked(path, down, Some(temporary))?;
        // Only now: what is marked and has no holder was left behind.
        sweep::mark(home.path())
            .with_context(|| format!("cannot use {}", home.path().display()))?;
        Ok(home)
    }

    fn locked(path: PathBuf, down: String, temporary: Option<TempDir>) -> anyhow::Result<Self> {
        match Lock::take(&path)? {
            Ok(lock) => Ok(Self { path, down, temporary, _lock: lock }),
            Err(Holder { process }) => {
                let process =
                    process.map_or_else(String::new, |process| format!(" as process {process}"));
                anyhow::bail!(
                    "windlass is already up on {}{process}; `{down}` ends it",
                    path.display()
                )
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_ephemeral(&self) -> bool {
        self.temporary.is_some()
    }

    pub(super) fn store(&self) -> PathBuf {
        self.path.join("store.redb")
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.path.join("kubeconfig")
    }

    /// Blobs and manifests of its registry.
    pub(super) fn registry(&self) -> PathBuf {
        self.path.join("registry")
    }

    pub(super) fn close(self) -> anyhow::Result<()> {
        let Self { path, temporary, _lock, .. } = self;
        // Pods may have taken the rights from directories of theirs.
        let removed = temporary.map_or(Ok(()), |temporary| remove_all(&temporary.keep()));
        removed.with_context(|| format!("cannot remove {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_where_the_xdg_specification_has_it() {
        for (state, home, want) in [
            (Some("/s"), Some("/h"), Some("/s/windlass")),
            (None, Some("/h"), Some("/h/.local/state/windlass")),
            (Some("relative"), Some("/h"), Some("/h/.local/state/windlass")),
            (Some(""), None, None),
            (None, None, None),
        ] {
            let variable = |name: &str| {
                let value = if name == "HOME" { home } else { state };
                value.map(OsString::from)
            };
            let got = usual(variable).ok();
            assert_eq!(got, want.map(PathBuf::from), "{state:?} {home:?}");
        }
    }
}
