//! `cargo xtask bench up`: how soon a local cluster is there, and what it holds when nothing happens.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use serde::Serialize;
use tokio::runtime::{self, Runtime};

use super::{
    arguments::Starts,
    operator::{Memory, memory_of},
    report::{megabytes, round},
    site,
    target::{Limit, Target, judge},
};
use crate::{
    cluster::{Lifetime, Process},
    interrupt::Interrupted,
    program::{self, Profile},
    scratch::Folder,
};

const PAUSE: Duration = Duration::from_millis(1);
/// Whatever takes so long will never come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Requests under way at once while the store is filled.
const AT_ONCE: usize = 32;
const FIRST_ANSWER_MS: Limit = Limit::Under(300.0);
const IDLE_MB: Limit = Limit::Under(60.0);

/// What a field means is said in CONTRIBUTING.md.
#[derive(Debug, Serialize)]
struct Report {
    starts: u32,
    fresh: Figures,
    /// Of the store.
    objects: u32,
    existing: Figures,
}

#[derive(Debug, Serialize)]
struct Figures {
    start_to_first_answer_ms: Spread,
    start_to_ready_ms: Spread,
    idle_rss_mb: Option<f64>,
    peak_rss_mb: Option<f64>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Spread {
    median: f64,
    worst: f64,
}

impl Spread {
    fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut times: Vec<Duration> = times.collect();
        times.sort_unstable();
        let at = |index: usize| {
            times.get(index).map_or(f64::NAN, |time| round(time.as_secs_f64() * 1e3, 1))
        };
        Self { median: at(times.len() / 2), worst: at(times.len().saturating_sub(1)) }
    }
}

struct Run<'a> {
    starts: &'a Starts,
    windlass: PathBuf,
    folder: Folder,
    runtime: Runtime,
    interrupted: Interrupted,
}

/// One start.
struct Started {
    process: Process,
    first_answer: Duration,
    ready: Duration,
}

/// A figure that has to be within a limit, of both kinds of start.
struct Row {
    what: &'static str,
    fresh: f64,
    existing: f64,
    wanted: Limit,
}

impl Report {
    fn rows(&self) -> [Row; 2] {
        let row = |what, figure: fn(&Figures) -> f64, wanted| Row {
            what,
            fresh: figure(&self.fresh),
            existing: figure(&self.existing),
            wanted,
        };
        [
            row("first answer, worst, ms", |of| of.start_to_first_answer_ms.worst, FIRST_ANSWER_MS),
            row("memory at rest, MB", |of| of.idle_rss_mb.unwrap_or(f64::NAN), IDLE_MB),
        ]
    }

    fn targets(&self) -> Vec<Target> {
        let target = |row: Row| {
            let kinds = [("fresh", row.fresh), ("existing", row.existing)];
            kinds.map(|(kind, reached)| {
                let what = format!("{} ({kind})", row.what);
                Target { what, reached, wanted: row.wanted }
            })
        };
        self.rows().into_iter().flat_map(target).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:24}{:>12}{:>12}  wanted", "", "fresh", "existing")?;
        for Row { what, fresh, existing, wanted } in self.rows() {
            writeln!(f, "{what:24}{fresh:>12}{existing:>12}  {wanted}")?;
        }
        Ok(())
    }
}

/// Prints the report as one line on standard output, and for the eye beside it. Fails where a target
/// is missed, but for debug builds, whose figures mean nothing.
pub(super) fn run(starts: &Starts) -> Result<()> {
    let profile = if starts.debug { Profile::Debug } else { Profile::Release };
    let run = Run {
        starts,
        windlass: program::build(profile)?,
        folder: Folder::new("bench")?,
        runtime: runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start a runtime")?,
        interrupted: Interrupted::listen()?,
    };
    let report = Report {
        starts: starts.starts,
        fresh: run.fresh()?,
        objects: starts.objects,
        existing: run.existing()?,
    };
    eprint!("{report}");
    println!("{}", serde_json::to_string(&report).context("cannot write the report")?);
    if starts.debug { Ok(()) } else { judge(&report.targets()) }
}

