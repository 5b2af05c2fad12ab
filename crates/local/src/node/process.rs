//! One run of a container: a child process that leads a group of its own.
//!
//! However the run ends, by itself, by a signal or because nobody holds it any more, the whole group
//! is killed, and so is everything that carries its token.

use std::{
    collections::BTreeMap,
    io,
    os::{
        fd::OwnedFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    net::unix::pipe,
    sync::oneshot,
    time::timeout,
};

use super::{
    processes::{self, MARK},
    record::Identity,
    users::User,
};

/// A waiter does next to nothing.
const STACK: usize = 64 * 1024;
/// What is kept of the output of a command that is not a container.
const OUTPUT: u64 = 10 * 1024;
const NOT_STARTED: &str = "the waiting thread has ended";

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// All of it: nothing is inherited.
    pub env: BTreeMap<String, String>,
    pub dir: PathBuf,
    /// `None` for whoever runs the node.
    pub user: Option<User>,
}

/// A run in its course.
pub struct Running {
    pub process: Process,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// The exit code, once it has ended.
    pub end: oneshot::Receiver<i32>,
}

/// The hold on a run. Letting go of it ends the run.
pub struct Process {
    /// None as soon as the number may stand for another process.
    pid: Arc<Mutex<Option<Pid>>>,
    pub identity: Option<Identity>,
}

impl Process {
    /// Asks the main process to end.
    pub fn terminate(&self) {
        let _ = self.hold(|pid| kill_process(pid, Signal::TERM));
    }

    /// Ends the whole group.
    pub fn kill(&self) {
        let _ = self.hold(|pid| kill_process_group(pid, Signal::KILL));
    }

    /// Does something with the number of the process, which is that of no other meanwhile. One that
    /// has gone needs nothing.
    pub fn hold<T>(&self, act: impl FnOnce(Pid) -> T) -> Option<T> {
        let pid = self.pid.lock().unwrap_or_else(PoisonError::into_inner);
        pid.map(act)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a container's process, which carries the token.
pub fn start(launch: &Launch, token: &str) -> io::Result<Running> {
    start_with(launch, token.to_owned(), processes::end_marked)
}

/// `after` is told the token when the process and its group have ended.
fn start_with(launch: &Launch, token: String, after: fn(&str)) -> io::Result<Running> {
    let mut command = Command::new(&launch.program);
    if let Some(User { uid, gid }) = launch.user {
        // With this all other groups of ours are given up, too.
        command.uid(uid).gid(gid);
    }
    let mut child = command
        .args(&launch.args)
        .env_clear()
        .envs(&launch.env)
        .env(MARK, &token)
        .current_dir(&launch.dir)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let raw = i32::try_from(child.id()).map_err(io::Error::other)?;
    let id = Pid::from_raw(raw);
    let identity = processes::identify(raw);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
        return Err(io::Error::other("a child without its pipes"));
    };
    let pid = Arc::new(Mutex::new(id));
    // From here on the group is killed on every way out.
    let process = Process { pid: pid.clone(), identity };
    let (tell, end) = oneshot::channel();
    let waiter = thread::Builder::new().name("run".into()).stack_size(STACK);
    waiter.spawn(move || {
        let code = wait(child, &pid);
        after(&token);
        // Nobody listens if the node has stopped, and then nobody has to know.
        let _ = tell.send(code);
    })?;
    Ok(Running { process, stdout: stdout.into(), stderr: stderr.into(), end })
}

/// Waits for the main process and takes the rest of its group along, while nobody else can have
/// the number of the group.
fn wait(mut child: Child, pid: &Mutex<Option<Pid>>) -> i32 {
    let id = *pid.lock().unwrap_or_else(PoisonError::into_inner);
    let is_there = id.is_some_and(has_ended);
    let mut pid = pid.lock().unwrap_or_else(PoisonError::into_inner);
    // Without a child to wait for, the number may be somebody else's by now.
    if let Some(id) = pid.take().filter(|_| is_there) {
        let _ = kill_process_group(id, Signal::KILL);
    }
    match child.wait() {
        Ok(status) => {
            let signal = status.signal().map(|signal| 128 + signal);
            status.code().or(signal).unwrap_or(255)
        }
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "cannot wait for a child");
            255
        }
    }
}

/// Comes back when the child has ended, and leaves it as it is. False if it is no child any more.
fn has_ended(id: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(id), options) {
            Err(rustix::io::Errno::INTR) => {}
            waited => return waited.is_ok(),
        }
    }
}

/// Why a program could not be started, in the words a container runtime has for it.
pub fn explain(program: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if program.contains('/') => {
            format!("exec: {program:?}: stat {program}: no such file or directory")
        }
        io::ErrorKind::NotFound => format!("exec: {program:?}: executable file not found in $PATH"),
        io::ErrorKind::PermissionDenied => format!("exec: {program:?}: permission denied"),
        _ => format!("exec: {program:?}: {error}"),
    }
}

/// What came of a command beside a container.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Done {
        code: i32,
        output: String,
    },
    /// It was killed.
    TooLong,
    NotStarted(String),
}

/// Runs a command to its end, or ends it when the time is over. Its output is read together. What
/// leaves its group ends with the container.
pub async fn run(launch: &Launch, token: &str, limit: Duration) -> Outcome {
    let program = launch.program.display().to_string();
    let running = match start_with(launch, format!("{token}.1"), |_| ()) {
        Ok(running) => running,
        Err(error) => return Outcome::NotStarted(explain(&program, &error)),
    };
    let Running { process, stdout, stderr, end } = running;
    let result = timeout(limit, async {
        let (code, out, err) = tokio::join!(end, read(stdout), read(stderr));
        (code, out + &err)
    })
    .await;
    drop(process);
    match result {
        Ok((Ok(code), output)) => Outcome::Done { code, output },
        Ok((Err(_), _)) => Outcome::NotStarted(NOT_STARTED.to_owned()),
        Err(_) => Outcome::TooLong,
    }
}

/// The first of what comes through a pipe. The rest is read too, so that nobody waits for it.
async fn read(pipe: OwnedFd) -> String {
    let Ok(mut pipe) = pipe::Receiver::from_owned_fd(pipe) else { return String::new() };
    let mut kept = Vec::new();
    let _ = (&mut pipe).take(OUTPUT).read_to_end(&mut kept).await;
    drain(pipe).await;
    String::from_utf8_lossy(&kept).into_owned()
}

async fn drain(mut pipe: impl AsyncRead + Unpin) {
    let mut rest = [0; 1024];
    while let Ok(1..) = pipe.read(&mut rest).await {}
}
