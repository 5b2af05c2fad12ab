//! One run of a container: a child process that leads a group of its own.
//!
//! However the run ends, by itself, by a signal or because nobody holds it any more, the whole group
//! is killed, and so is everything that carries its mark. What commands beside it leave behind is
//! killed then, too.

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
    sync::{oneshot, watch},
    time::timeout,
};

use super::{bubblewrap, mark::Mark, processes, record::Identity, users::User};

/// A waiter does next to nothing.
const STACK: usize = 64 * 1024;
/// What is kept of the output of a command that is not a container.
const OUTPUT: usize = 10 * 1024;
/// Output may still be on its way when a command has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
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
    in_sandbox: bool,
}

impl Process {
    /// Asks the main process to end. A sandbox would not pass it on, and end at once.
    pub fn terminate(&self) {
        self.hold(|pid| {
            if !(self.in_sandbox && processes::terminate_inside(pid.as_raw_pid())) {
                let _ = kill_process(pid, Signal::TERM);
            }
        });
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
    start_with(launch, token.to_owned(), After::EndAll)
}

/// What becomes of those that a process leaves behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// They end: its group, and everything that carries its mark.
    EndAll,
    /// They go on, unless the process itself is ended.
    Leave,
}

fn start_with(launch: &Launch, token: String, after: After) -> io::Result<Running> {
    let mut command = Command::new(&launch.program);
    if let Some(User { uid, gid }) = launch.user {
        // With this all other groups of ours are given up, too.
        command.uid(uid).gid(gid);
    }
    command
        .args(&launch.args)
        .env_clear()
        .envs(&launch.env)
        .current_dir(&launch.dir)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = Mark::of(&token).spawn(&mut command)?;
    let raw = i32::try_from(child.id()).map_err(io::Error::other)?;
    let id = Pid::from_raw(raw);
    let identity = processes::identify(raw);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
        return Err(io::Error::other("a child without its pipes"));
    };
    let pid = Arc::new(Mutex::new(id));
    // From here on the group is killed on every way out.
    let in_sandbox = bubblewrap::is_sandbox(&launch.program);
    let process = Process { pid: pid.clone(), identity, in_sandbox };
    let (tell, end) = oneshot::channel();
    let waiter = thread::Builder::new().name("run".into()).stack_size(STACK);
    waiter.spawn(move || {
        let code = wait(child, &pid, after);
        if after == After::EndAll {
            processes::end_marked(&token);
        }
        // Nobody listens if the node has stopped, and then nobody has to know.
        let _ = tell.send(code);
    })?;
    Ok(Running { process, stdout: stdout.into(), stderr: stderr.into(), end })
}

/// Waits for the main process and may take the rest of its group along, while nobody else can have
/// the number of the group.
fn wait(mut child: Child, pid: &Mutex<Option<Pid>>, after: After) -> i32 {
    let id = *pid.lock().unwrap_or_else(PoisonError::into_inner);
    let is_there = id.is_some_and(has_ended);
    let mut pid = pid.lock().unwrap_or_else(PoisonError::into_inner);
    // Without a child to wait for, the number may be somebody else's by now.
    if let Some(id) = pid.take().filter(|_| is_there && after == After::EndAll) {
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

/// Runs a command to its end, or ends it and its group when the time is over. Its output is read
/// together. What it leaves behind ends with the container.
pub async fn run(launch: &Launch, token: &str, limit: Duration) -> Outcome {
    let program = launch.program.display().to_string();
    let running = match start_with(launch, format!("{token}.1"), After::Leave) {
        Ok(running) => running,
        Err(error) => return Outcome::NotStarted(explain(&program, &error)),
    };
    let Running { process, stdout, stderr, end } = running;
    let (out, err) = (Output::of(stdout), Output::of(stderr));
    let result = timeout(limit, end).await;
    if result.is_ok() {
        // What it leaves behind may keep them open, and may go on writing.
        let _ = timeout(LAST_OUTPUT, async { tokio::join!(out.ended(), err.ended()) }).await;
    }
    drop(process);
    match result {
        Ok(Ok(code)) => Outcome::Done { code, output: out.text() + &err.text() },
        Ok(Err(_)) => Outcome::NotStarted(NOT_STARTED.to_owned()),
        Err(_) => Outcome::TooLong,
    }
}

/// The first of what comes through a pipe. The rest is read too, so that nobody waits for it.
struct Output {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: watch::Receiver<()>,
}

impl Output {
    fn of(pipe: OwnedFd) -> Self {
        let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (open, ended) = watch::channel(());
        let into = kept.clone();
        tokio::spawn(async move {
            if let Ok(pipe) = pipe::Receiver::from_owned_fd(pipe) {
                read(pipe, &into).await;
            }
            drop(open);
        });
        Self { kept, ended }
    }

    async fn ended(&self) {
        // It comes back when the other side is gone.
        let _ = self.ended.clone().changed().await;
    }

    fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

async fn read(mut pipe: impl AsyncRead + Unpin, into: &Mutex<Vec<u8>>) {
    let mut part = [0; 1024];
    while let Ok(count @ 1..) = pipe.read(&mut part).await {
        let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
        let room = OUTPUT.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&part[..room]);
    }
}

#[cfg(test)]
mod tests;
