//! `windlass up` as a process of its own, as a user would start it, which ends with this one.

use std::{
    collections::VecDeque,
    env, fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

/// The user that has nothing, by whom root's pods run: those of our kinds must not be root.
const NOBODY: u32 = 65534;
/// Of its log so many lines are kept.
const LINES: usize = 40;
const PATIENCE: Duration = Duration::from_secs(60);
/// For the end of all pods and of itself; pods get half a minute.
const END: Duration = Duration::from_secs(90);
/// For what one has said that has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How the last line begins that it says when it is up.
const LAST: &str = "Ctrl-C or ";

pub(super) struct Cluster {
    child: Child,
    /// It ends when this is closed, however this process ends.
    _stdin: ChildStdin,
    log: Log,
    greeting: Greeting,
    /// Where the program is, if it could not be run where it was.
    _copy: Option<TempDir>,
}

/// What it says when it is up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) api: String,
    pub(super) gateway: String,
    /// As it stands before the names of artifacts.
    pub(super) registry: String,
    pub(super) kubeconfig: PathBuf,
}

impl Greeting {
    fn read(&mut self, line: &str) {
        let until = |text: &str, end: char| text.split(end).next().unwrap_or_default().to_owned();
        if let Some(rest) = line.strip_prefix("windlass is up at ") {
            self.api = until(rest, ';');
        } else if let Some(rest) = line.strip_prefix("models answer at ") {
            self.gateway = until(rest, ',');
        } else if let Some(rest) = line.strip_prefix("the registry is at http://") {
            self.registry = until(rest, ',');
        } else if let Some(rest) = line.strip_prefix("export KUBECONFIG=") {
            self.kubeconfig = rest.trim_matches('\'').into();
        }
    }
}

/// The last lines that it has logged.
struct Log {
    lines: Arc<Mutex<VecDeque<String>>>,
    reader: JoinHandle<()>,
}

impl Log {
    fn follow(errors: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let lines = Arc::<Mutex<VecDeque<String>>>::default();
        let into = lines.clone();
        let reader = tokio::spawn(async move {
            let mut errors = BufReader::new(errors);
            while let Some(line) = next_line(&mut errors).await {
                let mut lines = into.lock().unwrap_or_else(PoisonError::into_inner);
                lines.push_back(line);
                if lines.len() > LINES {
                    lines.pop_front();
                }
            }
        });
        Self { lines, reader }
    }

    /// All that one has said that has ended. Whom it has left behind may still hold its end.
    async fn rest(&mut self) -> String {
        let _ = timeout(LAST_WORDS, &mut self.reader).await;
        self.text()
    }

    fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines
            .iter()
            .map(|line| line.strip_prefix("error: ").unwrap_or(line))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Whatever bytes it has: one that nobody reads any more would be held up. None at the end.
async fn next_line(from: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    let read = from.read_until(b'\n', &mut line).await;
    read.ok().filter(|read| *read > 0)?;
    Some(String::from_utf8_lossy(&line).trim_end().to_owned())
}

impl Cluster {
    /// Its pods import models from the hub at this address.
    pub(super) async fn start(hub: &str, flags: &[String]) -> anyhow::Result<Self> {
        let (mut cluster, stdout) = Self::spawn(hub, flags)?;
        let mut lines = BufReader::new(stdout);
        let greeting = async {
            while let Some(line) = next_line(&mut lines).await {
                cluster.greeting.read(&line);
                if line.starts_with(LAST) {
                    return true;
                }
            }
            false
        };
        let is_up = timeout(PATIENCE, greeting).await;
        // It may go on talking, and must not be held up by that.
        tokio::spawn(async move { while next_line(&mut lines).await.is_some() {} });
        match is_up {
            Ok(true) => Ok(cluster),
            Ok(false) => {
                let error = cluster.ended().await;
                Err(error.context("`windlass up` has not come up"))
            }
            Err(_) => {
                let log = cluster.log.text();
                // That it is not up is worse than how it ends.
                let _ = cluster.end().await;
                bail!("`windlass up` is not up after {} s: {log}", PATIENCE.as_secs())
            }
        }
    }

