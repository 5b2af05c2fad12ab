//! What `windlass up` shows of its pods: what is starting, and why it waits.
//!
//! `pod` says of one pod how far it is, `view` of all workloads; both are functions of what the API
//! has. `paint` makes lines of that for a terminal and `plain` for everything else, and `screen` keeps
//! them apart from what else is written to standard error.

mod paint;
mod plain;
mod pod;
mod screen;
mod view;

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use anyhow::Context;
use clap::{Args, ValueEnum};
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event as Told, Pod};
use kube::{
    Api, Client,
    api::LogParams,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

pub(super) use self::screen::Screen;
use self::{
    plain::Plain,
    pod::{Facts, Run},
    view::View,
};

/// Changes that come together are shown together.
const PAUSE: Duration = Duration::from_millis(100);
/// How often times are counted up, as long as there are some.
const TICK: Duration = Duration::from_secs(1);
/// A log is read in no time, or is not worth waiting for.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Args)]
#[group(id = "shown")]
pub(super) struct Flags {
    /// How to show, on standard error, which pods start and why they wait
    #[arg(long, value_name = "FORM", default_value = "auto")]
    progress: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// Redrawn in place on a terminal, else plain; nothing among log lines in JSON
    Auto,
    /// A line for each change
    Plain,
    /// Not at all
    None,
}

impl Flags {
    /// Where it is shown, which log lines have to pass too.
    pub(super) fn screen(&self, logs_are_json: bool) -> Arc<Screen> {
        let form = match self.progress {
            Form::Auto if logs_are_json => Form::None,
            form => form,
        };
        Arc::new(Screen::of_stderr(form))
    }
}

/// Shows how pods are, until told to stop; then, that they are being ended.
pub(super) async fn follow(
    client: Client,
    screen: Arc<Screen>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    if !screen.is_wanted() {
        return Ok(());
    }
    let mut shown = Shown { client: client.clone(), facts: Facts::default(), plain: None, screen };
    shown.plain = (!shown.screen.is_drawn()).then(Plain::default);
    let mut pods = pin!(watch(Api::<Pod>::all(client.clone()), watcher::Config::default()));
    let warnings = watcher::Config::default().fields("involvedObject.kind=Pod,type=Warning");
    let mut warnings = pin!(watch(Api::<Told>::all(client), warnings));
    let (mut resized, mut resumed) = (listen(SignalKind::window_change())?, listen(CONTINUED)?);
    let mut due: Option<Instant> = None;
    loop {
        let at = due.unwrap_or_else(|| Instant::now() + PATIENCE);
        tokio::select! {
            Some(event) = pods.next() => shown.facts.hear(event),
            Some(event) = warnings.next() => shown.facts.hear_warning(event),
            _ = resized.recv() => {}
            _ = resumed.recv() => shown.screen.forget(),
            () = sleep_until(at), if due.is_some() => {
                due = shown.show().await.then(|| Instant::now() + TICK);
                continue;
            }
            () = stop.cancelled() => break,
        }
        let soon = Instant::now() + PAUSE;
        // Not put off by what comes meanwhile.
        due = Some(due.map_or(soon, |due| due.min(soon)));
    }
    shown.say_end();
    Ok(())
}

/// As a shell does by `fg`, after whatever it has written meanwhile.
const CONTINUED: SignalKind = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());

fn listen(kind: SignalKind) -> anyhow::Result<Signal> {
    signal(kind).context("cannot listen for signals")
}

fn watch<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let events = watcher(api, config).default_backoff();
    // What cannot be watched now is asked for again.
    events.filter_map(|event| async { event.ok() })
}

struct Shown {
    client: Client,
    facts: Facts,
    /// What has been said, if it is not drawn.
    plain: Option<Plain>,
    screen: Arc<Screen>,
}

impl Shown {
    /// Whether there is something that changes with time.
    async fn show(&mut self) -> bool {
        self.read_logs().await;
        let now = Timestamp::now();
        self.facts.forget(now);
        let view = View::of(&self.facts, now);
        match &mut self.plain {
            Some(plain) => plain.next(&view).iter().for_each(|line| self.screen.say(line)),
            None => {
                let size = self.screen.size();
                self.screen.draw(paint::paint(&view, size, self.screen.has_colour(), now));
            }
        }
        view.rows.iter().any(|row| row.state.is_on_its_way())
    }

    /// The last line of each run that has failed without another word.
    async fn read_logs(&mut self) {
        let wanted: Vec<Run> = self.facts.runs().collect();
        let mut known = std::mem::take(&mut self.facts.lines);
        let mut lines = BTreeMap::new();
        for run in wanted {
            let line = match known.remove(&run) {
                Some(line) => line,
                None => self.last_line(&run).await,
            };
            lines.insert(run, line);
        }
        self.facts.lines = lines;
    }

    async fn last_line(&self, run: &Run) -> String {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &run.namespace);
        let last = LogParams {
            container: Some(run.container.clone()),
            previous: run.is_previous,
            tail_lines: Some(1),
            ..LogParams::default()
        };
        match timeout(PATIENCE, pods.logs(&run.pod, &last)).await {
            Ok(Ok(text)) => text,
            // Without it, the exit code has to do.
            _ => String::new(),
        }
    }

    fn say_end(&self) {
        let lines = paint::ending(self.facts.running(), self.plain.is_none());
        match &self.plain {
            Some(_) => lines.iter().for_each(|line| self.screen.say(&line.text)),
            None => self.screen.draw(lines),
        }
    }
}
