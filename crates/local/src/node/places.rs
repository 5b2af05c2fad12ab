//! Where the files of pods are.

use std::path::{Path, PathBuf};

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