    fn spawn(hub: &str, flags: &[String]) -> anyhow::Result<(Self, ChildStdout)> {
        let own = env::current_exe().context("cannot tell where this program is")?;
        let is_root = geteuid().is_root();
        let (program, copy) = if is_root { for_others(own)? } else { (own, None) };
        let mut command = Command::new(program);
        command
            .args(["up", "--ephemeral", "--end-with-stdin", "--progress=none"])
            .args(flags)
            .env("HF_ENDPOINT", hub)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C at a terminal is for this process, which then ends that one in order.
            .process_group(0);
        for name in ["NO_PROXY", "no_proxy"] {
            command.env(name, without_proxy(env::var(name).ok().as_deref()));
        }
        if is_root {
            command.uid(NOBODY).gid(NOBODY).current_dir("/");
        }
        let mut child = command.spawn().context("cannot start `windlass up`")?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            bail!("cannot hear what `windlass up` says");
        };
        let log = Log::follow(stderr);
        let greeting = Greeting::default();
        Ok((Self { child, _stdin: stdin, log, greeting, _copy: copy }, stdout))
    }

    pub(super) fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// Waits until it has ended by itself, which it should not.
    pub(super) async fn ended(&mut self) -> anyhow::Error {
        let status = self.child.wait().await;
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let log = self.log.rest().await;
        match log.is_empty() {
            true => anyhow::anyhow!("it has ended ({status})"),
            false => anyhow::anyhow!("{log}"),
        }
    }

    /// What it has logged last.
    pub(super) fn log(&self) -> String {
        self.log.text()
    }

    /// Ends it and everything that runs on it. Whoever is told to hurry meanwhile tells it too.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let cannot = "cannot listen for signals";
        let mut hurry = signal(SignalKind::interrupt()).context(cannot)?;
        let mut terminate = signal(SignalKind::terminate()).context(cannot)?;
        let deadline = Instant::now() + END;
        loop {
            let process = self.child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
            // One that has ended meanwhile is what is wanted.
            process.and_then(|process| kill_process(process, Signal::TERM).ok());
            tokio::select! {
                ended = self.child.wait() => {
                    let status = ended.context("cannot wait for `windlass up`")?;
                    if !status.success() {
                        let log = self.log.rest().await;
                        bail!("`windlass up` has not ended well ({status}): {log}");
                    }
                    return Ok(());
                }
                _ = hurry.recv() => {}
                _ = terminate.recv() => {}
                () = sleep_until(deadline) => {
                    self.child.kill().await.context("cannot kill `windlass up`")?;
                    bail!("`windlass up` did not end in {} s and was killed", END.as_secs());
                }
            }
        }
    }
}

/// The program where any user can run it.
fn for_others(own: PathBuf) -> anyhow::Result<(PathBuf, Option<TempDir>)> {
    let is_open = |path: &Path| fs::metadata(path).is_ok_and(|found| found.mode() & 1 == 1);
    if own.ancestors().filter(|path| !path.as_os_str().is_empty()).all(is_open) {
        return Ok((own, None));
    }
    let cannot = "cannot copy this program to where other users can run it";
    let folder = tempfile::Builder::new().prefix("windlass-demo-").tempdir().context(cannot)?;
    let copy = folder.path().join("windlass");
    fs::copy(own, &copy).context(cannot)?;
    // Whatever the umask says, and whatever the program itself may be opened by.
    for path in [folder.path(), &copy] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).context(cannot)?;
    }
    Ok((copy, Some(folder)))
}

/// The hub and the registry are on this machine, whatever proxy leads elsewhere.
fn without_proxy(given: Option<&str>) -> String {
    let given = given.into_iter().filter(|given| !given.is_empty());
    given.chain(["127.0.0.1", "localhost"]).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_up_says_is_understood() {
        let mut greeting = Greeting::default();
        for line in [
            "windlass is up at https://127.0.0.1:38453; nothing is kept",
            "models answer at http://127.0.0.1:8082, as port 8080 is in use",
            "the registry is at http://127.0.0.1:5000",
            "export KUBECONFIG='/tmp/a b/kubeconfig'",
            "Ctrl-C or `windlass down --dir '/tmp/a b'` ends it",
        ] {
            greeting.read(line);
        }
        let want = Greeting {
            api: "https://127.0.0.1:38453".to_owned(),
            gateway: "http://127.0.0.1:8082".to_owned(),
            registry: "127.0.0.1:5000".to_owned(),
            kubeconfig: "/tmp/a b/kubeconfig".into(),
        };
        assert_eq!(greeting, want);
    }

    #[test]
    fn this_machine_is_reached_without_a_proxy() {
        assert_eq!(without_proxy(None), "127.0.0.1,localhost");
        assert_eq!(without_proxy(Some("a.example")), "a.example,127.0.0.1,localhost");
    }
}
