//! The order of a run: the writer, the operator, and the writer once more, each on an API server of
//! its own. A machine that gets slower or faster meanwhile is slow or fast for both.

use std::{
    future::Future,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use kube::Client;
use serde_json::Value;
use tokio::runtime::{self, Runtime};

use super::{
    arguments::Arguments,
    audit::{Ledger, Tally},
    foreign,
    objects::{Objects, text},
    observe::Statuses,
    operator::{Launch, Operator},
    report::{Foreign, Report, Requests, megabytes, round},
    site,
    work::{self, Work},
    writer,
};
use crate::{
    cluster::{Assets, ControlPlane, ensure_crds},
    interrupt::Interrupted,
    program::{self, Profile},
    scratch::Folder,
};

/// How long no write may come before we believe that none will.
const NO_WRITE: Duration = Duration::from_secs(2);
/// The same for any request of an operator that does not tell what it does: it may first have to
/// wait for the lease of the one that was killed, which is commonly of 15 seconds.
const NO_REQUEST: Duration = Duration::from_secs(20);

/// Prints the report as one line on standard output.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    say("programs: control plane and windlass");
    let manifest = work::read(&arguments.manifest)?;
    let assets = Assets::ensure()?;
    let crds: Vec<&str> = arguments.crds.iter().map(String::as_str).collect();
    ensure_crds(&crds)?;
    let profile = if arguments.debug { Profile::Debug } else { Profile::Release };
    let windlass = program::build(profile)?;

    let interrupted = Interrupted::listen()?;
    let folder = Folder::new("bench")?;
    let runtime = runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    let dir = folder.path();
    let windlass = &windlass;
    let run = Run { arguments, manifest, assets, crds, windlass, dir, interrupted, runtime };
    let outcome = run.measure();
    if run.interrupted.is_set() {
        // What failed because of it need not be told.
        bail!("interrupted");
    }
    println!("{}", serde_json::to_string(&outcome?).context("cannot write the report")?);
    Ok(())
}

fn say(text: &str) {
    eprintln!("bench: {text}");
}

struct Run<'a> {
    arguments: &'a Arguments,
    manifest: Value,
    assets: Assets,
    crds: Vec<&'a str>,
    windlass: &'a Path,
    dir: &'a Path,
    interrupted: Interrupted,
    runtime: Runtime,
}

/// Halfway between two measurements.
fn between(before: (Duration, Duration), after: (Duration, Duration)) -> (Duration, Duration) {
    ((before.0 + after.0) / 2, (before.1 + after.1) / 2)
}

/// What is known once the operator has converged.
struct Converged {
    time: Duration,
    /// Of the API server and etcd.
    api_cpu: Duration,
    requests: Tally,
    cpu: Option<Duration>,
    peak: Option<u64>,
}