impl Run<'_> {
    fn fresh(&self) -> Result<Figures> {
        self.figures(|at| self.folder.path().join(format!("fresh-{at}")))
    }

    fn existing(&self) -> Result<Figures> {
        let dir = self.folder.path().join("existing");
        let started = self.start(&dir)?;
        self.runtime.block_on(fill(&dir, self.starts.objects))?;
        self.end(started.process, &dir)?;
        self.figures(|_| dir.clone())
    }

    fn figures(&self, dir: impl Fn(u32) -> PathBuf) -> Result<Figures> {
        let mut times = Vec::new();
        for at in 1..self.starts.starts {
            let started = self.start(&dir(at))?;
            times.push((started.first_answer, started.ready));
            self.end(started.process, &dir(at))?;
        }
        let last = self.starts.starts;
        let started = self.start(&dir(last))?;
        times.push((started.first_answer, started.ready));
        self.rest()?;
        let memory = |which| memory_of(started.process.pid(), which).map(megabytes);
        let (idle_rss_mb, peak_rss_mb) = (memory(Memory::Now), memory(Memory::Peak));
        self.end(started.process, &dir(last))?;
        Ok(Figures {
            start_to_first_answer_ms: Spread::of(times.iter().map(|(first, _)| *first)),
            start_to_ready_ms: Spread::of(times.iter().map(|(_, ready)| *ready)),
            idle_rss_mb,
            peak_rss_mb,
        })
    }

    fn start(&self, dir: &Path) -> Result<Started> {
        self.interrupted.check()?;
        let log = self.folder.path().join("up.log");
        if let Err(error) = fs::remove_file(&log)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error).context("cannot remove the log of the last start");
        }
        let arguments = vec!["up".into(), "--dir".into(), dir.into()];
        // Who knows the port from the last time can ask before the file is written anew.
        let known = self.runtime.block_on(site::connect(&dir.join("kubeconfig"))).ok();
        let start = Instant::now();
        let folder = self.folder.path();
        let mut process = Process::start("up", &self.windlass, arguments, folder, Lifetime::Bound)?;
        let first_answer = self.runtime.block_on(first_answer(start, known, dir))?;
        while !fs::read_to_string(&log).is_ok_and(|said| said.contains("KUBECONFIG=")) {
            process.check_running()?;
            check(start)?;
            thread::sleep(PAUSE);
        }
        Ok(Started { process, first_answer, ready: start.elapsed() })
    }

    fn end(&self, process: Process, dir: &Path) -> Result<()> {
        let mut down = Command::new(&self.windlass);
        program::run_to_end(down.arg("down").arg("--dir").arg(dir), "windlass down")?;
        drop(process);
        Ok(())
    }

    fn rest(&self) -> Result<()> {
        let end = Instant::now() + self.starts.rest;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            self.interrupted.check()?;
            thread::sleep(left.min(Duration::from_millis(100)));
        }
        Ok(())
    }
}

async fn first_answer(start: Instant, known: Option<Client>, dir: &Path) -> Result<Duration> {
    let mut client = known;
    loop {
        match &client {
            Some(client) if client.apiserver_version().await.is_ok() => return Ok(start.elapsed()),
            Some(_) => {}
            None => client = site::connect(&dir.join("kubeconfig")).await.ok(),
        }
        check(start)?;
        tokio::time::sleep(PAUSE).await;
    }
}

fn check(start: Instant) -> Result<()> {
    if start.elapsed() > PATIENCE {
        bail!("windlass up does not come up");
    }
    Ok(())
}

async fn fill(dir: &Path, objects: u32) -> Result<()> {
    let client = site::connect(&dir.join("kubeconfig")).await?;
    let all: Api<ConfigMap> = Api::default_namespaced(client);
    let created = stream::iter(0..objects).map(|at| {
        let all = all.clone();
        async move {
            let map = ConfigMap {
                metadata: ObjectMeta { name: Some(format!("bench-{at}")), ..Default::default() },
                data: Some([("text".to_owned(), "x".repeat(500))].into()),
                ..Default::default()
            };
            all.create(&PostParams::default(), &map).await.map(drop)
        }
    });
    created.buffer_unordered(AT_ONCE).try_collect::<()>().await.context("cannot fill the store")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_start_stand_beside_what_is_wanted() {
        let figures = |time, memory| Figures {
            start_to_first_answer_ms: Spread { median: 1.0, worst: time },
            start_to_ready_ms: Spread { median: 1.0, worst: 1.0 },
            idle_rss_mb: memory,
            peak_rss_mb: None,
        };
        let (fresh, existing) = (figures(120.5, Some(41.5)), figures(80.0, None));
        let report = Report { starts: 1, fresh, objects: 1, existing };
        assert_eq!(
            report.to_string(),
            "                               fresh    existing  wanted\n\
             first answer, worst, ms        120.5          80  under 300\n\
             memory at rest, MB              41.5         NaN  under 60\n"
        );
        let missed = judge(&report.targets()).unwrap_err().to_string();
        assert_eq!(missed, "missed memory at rest, MB (existing): NaN, wanted under 60");
    }

    #[test]
    fn the_middle_and_the_worst_are_told() {
        let times = [5, 1, 9].map(Duration::from_millis);
        assert_eq!(Spread::of(times.into_iter()), Spread { median: 5.0, worst: 9.0 });
    }
}
