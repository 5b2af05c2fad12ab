//! Child processes that do not outlive their purpose.
//!
//! A bound child is killed when its handle is dropped, and by the kernel when this process dies
//! without running any of its code, for instance when a test runner kills a test that hangs.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{OnceLock, mpsc},
    thread,
};

use anyhow::{Context, Result, anyhow};

/// How long a child may live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// At most as long as this process and the handle.
    Bound,
    /// Until it is ended by its process id.
    Detached,
}

pub(crate) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts the program with its output appended to `<folder>/<name>.log`.
    pub(crate) fn start(
        name: &'static str,
        program: &Path,
        arguments: Vec<OsString>,
        folder: &Path,
        lifetime: Lifetime,
    ) -> Result<Process> {
        let log = folder.join(format!("{name}.log"));
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("cannot open {}", log.display()))?;
        let errors =
            output.try_clone().with_context(|| format!("cannot share {}", log.display()))?;
        let mut command = command(program, lifetime);
        command.args(arguments).stdin(Stdio::null()).stdout(output).stderr(errors);
        // A group of its own: Ctrl-C at the terminal is for the one who started it, who then ends
        // the children in its own way.
        command.process_group(0);
        let child = spawn(command)
            .with_context(|| format!("cannot start {name} ({})", program.display()))?;
        Ok(Process { name, child, log })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Fails with the end of the log if the process has ended.
    pub(crate) fn check_running(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.ended(status)),
            Err(error) => Err(anyhow!(error).context(format!("cannot ask after {}", self.name))),
        }
    }

    fn ended(&self, status: ExitStatus) -> anyhow::Error {
        anyhow!("{} ended ({status}); the end of its log:\n{}", self.name, tail(&self.log))
    }

    pub(crate) fn log_tail(&self) -> String {
        tail(&self.log)
    }

    /// SIGKILL, and not back before the process is gone.
    pub(super) fn kill(&mut self) {
        // Fails only for a process that has already been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Leaves the process to live on, which a bound one does only until this process ends.
    pub(super) fn release(self) {
        std::mem::forget(self);
    }
}

impl Drop for Process {
    // A detached process dies here as well: whoever wants it to live on calls `release`, so a
    // start that fails half-way leaves nothing behind.
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last lines of a file, for an error message.
pub(super) fn tail(file: &Path) -> String {
    const LINES: usize = 15;
    let Ok(bytes) = fs::read(file) else {
        return format!("(cannot read {})", file.display());
    };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

fn command(program: &Path, lifetime: Lifetime) -> Command {
    if lifetime == Lifetime::Bound && dies_with_parent() {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        return command;
    }
    Command::new(program)
}

/// Whether `setpriv` (util-linux) can ask the kernel to kill a child with its parent. Asking
/// directly takes unsafe code. Where it is missing, a killed parent leaves its children.
fn dies_with_parent() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let probe = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "true"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        probe.is_ok_and(|status| status.success())
    })
}

type Request = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts a child from a thread that lives as long as this process. The kernel ties "die with the
/// parent" to the thread that started the child, and the caller's may be a worker that ends soon.
fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<mpsc::Sender<Request>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, requests) = mpsc::channel::<Request>();
        thread::spawn(move || {
            for (mut command, answer) in requests {
                // The asker may have gone; then nobody wants the child either.
                if let Err(mpsc::SendError(Ok(mut child))) = answer.send(command.spawn()) {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        });
        sender
    });
    let (answer, child) = mpsc::channel();
    let gone = || io::Error::other("the thread that starts processes has ended");
    spawner.send((command, answer)).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_is_reported_with_its_log() {
        let folder = std::env::temp_dir().join(format!("xtask-process-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let arguments = ["-c", "echo the reason; exit 3"].map(OsString::from).to_vec();
        let mut process =
            Process::start("sh", Path::new("/bin/sh"), arguments, &folder, Lifetime::Bound)
                .unwrap();
        process.child.wait().unwrap();
        let error = process.check_running().unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("exit status: 3") && error.contains("the reason"), "{error}");
    }

    #[test]
    fn a_process_outlives_the_thread_that_asked_for_it() {
        let folder = std::env::temp_dir().join(format!("xtask-thread-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let place = folder.clone();
        let start = move || {
            let arguments = vec![OsString::from("60")];
            Process::start("sleep", Path::new("sleep"), arguments, &place, Lifetime::Bound)
        };
        let mut process = thread::spawn(start).join().unwrap().unwrap();
        let still_running = process.check_running();
        drop(process);
        fs::remove_dir_all(&folder).unwrap();
        still_running.unwrap();
    }
}
