//! Where the files of pods are.

use std::{
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

/// The directories of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Kept across starts.
    pub state: PathBuf,
    /// In memory where the system has such a place, else inside `state`. For secrets.
    pub runtime: PathBuf,
}

/// A name that might lead elsewhere. The API lets none through.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot name a directory")]
pub struct Unsafe(pub String);

impl Places {
    /// `user` is the user's own directory for a session, if the system has one. It is taken if it is
    /// in memory and closed to others.
    pub fn choose(state: &Path, user: Option<&Path>) -> Self {
        let fits = |dir: &&Path| is_closed(dir) && is_in_memory(dir);
        let runtime = match user.filter(fits) {
            // Several states may be in use at once.
            Some(dir) => dir.join(format!("windlass-{}", short_sum(state))),
            None => state.join("run"),
        };
        Self { state: state.to_owned(), runtime }
    }

    /// The user's rules for images.
    pub fn images(&self) -> PathBuf {
        self.state.join("images.toml")
    }

    /// All pods' directories, one by uid each.
    pub fn pods(&self) -> PathBuf {
        self.state.join("pods")
    }

    pub fn pod(&self, uid: &str) -> Result<PathBuf, Unsafe> {
        Ok(self.pods().join(plain(uid)?))
    }

    /// All pods' directories for secrets, one by uid each.
    pub fn private_pods(&self) -> PathBuf {
        self.runtime.join("pods")
    }

    /// What is gone when the machine is switched off, if the system can do that.
    pub fn private_pod(&self, uid: &str) -> Result<PathBuf, Unsafe> {
        Ok(self.private_pods().join(plain(uid)?))
    }

    /// The current directory of processes that name none, their `HOME` and `TMPDIR`.
    pub fn scratch(&self, uid: &str) -> Result<PathBuf, Unsafe> {
        Ok(self.pod(uid)?.join("scratch"))
    }

    /// The same for processes of another user.
    pub fn scratch_of(&self, uid: &str, user: u32) -> Result<PathBuf, Unsafe> {
        Ok(self.pod(uid)?.join(format!("scratch-{user}")))
    }

    /// The logs of a container, one file or two for each run.
    pub fn logs(&self, uid: &str, container: &str) -> Result<PathBuf, Unsafe> {
        Ok(self.pod(uid)?.join("logs").join(plain(container)?))
    }

    /// Where a container leaves its last words.
    pub fn last_words(&self, uid: &str, container: &str) -> Result<PathBuf, Unsafe> {
        Ok(self.logs(uid, container)?.join("termination-log"))
    }

    /// By which the pod's processes find the API.
    pub fn kubeconfig(&self, uid: &str) -> Result<PathBuf, Unsafe> {
        Ok(self.private_pod(uid)?.join("kubeconfig"))
    }

    /// The directory of a persistent volume that the node itself keeps.
    pub fn persistent(&self, volume: &str) -> Result<PathBuf, Unsafe> {
        Ok(self.state.join("volumes").join(plain(volume)?))
    }
}

fn is_closed(dir: &Path) -> bool {
    let found = fs::symlink_metadata(dir);
    let own = rustix::process::geteuid().as_raw();
    found.is_ok_and(|found| {
        found.is_dir() && found.permissions().mode() & 0o077 == 0 && found.uid() == own
    })
}

#[cfg(target_os = "linux")]
fn is_in_memory(dir: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    rustix::fs::statfs(dir).is_ok_and(|found| u64::try_from(found.f_type) == Ok(TMPFS))
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_: &Path) -> bool {
    false
}

fn short_sum(path: &Path) -> String {
    let sum = Sha256::digest(path.as_os_str().as_bytes());
    sum.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// Letters, digits, dots and dashes that do not start with a dot: one element of a path that goes
/// nowhere but down.
pub(crate) fn plain(name: &str) -> Result<&Path, Unsafe> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let fine =
        !name.is_empty() && name.len() <= 253 && !name.starts_with('.') && name.bytes().all(known);
    if fine { Ok(Path::new(name)) } else { Err(Unsafe(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_kept_in_memory_where_nobody_else_looks() {
        let state = Path::new("/state");
        let inside = PathBuf::from("/state/run");
        assert_eq!(Places::choose(state, None).runtime, inside);
        assert_eq!(Places::choose(state, Some(Path::new("/nowhere"))).runtime, inside);
        // Not every system has it.
        let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return };
        if !is_in_memory(dir.path()) {
            return;
        }
        let closed = |mode| fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode));
        closed(0o755).unwrap();
        assert_eq!(Places::choose(state, Some(dir.path())).runtime, inside);
        closed(0o700).unwrap();
        let one = Places::choose(state, Some(dir.path())).runtime;
        let other = Places::choose(Path::new("/other"), Some(dir.path())).runtime;
        assert!(one.starts_with(dir.path()) && other.starts_with(dir.path()) && one != other);
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_directories() {
        for (name, fine) in [
            ("0b9c6d1e-8f0e-4a56-b3c0-1f5b8b1c7a10", true),
            ("c", true),
            ("pvc-1.x", true),
            ("", false),
            (".", false),
            ("..", false),
            ("../x", false),
            ("a/b", false),
            ("/a", false),
            ("a\0b", false),
            (".hidden", false),
            ("ä", false),
        ] {
            assert_eq!(plain(name).is_ok(), fine, "{name:?}");
        }
        assert!(plain(&"a".repeat(300)).is_err());
    }
}
