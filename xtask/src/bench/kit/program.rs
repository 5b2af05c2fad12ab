//! The commands and the registry, as processes.

use std::{
    ffi::OsString,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{
    bench::operator::{Memory, cpu_of, memory_of},
    cluster::{Lifetime, Process},
    interrupt::Interrupted,
};

const PAUSE: Duration = Duration::from_millis(2);
/// For what is over soon, so that the wait for it does not count.
const SHORT_PAUSE: Duration = Duration::from_micros(200);
const SOON: Duration = Duration::from_millis(200);
/// Whatever takes so long will never come.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Kit<'a> {
    pub(super) windlass: PathBuf,
    pub(super) scratch: &'a Path,
    pub(super) interrupted: &'a Interrupted,
}

/// One command that was run to its end.
#[derive(Clone, Copy)]
pub(super) struct Ran {
    pub(super) time: Duration,
    /// In bytes.
    pub(super) peak: u64,
    /// To the disk, in bytes.
    pub(super) written: u64,
    /// Of all processors.
    pub(super) cpu: Duration,
}

/// What is served from a folder of its own; ends when dropped.
pub(super) struct Registry {
    pub(super) address: SocketAddr,
    _process: Process,
}

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only for a process that has already been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Kit<'_> {
    /// Empty, and of this name.
    pub(super) fn registry(&self, name: &str) -> Result<Registry> {
        let folder = self.empty(name)?;
        let arguments = ["registry", "serve", "--listen", "127.0.0.1:0", "--root"];
        let mut arguments: Vec<_> = arguments.map(Into::into).to_vec();
        arguments.push(folder.join("data").into());
        self.serve(&self.windlass, arguments, &folder)
    }

    /// Debian's, likewise. None where it is not installed.
    pub(super) fn debian(&self, name: &str) -> Result<Option<Registry>> {
        let program = Path::new("/usr/bin/docker-registry");
        if !program.exists() {
            return Ok(None);
        }
        let folder = self.empty(name)?;
        let config = folder.join("config.yml");
        let text = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {}/data}}}}\nhttp: {{addr: '127.0.0.1:0'}}\n",
            folder.display()
        );
        fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        self.serve(program, vec!["serve".into(), config.into()], &folder).map(Some)
    }

    fn empty(&self, name: &str) -> Result<PathBuf> {
        let folder = self.scratch.join(name);
        fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    /// Until it has said where it is.
    fn serve(&self, program: &Path, arguments: Vec<OsString>, folder: &Path) -> Result<Registry> {
        let mut process = Process::start("registry", program, arguments, folder, Lifetime::Bound)?;
        let start = Instant::now();
        loop {
            let said = fs::read_to_string(folder.join("registry.log")).unwrap_or_default();
            if let Some(address) = address_in(&said) {
                return Ok(Registry { address, _process: process });
            }
            process.check_running()?;
            self.interrupted.check()?;
            if start.elapsed() > PATIENCE {
                bail!("the registry does not come up");
            }
            thread::sleep(PAUSE);
        }
    }

    /// With a store of this name.
    pub(super) fn run(&self, store: &str, arguments: &[&str]) -> Result<Ran> {
        let what = format!("windlass kit {}", arguments.join(" "));
        let start = Instant::now();
        let mut running = self.start(store, arguments)?;
        let process = running.0.id();
        let (mut peak, mut written, mut cpu) = (0, 0, Duration::ZERO);
        loop {
            peak = memory_of(process, Memory::Peak).unwrap_or(peak);
            written = written_by(process).unwrap_or(written);
            cpu = cpu_of(process).unwrap_or(cpu);
            match running.0.try_wait().with_context(|| format!("cannot wait for `{what}`"))? {
                Some(status) if status.success() => break,
                Some(status) => return Err(self.failed(&what, status)),
                None if start.elapsed() < SOON => thread::sleep(SHORT_PAUSE),
                None => thread::sleep(PAUSE),
            }
            self.interrupted.check()?;
        }
        Ok(Ran { time: start.elapsed(), peak, written, cpu })
    }

    /// Killed as soon as this is true.
    pub(super) fn run_until(
        &self,
        store: &str,
        arguments: &[&str],
        is_time: impl Fn() -> bool,
    ) -> Result<()> {
        let what = format!("windlass kit {}", arguments.join(" "));
        let mut running = self.start(store, arguments)?;
        while !is_time() {
            if let Some(status) = running.0.try_wait().context("cannot wait")? {
                return Err(self.failed(&what, status).context("it ended before it was killed"));
            }
            self.interrupted.check()?;
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn start(&self, store: &str, arguments: &[&str]) -> Result<Running> {
        let log = fs::File::create(self.log()).context("cannot create a log")?;
        let errors = log.try_clone().context("cannot share the log")?;
        let child = Command::new(&self.windlass)
            .arg("kit")
            .args(arguments)
            .env("KITOPS_HOME", self.scratch.join(store))
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn();
        child.map(Running).context("cannot run windlass kit")
    }

    fn log(&self) -> PathBuf {
        self.scratch.join("kit.log")
    }

    fn failed(&self, what: &str, status: ExitStatus) -> anyhow::Error {
        let said = fs::read_to_string(self.log()).unwrap_or_default();
        anyhow::anyhow!("`{what}` failed ({status}): {}", said.trim())
    }
}

/// `None` where the system does not tell.
fn written_by(process: u32) -> Option<u64> {
    parse_written(&fs::read_to_string(format!("/proc/{process}/io")).ok()?)
}

/// See proc_pid_io(5).
fn parse_written(io: &str) -> Option<u64> {
    io.lines().find_map(|line| line.strip_prefix("write_bytes:"))?.trim().parse().ok()
}

/// As the registries tell it, in a line that is whole.
fn address_in(said: &str) -> Option<SocketAddr> {
    let (_, rest) = said.split_once("http://").or_else(|| said.split_once("listening on "))?;
    let (address, _) = rest.split_once(|c: char| !c.is_ascii_digit() && !".:".contains(c))?;
    address.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_goes_to_the_disk_is_written() {
        let io = "rchar: 9\nwchar: 8\nread_bytes: 7\nwrite_bytes: 4096\n";
        assert_eq!(parse_written(io), Some(4096));
        assert_eq!(parse_written("wchar: 8\n"), None);
    }

    #[test]
    fn the_registry_tells_where_it_is() {
        let said = "the registry is at http://127.0.0.1:4711; Ctrl-C ends it\n";
        assert_eq!(address_in(said), Some("127.0.0.1:4711".parse().unwrap()));
        assert_eq!(address_in("the registry is at http://127.0"), None);
        let debian = "time=\"now\" level=info msg=\"listening on 127.0.0.1:4712\" version=2\n";
        assert_eq!(address_in(debian), Some("127.0.0.1:4712".parse().unwrap()));
    }
}
