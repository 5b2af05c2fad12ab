//! A container's run, from its start to its end.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::{
    net::unix::pipe,
    sync::watch,
    task::{JoinSet, spawn_blocking},
    time::{sleep, timeout},
};

use super::{Message, Worker};
use crate::{
    http::LogRun,
    node::{
        Node,
        launch::Ready,
        limits::{Group, KILLED},
        logs::{self, Stream, Writer},
        mark::Mark,
        memory::{self, Doubt, Memory},
        pod::{self, Cause, Ended, Probe, Reason, Started, post_start},
        probes::{self, Target},
        process::{self, Process, Running},
        processes,
        record::Record,
    },
};

/// Output may still be on its way when a process has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(2);
/// A hook has no limit of its own.
const HOOK: Duration = Duration::from_secs(24 * 3600);

/// A run in its course. Letting go of it ends the process and all that watches it.
pub(super) struct Live {
    pub(super) id: String,
    pub(super) process: Arc<Process>,
    pub(super) target: Target,
    /// Opens the gate for probes other than the startup probe.
    pub(super) started: watch::Sender<bool>,
    /// Until when it has to end, once it has to.
    pub(super) deadline: Option<watch::Sender<Timestamp>>,
    pub(super) tasks: JoinSet<()>,
    since: Timestamp,
    restarts: i32,
    group: Option<Group>,
    /// It was ended for its memory.
    is_too_large: Arc<AtomicBool>,
}

impl Worker {
    /// Writes down what is about to run, runs it, and watches over it.
    pub(super) fn launch(
        &mut self,
        spec: Arc<Container>,
        ready: Ready,
    ) -> Result<Started, (Cause, String)> {
        let create = |error: &dyn std::error::Error| (Cause::Create, chain(error));
        let (id, token) =
            (random().map_err(|error| create(&error))?, random().map_err(|error| create(&error))?);
        let mut record = self.record(&spec.name, &id, token, &ready.image_id);
        let log = log_of(&self.uid(), &spec.name, record.restarts);
        let log = self.node.logs.start(log).map_err(|error| create(&error))?;
        let group = self.node.limits.group(&id, &spec);
        record.group = group.as_ref().map(|group| group.path().to_owned());
        // Before there is a process, so that none can be without a record.
        self.records.put(&spec.name, record.clone()).map_err(|error| create(&error))?;
        let running = match process::start(&ready.launch, &record.token) {
            Ok(running) => running,
            Err(error) => {
                let program = ready.launch.program.display().to_string();
                return Ok(self.failed(&spec.name, record, process::explain(&program, &error)));
            }
        };
        record.process.clone_from(&running.process.identity);
        let mark = Mark::of(&record.token);
        let join = |group: &Group| {
            running.process.hold(|pid| group.add(pid.as_raw_pid())).transpose()?;
            group.gather(|| processes::marked(&mark))
        };
        if let Some(group) = &group
            && let Err(error) = join(group)
        {
            tracing::warn!(%error, "cannot set the limits of a container");
        }
        self.records.put(&spec.name, record.clone()).map_err(|error| create(&error))?;
        let started = Started {
            id: id.clone(),
            image_id: ready.image_id.clone(),
            at: record.started,
            failed: None,
        };
        let live = self.watch(&spec, ready, running, (record, group), log);
        self.live.insert(spec.name.clone(), live);
        Ok(started)
    }

    fn record(&self, name: &str, id: &str, token: String, image_id: &str) -> Record {
        Record {
            id: id.to_owned(),
            restarts: self.known.next_restarts(name),
            image_id: image_id.to_owned(),
            started: Timestamp::now(),
            token,
            process: None,
            group: None,
            ended: None,
        }
    }

    /// A program that cannot be run counts as a run that has ended.
    pub(super) fn note_failure(
        &mut self,
        name: &str,
        text: String,
    ) -> Result<Started, (Cause, String)> {
        let id = random().map_err(|error| (Cause::Create, chain(&error)))?;
        let record = self.record(name, &id, String::new(), "");
        Ok(self.failed(name, record, text))
    }

