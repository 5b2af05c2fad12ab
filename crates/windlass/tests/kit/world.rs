//! A home of its own for every test, and the program under the name of the original.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(crate) const KITFILE: &str = "\
manifestVersion: 1.0.0
package:
  name: tiny
  version: 0.1.0
  authors: ['A <a@example.com>']
model:
  name: tiny
  path: model.safetensors
  framework: pytorch
  parameters: {temp: 0.5, big: 1e21, hex: 0xFF, list: [b, a]}
  parts:
    - path: config.json
code:
  - path: run.py
datasets:
  - name: conf
    path: conf
docs:
  - path: docs
  - path: README.md
    description: Readme file
";
pub(crate) const FILES: [(&str, &str); 6] = [
    ("model.safetensors", "weights-0123456789\n"),
    ("config.json", "{\"a\":1}\n"),
    ("README.md", "# Readme\n"),
    ("run.py", "print(1)\n"),
    ("conf/a.yaml", "x\n"),
    ("docs/guide.md", "doc\n"),
];
/// Of these files, as the formats say.
pub(crate) const MODEL_KIT: &str =
    "sha256:baa19e77c5b2dcec5e0f2acbdbf239840f518e6fd414c57156d010542e46ff3a";
pub(crate) const MODEL_PACK: &str =
    "sha256:f46058017c4a5d72c2e2c9a26d754a7279f34c3365ae644d2ecd8ede6862a251";

pub(crate) struct World {
    folder: TempDir,
}

/// What a command that ended has said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// It went well.
    #[track_caller]
    pub(crate) fn well(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    #[track_caller]
    pub(crate) fn refused(&self, code: i32, text: &str) {
        assert!(self.code == Some(code) && self.err.contains(text), "{code} {text:?} {self:?}");
        assert!(self.err.lines().any(|line| line.starts_with("[ERROR] ")), "{self:?}");
    }

    /// As whoever calls the original finds it.
    pub(crate) fn last_digest(&self) -> String {
        let all = format!("{}{}", self.out, self.err);
        let at = all.rfind("sha256:").unwrap();
        all[at..].chars().take(71).collect()
    }
}

impl World {
    /// With the model in `model`.
    pub(crate) fn new() -> Self {
        Self::within(tempfile::tempdir().unwrap())
    }

    /// On no disk, where the system has room for that: for so many files that a disk is too slow.
    pub(crate) fn in_memory() -> Self {
        let place = Path::new("/dev/shm");
        let room = rustix::fs::statvfs(place).map_or(0, |found| found.f_bavail * found.f_frsize);
        Self::within(match room > 4 << 30 {
            true => tempfile::tempdir_in(place).unwrap(),
            false => tempfile::tempdir().unwrap(),
        })
    }

    fn within(folder: TempDir) -> Self {
        symlink(env!("CARGO_BIN_EXE_windlass"), folder.path().join("kit")).unwrap();
        let world = Self { folder };
        for (name, text) in FILES {
            world.write(&format!("model/{name}"), text.as_bytes());
        }
        world.write("model/Kitfile", KITFILE.as_bytes());
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// With modes that do not depend on who runs the tests.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        let parent = path.parent().unwrap();
        fs::create_dir_all(parent).unwrap();
        fs::set_permissions(parent, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(self.path("kit"));
        for name in ["HF_TOKEN", "HF_ENDPOINT", "HF_HOME", "DOCKER_CONFIG", "SOURCE_DATE_EPOCH"] {
            command.env_remove(name);
        }
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("HOME", self.path("home"))
            .env("KITOPS_HOME", self.path("kitops"))
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn kit<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Said {
        said(self.command(arguments))
    }

    /// Whoever gets it has to end it.
    pub(crate) fn begin<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Running {
        Running::new(self.command(arguments))
    }

    /// Names and content of all files in a folder, without the Kitfile.
    pub(crate) fn files(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        let (mut found, root) = (BTreeMap::new(), self.path(name));
        walk(&root, &root, &mut found);
        found.remove("Kitfile");
        found
    }
}

pub(crate) fn said(mut command: Command) -> Said {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for child in fs::read_dir(folder).unwrap() {
        let path = child.unwrap().path();
        if path.is_dir() {
            walk(root, &path, found);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.insert(name, fs::read(&path).unwrap());
        }
    }
}

/// A command in the middle of its work.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Its code, once it has ended.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.0.try_wait().unwrap().map(|status| status.code().unwrap())
    }

    pub(crate) fn new(mut command: Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Told to end. Its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        self.0.wait().unwrap().code()
    }

    /// What it has taken of memory at most, in bytes.
    pub(crate) fn most_memory(&self) -> u64 {
        self.memory().unwrap()
    }

    /// Nothing once it has ended.
    pub(crate) fn memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10)
    }

    /// As the kernel does it: nothing is tidied up.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
