//! The program as a process.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use rustix::process::{Pid, Resource, Rlimit, Signal, geteuid, kill_process, prlimit};
use tempfile::TempDir;

use crate::{
    terminal::Terminal,
    wait::{self, DEADLINE},
};

/// How the last line begins that it says when it is up.
const LAST: &str = "Ctrl-C or ";

/// A home of its own for every test, so that none touches the user's.
pub(crate) struct World {
    folder: TempDir,
}

/// What a command that ended has said.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "tmp"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the state is if nobody says otherwise.
    pub(crate) fn usual_dir(&self) -> PathBuf {
        self.path("home/.local/state/windlass")
    }

    fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = self.in_world(Command::new(env!("CARGO_BIN_EXE_windlass")));
        command.args(arguments);
        command
    }

    fn in_world(&self, mut command: Command) -> Command {
        command
            .env_remove("XDG_STATE_HOME")
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null());
        command
    }

    /// To its end, which is near.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Said {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Until it says that it is up.
    pub(crate) fn up<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Up {
        let mut command = self.command(&["up"]);
        command.args(arguments);
        self.start(command)
    }

    /// The same, where no file can be larger than this. To the program it is as if the disk were full.
    pub(crate) fn up_within(&self, kibibytes: u64) -> Up {
        let program = env!("CARGO_BIN_EXE_windlass");
        let script = format!("trap '' XFSZ; ulimit -S -f {kibibytes}; exec {program} up");
        let mut command = self.in_world(Command::new("bash"));
        command.args(["-c", &script]);
        self.start(command)
    }

    /// The same, where the process may have this many files open unless it asks for more.
    pub(crate) fn up_with_open_files(&self, most: u32) -> Up {
        let program = env!("CARGO_BIN_EXE_windlass");
        let mut command = self.in_world(Command::new("bash"));
        command.args(["-c", &format!("ulimit -S -n {most}; exec {program} up")]);
        self.start(command)
    }

    /// The same on a disk of this many mebibytes that nobody else sees, and where we can: says aloud if
    /// the system does not let us have one.
    pub(crate) fn up_on_disk(&self, size: u32, arguments: &[&str]) -> Option<(Up, PathBuf)> {
        let dir = self.path("disk");
        fs::create_dir(&dir).unwrap();
        let disk = format!("mount -t tmpfs -o size={size}m,mode=700 small '{}'", dir.display());
        let mut command = self.among(&disk)?;
        command.args(["up", "--dir"]).arg(&dir).args(arguments);
        let up = self.start(command);
        let seen = format!("/proc/{}/root{}", up.id(), dir.display());
        Some((up, seen.into()))
    }

    /// The same, where these commands have changed what is mounted, for nobody else: says aloud if the
    /// system does not let us do so.
    pub(crate) fn up_among(&self, mounts: &str, arguments: &[&str]) -> Option<Up> {
        let mut command = self.among(mounts)?;
        command.arg("up").args(arguments);
        Some(self.start(command))
    }

    fn among(&self, mounts: &str) -> Option<Command> {
        let command = |program: &str| {
            let mut command = self.in_world(Command::new("unshare"));
            command.arg("--mount");
            if !geteuid().is_root() {
                command.arg("--map-root-user");
            }
            command.args(["--", "sh", "-c", &format!("{mounts} && exec \"$0\" \"$@\"")]);
            command.arg(program);
            command
        };
        if !command("true").output().is_ok_and(|done| done.status.success()) {
            eprintln!("skipped: this system lets us mount nothing of our own (unshare, mount)");
            return None;
        }
        Some(command(env!("CARGO_BIN_EXE_windlass")))
    }

    /// The same, started by somebody who does not want to know of the ends of children.
    pub(crate) fn up_unaware(&self, arguments: &[&str]) -> Up {
        let mut command = self.in_world(Command::new("env"));
        command
            .args(["--ignore-signal=CHLD", env!("CARGO_BIN_EXE_windlass"), "up"])
            .args(arguments);
        self.start(command)
    }

    /// The same, with standard error on a terminal.
    pub(crate) fn up_on(
        &self,
        terminal: &Terminal,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Up {
        let mut command = self.command(&["up"]);
        command.args(arguments).env("TERM", "xterm").env_remove("NO_COLOR");
        command.envs(variables.iter().copied());
        self.start_on(command, terminal.line())
    }

    fn start(&self, command: Command) -> Up {
        let log = File::create(self.path("log")).unwrap();
        self.start_on(command, log)
    }

    fn start_on(&self, mut command: Command, err: File) -> Up {
        let log = self.path("log");
        let mut child = command.stdout(Stdio::piped()).stderr(err).spawn().unwrap();
        let lines = follow(child.stdout.take().unwrap());
        let mut up = Up { child, log, said: Vec::new() };
        while !up.said.last().is_some_and(|line| line.starts_with(LAST)) {
            match lines.recv_timeout(DEADLINE) {
                Ok(line) => up.said.push(line),
                Err(_) => panic!("it is not up: {:?}; log: {}", up.said, up.log()),
            }
        }
        up
    }
}

fn follow(out: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
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

/// A running `windlass up`, killed when dropped.
pub(crate) struct Up {
    child: Child,
    log: PathBuf,
    /// The lines on standard output.
    pub(crate) said: Vec<String>,
}

impl Up {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        let named = self.said.iter().find_map(|line| line.strip_prefix("export KUBECONFIG="));
        named.unwrap_or_else(|| panic!("no kubeconfig: {:?}", self.said)).into()
    }

    pub(crate) async fn client(&self) -> Client {
        let file = self.kubeconfig();
        // On a disk of its own it is seen only through the process.
        let within = format!("/proc/{}/root{}", self.id(), file.display());
        let file = if file.exists() { file } else { within.into() };
        client(&file, |_| {}).await
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        assert_eq!(self.child.wait().unwrap().signal(), Some(9));
    }

    /// There is room again.
    pub(crate) fn unlimited(&self) {
        let limits = Rlimit { current: None, maximum: None };
        prlimit(Some(Pid::from_child(&self.child)), Resource::Fsize, limits).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn terminate(mut self) {
        self.signal(Signal::TERM);
        assert!(self.wait().success(), "{}", self.log());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let log = self.log.clone();
        let ask = || self.child.try_wait().unwrap().ok_or(&log);
        wait::blocking("end of it", ask)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) async fn client(kubeconfig: &Path, change: impl FnOnce(&mut Config)) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(file, &options).await.unwrap();
    change(&mut config);
    Client::try_from(config).unwrap()
}