    fn failed(&mut self, name: &str, mut record: Record, text: String) -> Started {
        let started = Started {
            id: record.id.clone(),
            image_id: record.image_id.clone(),
            at: record.started,
            failed: Some(text.clone()),
        };
        record.ended = Some(Ended {
            id: record.id.clone(),
            exit_code: 128,
            reason: Reason::StartError,
            message: text,
            started: record.started,
            finished: record.started,
        });
        if let Err(error) = self.records.put(name, record) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot note the end of a run"
            );
        }
        started
    }

    fn watch(
        &self,
        spec: &Arc<Container>,
        ready: Ready,
        running: Running,
        (record, group): (Record, Option<Group>),
        log: Arc<Writer>,
    ) -> Live {
        let Running { process, stdout, stderr, end } = running;
        let target = Target {
            host: self.known.address.clone().unwrap_or_default(),
            container: spec.clone(),
            launch: Arc::new(ready.launch),
            token: record.token,
            mounts: ready.mounts,
        };
        let (mailbox, id, name) = (self.mailbox.clone(), record.id.clone(), spec.name.clone());
        let mut output = JoinSet::new();
        for (from, stream) in [(stdout, Stream::Stdout), (stderr, Stream::Stderr)] {
            match pipe::Receiver::from_owned_fd(from) {
                Ok(from) => {
                    let clock = Arc::new(Timestamp::now);
                    drop(output.spawn(logs::pump(from, stream, log.clone(), clock)));
                }
                Err(error) => tracing::warn!(%error, "cannot read what a process says"),
            }
        }
        drop(log);
        tokio::spawn(async move {
            // Without an answer the waiter has failed; it has said so.
            let code = end.await.unwrap_or(255);
            let _ = timeout(LAST_OUTPUT, output.join_all()).await;
            let _ = mailbox.send(Message::Ended { container: name, id, code });
        });
        let (started, gate) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for probe in [Probe::Startup, Probe::Readiness, Probe::Liveness] {
            let Some(asked) = probe.of(spec).cloned() else { continue };
            let (mailbox, name, id) = (self.mailbox.clone(), spec.name.clone(), record.id.clone());
            let tell = async move |word| {
                let (container, id) = (name.clone(), id.clone());
                let _ = mailbox.send(Message::Probe { container, id, probe, word });
            };
            tasks.spawn(probes::watch(probe, asked, target.clone(), gate.clone(), tell));
        }
        if let Some(hook) = post_start(spec).cloned() {
            let (mailbox, target) = (self.mailbox.clone(), target.clone());
            let (container, id) = (spec.name.clone(), record.id.clone());
            tasks.spawn(async move {
                let failed = probes::hook(&hook, &target, HOOK).await.err();
                let _ = mailbox.send(Message::Hook { container, id, failed });
            });
        }
        let process = Arc::new(process);
        let is_too_large: Arc<AtomicBool> = Arc::default();
        if let Some(limit) = memory::limit(spec).filter(|_| group.is_none()) {
            let (memory, process) = (self.node.memory.clone(), process.clone());
            let mark = Mark::of(&target.token);
            tasks.spawn(keep_to(memory, mark, limit, process, is_too_large.clone()));
        }
        Live {
            id: record.id,
            process,
            target,
            started,
            deadline: None,
            tasks,
            since: record.started,
            restarts: record.restarts,
            group,
            is_too_large,
        }
    }
}

/// Ends a run that has more memory than it may have.
async fn keep_to(
    memory: Arc<Memory>,
    mark: Mark,
    limit: u64,
    process: Arc<Process>,
    is_too_large: Arc<AtomicBool>,
) {
    let mut doubt = Doubt::default();
    loop {
        sleep(memory::PAUSE).await;
        let (all, mark) = (memory.clone(), mark.clone());
        let is_over = spawn_blocking(move || all.is_over(&mark, limit)).await;
        if doubt.is_over(is_over.unwrap_or(false)) {
            is_too_large.store(true, Ordering::Relaxed);
            return process.kill();
        }
    }
}

impl Live {
    /// Probes and hooks go on until the end of the main process is heard of. What they have started
    /// since then ends too, while the record by which it could be found later is still there.
    pub(super) async fn end_rest(&mut self) {
        self.tasks.shutdown().await;
        let token = self.target.token.clone();
        if let Err(error) = spawn_blocking(move || processes::end_marked(&token)).await {
            tracing::warn!(%error, "cannot end what a container has left");
        }
    }

    pub(super) fn ended(&self, node: &Node, pod: &Pod, container: &str, code: i32) -> Ended {
        Ended {
            id: self.id.clone(),
            exit_code: code,
            reason: match &self.group {
                Some(group) if group.was_too_large(code) => Reason::OOMKilled,
                None if code == KILLED && self.is_too_large.load(Ordering::Relaxed) => {
                    Reason::OOMKilled
                }
                _ => Reason::of(code),
            },
            message: self.last_words(node, pod, container, code),
            started: self.since,
            finished: Timestamp::now(),
        }
    }

    /// What the container left in its file or, if it wants that, at the end of its log.
    fn last_words(&self, node: &Node, pod: &Pod, container: &str, code: i32) -> String {
        let wants_log = pod::container(pod, container).is_some_and(|(_, spec)| {
            spec.termination_message_policy.as_deref() == Some("FallbackToLogsOnError")
        });
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let log = log_of(uid, container, self.restarts);
        logs::last_words(&node.logs, &log, wants_log && code != 0)
    }
}

fn log_of(uid: &str, container: &str, restarts: i32) -> LogRun {
    let run = restarts.max(0).unsigned_abs();
    LogRun { pod: uid.to_owned(), container: container.to_owned(), run }
}

/// Nobody can guess it, and nobody else has it.
fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    let mut text = String::with_capacity(32);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
