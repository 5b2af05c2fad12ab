//! An operator as a process, and what the system tells of it.

use std::{
    ffi::OsString,
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::cluster::{Lifetime, Process, free_port};

/// How to start an operator, as often as wanted.
pub(super) struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Where it serves metrics whose names we know.
    metrics: Option<String>,
}

impl Launch {
    /// Ours, without a lease: whoever starts it after a kill would have to wait for the old one to
    /// run out.
    pub(super) fn ours(windlass: &Path, kubeconfig: &Path) -> Result<Self> {
        let metrics = format!("127.0.0.1:{}", free_port()?);
        let arguments = [
            "operator".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--metrics-bind-address={metrics}"),
            "--metrics-secure=false".to_owned(),
            "--health-probe-bind-address=0".to_owned(),
        ];
        Ok(Self {
            program: windlass.to_owned(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            metrics: Some(metrics),
        })
    }

    /// By a command line, which may begin with assignments of variables. All the programs on the way
    /// become the next one, so that the process we know is the operator's.
    pub(super) fn other(command: &str, kubeconfig: &Path) -> Self {
        let mut setting = OsString::from("KUBECONFIG=");
        setting.push(kubeconfig);
        let arguments =
            vec![setting, "sh".into(), "-c".into(), format!("exec env {command}").into()];
        Self { program: "env".into(), arguments, metrics: None }
    }

    pub(super) fn start(&self, dir: &Path) -> Result<Operator> {
        let arguments = self.arguments.clone();
        let process = Process::start("operator", &self.program, arguments, dir, Lifetime::Bound)?;
        Ok(Operator { process, started: Instant::now(), metrics: self.metrics.clone() })
    }
}

/// A running operator, killed when dropped.
pub(super) struct Operator {
    process: Process,
    pub(super) started: Instant,
    metrics: Option<String>,
}

impl Operator {
    pub(super) fn check_running(&mut self) -> Result<()> {
        self.process.check_running()
    }

    pub(super) fn log_tail(&self) -> String {
        self.process.log_tail()
    }

    /// Processor time so far.
    pub(super) fn cpu(&self) -> Option<Duration> {
        cpu_of(self.process.pid())
    }

    /// The most bytes of memory that it ever had.
    pub(super) fn peak_memory(&self) -> Option<u64> {
        memory_of(self.process.pid(), Memory::Peak)
    }

    /// Whether it has looked at each of so many objects: all of them wait in its queue from the
    /// start, so none is left when there were enough passes and the queue is empty. `None` if it
    /// does not tell.
    pub(super) fn has_passed(&self, kind: &str, objects: u32) -> Option<bool> {
        let address = self.metrics.as_deref()?;
        // Not serving yet is no answer yet.
        let Ok(text) = get(address, "/metrics") else { return Some(false) };
        let passes = sum(&text, "windlass_reconciles_total", kind);
        let waiting = sum(&text, "windlass_queue_depth", kind);
        Some(passes >= f64::from(objects) && waiting == 0.0)
    }
}

/// Processor time of a process so far; `None` where the system does not tell.
pub(super) fn cpu_of(process: u32) -> Option<Duration> {
    parse_cpu(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// See proc_pid_stat(5).
fn parse_cpu(stat: &str) -> Option<Duration> {
    // Linux counts in hundredths of a second wherever programs can see it.
    const TICK: Duration = Duration::from_millis(10);
    // The name in parentheses may itself hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let (user, system): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(TICK * (user + system))
}

/// Which memory, as proc_pid_status(5) calls it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Memory {
    Peak,
    Now,
}

/// Bytes of memory of a process; `None` where the system does not tell.
pub(super) fn memory_of(process: u32, which: Memory) -> Option<u64> {
    parse_memory(&fs::read_to_string(format!("/proc/{process}/status")).ok()?, which)
}

fn parse_memory(status: &str, which: Memory) -> Option<u64> {
    let name = match which {
        Memory::Peak => "VmHWM:",
        Memory::Now => "VmRSS:",
    };
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// A metric's value over all its series of the kind.
fn sum(text: &str, name: &str, kind: &str) -> f64 {
    let label = format!("kind=\"{kind}\"");
    let series = text.lines().filter(|line| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{')) && line.contains(&label)
    });
    series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Version 1.0, so that the body ends with the connection and has no other framing.
fn get(address: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).context("cannot connect")?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.contains(" 200 ") => Ok(body.to_owned()),
        _ => bail!("cannot get {path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 2000 0 0 0 150 25 0 0 20 0 5 0 9 1 1";
        assert_eq!(parse_cpu(stat), Some(Duration::from_millis(1750)));
        assert_eq!(parse_cpu("7 (a"), None);
    }

    #[test]
    fn memory_is_in_bytes() {
        let status = "Name:\ta\nVmHWM:\t   20 kB\nVmRSS:\t 10 kB\n";
        assert_eq!(parse_memory(status, Memory::Peak), Some(20_480));
        assert_eq!(parse_memory(status, Memory::Now), Some(10_240));
        assert_eq!(parse_memory("Name:\ta\n", Memory::Peak), None);
    }

    #[test]
    fn a_metric_is_summed_over_the_series_of_the_kind() {
        let text = "# HELP passes x\npasses{kind=\"A\",outcome=\"success\"} 3\n\
                    passes{kind=\"A\",outcome=\"retry\"} 1\npasses{kind=\"B\"} 7\n\
                    passes_other{kind=\"A\"} 9\n";
        assert_eq!(sum(text, "passes", "A"), 4.0);
    }

    #[test]
    fn this_process_can_be_measured() {
        assert!(cpu_of(std::process::id()).is_some());
    }
}
