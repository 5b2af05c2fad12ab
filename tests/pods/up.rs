//! The program as a process, in a home of its own.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown, symlink},
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
};

use kube::Client;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use windlass_tests::{cluster, wait};

/// Who runs it where the tests are run by root: pods that must not be root would not run otherwise,
/// and nobody's laptop works that way.
const NOBODY: u32 = 65534;
/// How the last line begins that it says when it is up.
const LAST: &str = "Ctrl-C or ";

/// A home for one test, so that none touches the user's.
pub(crate) struct World {
    folder: TempDir,
    windlass: PathBuf,
    /// Whom it is run as, if that is somebody else.
    user: Option<u32>,
}

impl World {
    /// With these rules for images, in which `{bin}` is the folder of `stand-in` and `kit`.
    pub(crate) fn new(rules: &str) -> Self {
        Self::of(rules, geteuid().is_root().then_some(NOBODY))
    }

    /// The same, run by whoever runs the tests, and be it root.
    pub(crate) fn of_root(rules: &str) -> Self {
        Self::of(rules, None)
    }

    fn of(rules: &str, user: Option<u32>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["home", "tmp", "state", "bin", "models"] {
            fs::create_dir(at(name)).unwrap();
        }
        let windlass = reachable(&cluster::binary(), &at("bin"));
        let stand_in = reachable(Path::new(env!("CARGO_BIN_EXE_stand-in")), &at("bin"));
        for name in ["stand-in", "kit"] {
            // The first may be there already, as a file.
            let _ = symlink(&stand_in, at("bin").join(name));
        }
        let rules = rules.replace("{bin}", at("bin").to_str().unwrap());
        fs::write(at("state/images.toml"), rules).unwrap();
        fs::set_permissions(at("state"), PermissionsExt::from_mode(0o700)).unwrap();
        if user.is_some() {
            for name in ["", "home", "tmp", "state", "state/images.toml", "models"] {
                chown(at(name), user, user).unwrap();
            }
        }
        Self { folder, windlass, user }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// Until it says that it is up.
    pub(crate) fn up<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Up {
        self.start(Command::new(&self.windlass), arguments)
    }

    /// The same, with these variables.
    pub(crate) fn up_with<S: AsRef<OsStr>>(&self, env: &[(&str, &str)], arguments: &[S]) -> Up {
        let mut command = Command::new(&self.windlass);
        command.envs(env.iter().copied());
        self.start(command, arguments)
    }

    /// The same in a control group.
    pub(crate) fn up_in(&self, group: &Path) -> Up {
        let mut command = Command::new("sh");
        let script = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        command.args(["-c", script]).arg(group).arg(&self.windlass);
        self.start::<&str>(command, &[])
    }

    fn start<S: AsRef<OsStr>>(&self, mut command: Command, arguments: &[S]) -> Up {
        command
            .args(["up", "--dir"])
            .arg(self.state())
            .args(arguments)
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_RUNTIME_DIR")
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let log = self.path("log");
        let errors = File::options().create(true).append(true).open(&log).unwrap();
        let mut child = command.stderr(errors).spawn().unwrap();
        let lines = follow(child.stdout.take().unwrap());
        let mut up =
            Up { child, log, kubeconfig: self.state().join("kubeconfig"), said: Vec::new(), lines };
        while !up.said.last().is_some_and(|line| line.starts_with(LAST)) {
            match up.lines.recv_timeout(wait::DEADLINE) {
                Ok(line) => up.said.push(line),
                Err(_) => {
                    let log = up.log();
                    let ended = up.child.try_wait();
                    let last = log.lines().next_back().unwrap_or_default();
                    panic!("it is not up ({ended:?}): {last}; said: {:?}; log: {log}", up.said);
                }
            }
        }
        up
    }
}

/// A program where `NOBODY` can run it.
fn reachable(program: &Path, bin: &Path) -> PathBuf {
    let is_open = |path: &Path| fs::metadata(path).is_ok_and(|found| found.mode() & 1 == 1);
    if !geteuid().is_root() || program.ancestors().all(is_open) {
        return program.to_owned();
    }
    let copy = bin.join(program.file_name().unwrap());
    // Not by this process: a file that is open for writing anywhere cannot be run, and others of its
    // threads start processes.
    assert!(Command::new("cp").arg(program).arg(&copy).status().unwrap().success());
    copy
}

fn follow(out: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// A running `windlass up`, ended when dropped.
pub(crate) struct Up {
    child: Child,
    log: PathBuf,
    kubeconfig: PathBuf,
    /// The lines of its greeting.
    pub(crate) said: Vec<String>,
    /// What it says later; somebody has to listen.
    lines: mpsc::Receiver<String>,
}

impl Up {
    pub(crate) fn id(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn gateway(&self) -> SocketAddr {
        let address = self.said.iter().find_map(|line| {
            let (_, address) = line.split_once("models answer at http://")?;
            address.split(',').next()?.parse().ok()
        });
        address.unwrap_or_else(|| panic!("no gateway: {:?}", self.said))
    }

    /// As it stands before the names of artifacts.
    pub(crate) fn registry(&self) -> String {
        let said =
            self.said.iter().find_map(|line| line.strip_prefix("the registry is at http://"));
        let address = said.and_then(|said| said.split(',').next());
        address.unwrap_or_else(|| panic!("no registry: {:?}", self.said)).to_owned()
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) async fn client(&self) -> Client {
        cluster::connect(&self.kubeconfig).await
    }

    /// As a power cut would, for it alone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        let ended = self.child.wait().unwrap();
        assert_eq!(ended.signal(), Some(9), "it had ended by itself: {ended}; {}", self.log());
    }

    pub(crate) fn terminate(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let log = self.log.clone();
        let ended = wait::blocking("end of it", || self.child.try_wait().unwrap().ok_or(&log));
        assert!(ended.success(), "{}", self.log());
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // A test that has failed should not leave pods behind either.
        if let Ok(None) = self.child.try_wait() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let _ = self.child.wait();
        }
    }
}