impl Run<'_> {
    fn measure(&self) -> Result<Report> {
        let Arguments { services, rest, .. } = *self.arguments;
        let before = self.writer("writer-before")?;

        let work = self.render("bench-b")?;
        let plane = self.site("operator", "bench-b")?;
        let client = self.wait(site::connect(&plane.kubeconfig()))?;
        let launch = self.launch(&plane)?;
        let mut ledger = Ledger::new(plane.audit_log(), program::user());
        let (mut operator, converged) =
            self.operator(&plane, &client, &launch, &work, &mut ledger)?;

        self.settle(&mut operator, &mut ledger)?;
        say(&format!("rest: counting writes for {} s", rest.as_secs()));
        self.pass(rest)?;
        operator.check_running()?;
        let at_rest = ledger.read()?;
        say(&format!("rest: writes: {}", at_rest.describe_writes()));

        drop(operator);
        let (after_restart, without) = self.restart(&launch, &mut ledger)?;
        let foreign = match self.arguments.foreign {
            Some(count) => {
                say(&format!("foreign: {count} Secrets, ConfigMaps and Pods each"));
                self.wait(foreign::create(&client, count))?;
                let (_, with) = self.restart(&launch, &mut ledger)?;
                Some(Foreign::new(count, without, with))
            }
            None => None,
        };

        drop(plane);
        let after = self.writer("writer-after")?;
        let (writer, writer_api_cpu) = between(before, after);
        let (writer, time) = (writer.as_secs_f64(), converged.time.as_secs_f64());
        Ok(Report {
            kind: self.kind().to_owned(),
            operator: self.arguments.operator.clone(),
            services,
            children_per_service: work.children_per_service(),
            writer_seconds: round(writer, 3),
            writer_seconds_before: round(before.0.as_secs_f64(), 3),
            writer_seconds_after: round(after.0.as_secs_f64(), 3),
            operator_seconds: round(time, 3),
            ratio: round(time / writer, 2),
            requests: Requests::of(&converged.requests, services),
            cpu_seconds: converged.cpu.map(|cpu| round(cpu.as_secs_f64(), 2)),
            writer_api_cpu_seconds: round(writer_api_cpu.as_secs_f64(), 2),
            operator_api_cpu_seconds: round(converged.api_cpu.as_secs_f64(), 2),
            peak_memory_mb: converged.peak.map(megabytes),
            rest_seconds: rest.as_secs(),
            writes_at_rest: at_rest.writes(),
            writes_after_restart: after_restart,
            foreign,
        })
    }

    /// The time of the bare writer, and the processor time of its API server. That is gone
    /// afterwards, and loads nothing any more.
    fn writer(&self, site: &str) -> Result<(Duration, Duration)> {
        let work = self.render("bench-a")?;
        let plane = self.site(site, "bench-a")?;
        program::grant_secrets(&plane)?;
        let account = program::kubeconfig(&plane)?;
        let (time, cpu) = self.wait(async {
            let client = site::connect(&plane.kubeconfig()).await?;
            let objects = Objects::learn(&client, work.objects()).await?;
            let uids = objects.create_all(&work.parents).await?;
            // Under the operator's name: what the API server has to check of one it checks of the other.
            let objects = objects.sent_by(site::connect(&account).await?);
            let before = site::used(&plane);
            let time = writer::write(&objects, &work, &uids).await?;
            Ok((time, site::used(&plane).saturating_sub(before)))
        })?;
        say(&format!("writer: {:.2} s", time.as_secs_f64()));
        Ok((time, cpu))
    }

    fn operator(
        &self,
        plane: &ControlPlane,
        client: &Client,
        launch: &Launch,
        work: &Work,
        ledger: &mut Ledger,
    ) -> Result<(Operator, Converged)> {
        let first = work.parents.first().context("there is no work")?;
        let (objects, statuses) = self.wait(async {
            let objects = Objects::learn(client, work.objects()).await?;
            objects.create_all(&work.parents).await?;
            let statuses = Statuses::watch(objects.api(first)?).await?;
            Ok((objects, statuses))
        })?;
        ledger.read()?;
        let before = site::used(plane);
        let mut operator = launch.start(self.dir)?;
        let children: Vec<&Value> = work.all_children().collect();
        let last = self
            .wait(statuses.last(&objects, &children, self.deadline(), || operator.check_running()));
        let last = last.map_err(|error| match operator.check_running() {
            Err(ended) => ended,
            Ok(()) => error.context(format!("the end of its log:\n{}", operator.log_tail())),
        });
        let last = last.context("the operator did not converge")?;
        let converged = Converged {
            time: last.duration_since(operator.started),
            api_cpu: site::used(plane).saturating_sub(before),
            requests: ledger.read()?,
            cpu: operator.cpu(),
            peak: operator.peak_memory(),
        };
        let writes = converged.requests.describe_writes();
        say(&format!("operator: {:.2} s; writes: {writes}", converged.time.as_secs_f64()));
        Ok((operator, converged))
    }

    /// Waits until it has written nothing for a while, or is seen to write on and on.
    fn settle(&self, operator: &mut Operator, ledger: &mut Ledger) -> Result<()> {
        const LONGEST: Duration = Duration::from_secs(60);
        let started = Instant::now();
        let mut last_write = started;
        while last_write.elapsed() < NO_WRITE && started.elapsed() < LONGEST {
            self.pass(Duration::from_millis(500))?;
            operator.check_running()?;
            if ledger.read()?.writes() > 0 {
                last_write = Instant::now();
            }
        }
        Ok(())
    }

    /// Starts it over converged objects until it has looked at all of them: its writes and its peak
    /// of memory. An operator that does not tell what it does has looked when it has asked for
    /// something and then for nothing in a while.
    fn restart(&self, launch: &Launch, ledger: &mut Ledger) -> Result<(u64, Option<u64>)> {
        say("restart: until every object had a pass");
        ledger.read()?;
        let mut operator = launch.start(self.dir)?;
        let mut requests = Tally::default();
        let mut last_request = None;
        loop {
            self.pass(Duration::from_millis(500))?;
            operator.check_running()?;
            let passed = operator.has_passed(self.kind(), self.arguments.services);
            let new = ledger.read()?;
            if new.total() > 0 {
                last_request = Some(Instant::now());
            }
            requests.add(new);
            let quiet = last_request.is_some_and(|last| last.elapsed() > NO_REQUEST);
            if passed.unwrap_or(quiet) {
                say(&format!("restart: writes: {}", requests.describe_writes()));
                return Ok((requests.writes(), operator.peak_memory()));
            }
            if operator.started.elapsed() > self.deadline() {
                bail!("the restarted operator did not look at every object");
            }
        }
    }

    fn launch(&self, plane: &ControlPlane) -> Result<Launch> {
        let kubeconfig = program::kubeconfig(plane)?;
        match &self.arguments.operator {
            None => Launch::ours(self.windlass, &kubeconfig),
            Some(command) => {
                program::grant_everything(plane)?;
                Ok(Launch::other(command, &kubeconfig))
            }
        }
    }

    fn render(&self, namespace: &str) -> Result<Work> {
        let scratch = self.dir.join("objects.yaml");
        Work::render(self.windlass, &self.manifest, self.arguments.services, namespace, &scratch)
    }

    fn site(&self, name: &str, namespace: &str) -> Result<ControlPlane> {
        say(&format!("{name}: starting a fresh API server"));
        let dir = self.dir.join(name);
        let plane = site::start(&self.assets, self.windlass, &dir, &self.crds, namespace)?;
        self.interrupted.check()?;
        // Times of debug builds mean nothing anyway.
        if !self.arguments.debug && !site::wait_for_rest(&plane, &self.interrupted)? {
            say("the API server does not come to rest; measuring anyway");
        }
        Ok(plane)
    }

    fn kind(&self) -> &str {
        text(&self.manifest, "/kind")
    }

    /// Far beyond what any operator that works needs.
    fn deadline(&self) -> Duration {
        Duration::from_secs(120) + Duration::from_secs(1) * self.arguments.services
    }

    fn pass(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            self.interrupted.check()?;
            thread::sleep(left.min(Duration::from_millis(100)));
        }
        Ok(())
    }

    /// Until it is done or Ctrl-C is pressed.
    fn wait<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let interrupted = async {
            while !self.interrupted.is_set() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        self.runtime.block_on(async {
            tokio::select! {
                outcome = work => outcome,
                () = interrupted => bail!("interrupted"),
            }
        })
    }
}
