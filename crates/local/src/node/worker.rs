//! One task per pod: does what [`pod::step`] says, and tells the API.

mod act;
mod report;
mod run;
mod stop;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{
    Node,
    pod::{self, Action, Ended, Known, Note, Probe, Why, unhealthy},
    probes::Word,
    record::Records,
    sources::Sources,
    volumes::Directories,
};
use run::Live;

/// What a worker hears.
pub(super) enum Message {
    /// The object, as it is now.
    Pod(Arc<Pod>),
    /// The object is gone.
    Gone,
    /// The node stops.
    Shutdown,
    /// It does, and whoever has stopped it does not want to wait.
    Hurry,
    Ended {
        container: String,
        id: String,
        code: i32,
    },
    Probe {
        container: String,
        id: String,
        probe: Probe,
        word: Word,
    },
    Hook {
        container: String,
        id: String,
        failed: Option<String>,
    },
    Note(Note),
}

/// The way to a worker.
pub(super) type Mailbox = mpsc::UnboundedSender<Message>;

pub(super) struct Worker {
    node: Arc<Node>,
    pod: Arc<Pod>,
    known: Known,
    records: Records,
    /// What runs, by container.
    live: BTreeMap<String, Live>,
    sources: Sources,
    directories: Directories,
    /// When volumes are looked at again.
    refresh: Option<Instant>,
    inbox: mpsc::UnboundedReceiver<Message>,
    mailbox: Mailbox,
    /// The status that the API has.
    written: Option<PodStatus>,
    /// The API did not answer: until then it is not asked again.
    silence: Option<Instant>,
    is_gone: bool,
    is_removed: bool,
}

const AGAIN: Duration = Duration::from_secs(1);
/// How soon volumes follow the objects they are filled from.
const REFRESH: Duration = Duration::from_secs(10);

impl Worker {
    pub(super) fn new(node: Arc<Node>, pod: Arc<Pod>, records: Records) -> (Self, Mailbox) {
        let (mailbox, inbox) = mpsc::unbounded_channel();
        let known = pod::restore(&pod, records.runs(), Timestamp::now());
        let worker = Self {
            written: pod.status.clone(),
            node,
            known,
            records,
            live: BTreeMap::new(),
            sources: Sources::default(),
            directories: Directories::default(),
            refresh: None,
            inbox,
            mailbox: mailbox.clone(),
            silence: None,
            is_gone: false,
            is_removed: false,
            pod,
        };
        (worker, mailbox)
    }

    /// Until the object is gone and nothing of it is left, or the node stops.
    pub(super) async fn run(mut self) {
        loop {
            let step = pod::step(&self.pod, &mut self.known, Timestamp::now());
            self.node.recorder.tell(&self.pod, step.notes);
            if !self.is_gone && !self.is_shut_down() {
                self.report().await;
            }
            if self.known.is_still()
                && self.live.is_empty()
                && (self.is_gone || self.is_shut_down())
            {
                break;
            }
            let may_go = !(self.is_removed || self.is_gone || self.silence.is_some());
            let mut actions = step.actions;
            actions.retain(|action| *action != Action::Remove || may_go);
            if actions.is_empty() {
                self.wait(step.wake).await;
            }
            for action in actions {
                self.act(action).await;
            }
            while let Ok(message) = self.inbox.try_recv() {
                self.hear(message).await;
            }
        }
        if self.is_gone {
            self.clean_up().await;
        }
    }

    fn is_shut_down(&self) -> bool {
        self.known.stop.as_ref().is_some_and(|stop| stop.why == Why::Shutdown)
    }

    /// Until something is heard, or something is due.
    async fn wait(&mut self, wake: Option<Timestamp>) {
        let wake = wake.map(|at| {
            let left = at.duration_since(Timestamp::now());
            Instant::now() + left.try_into().unwrap_or(Duration::ZERO)
        });
        let silence = self.silence.filter(|until| *until > Instant::now());
        let due = [wake, silence, self.refresh].into_iter().flatten().min();
        let message = match due {
            Some(due) => tokio::select! {
                message = self.inbox.recv() => message,
                () = sleep_until(due) => None,
            },
            None => self.inbox.recv().await,
        };
        match message {
            Some(message) => self.hear(message).await,
            None if self.refresh.is_some_and(|at| at <= Instant::now()) => {
                self.look_at_volumes().await
            }
            None => {}
        }
    }

    async fn hear(&mut self, message: Message) {
        let now = Timestamp::now();
        match message {
            Message::Pod(pod) => {
                // The answer to our own write may have come before.
                if version(&pod) >= version(&self.pod) {
                    self.pod = pod;
                }
            }
            Message::Gone => {
                self.is_gone = true;
                self.known.forsaken(now);
            }
            Message::Shutdown => self.known.shut_down(&self.pod, now),
            Message::Hurry => self.known.hurry(now),
            Message::Ended { container, id, code } => self.ended(&container, &id, code).await,
            Message::Probe { container, id, probe, word } if self.is_current(&container, &id) => {
                let notes = match word {
                    Word::Failed(text) => vec![unhealthy(&container, probe, &text)],
                    Word::Verdict(passed) => {
                        self.known.probed(&self.pod, &container, probe, passed, now)
                    }
                };
                self.node.recorder.tell(&self.pod, notes);
                self.pass_gate(&container);
            }
            Message::Hook { container, id, failed } if self.is_current(&container, &id) => {
                if let Some(text) = &failed {
                    tracing::debug!(container, text, "a hook has failed");
                }
                let notes = self.known.hook_done(&self.pod, &container, failed.is_none(), now);
                self.node.recorder.tell(&self.pod, notes);
                self.pass_gate(&container);
            }
            Message::Note(note) => self.node.recorder.tell(&self.pod, vec![note]),
            // Of a run that is over.
            Message::Probe { .. } | Message::Hook { .. } => {}
        }
    }

    fn is_current(&self, container: &str, id: &str) -> bool {
        self.live.get(container).is_some_and(|live| live.id == id)
    }

    /// Probes that wait for the start may begin.
    fn pass_gate(&self, container: &str) {
        let started = self.known.containers.get(container).is_some_and(|known| known.started);
        if let Some(live) = self.live.get(container) {
            live.started.send_if_modified(|known| std::mem::replace(known, started) != started);
        }
    }

    async fn ended(&mut self, container: &str, id: &str, code: i32) {
        if !self.is_current(container, id) {
            return;
        }
        let Some(mut live) = self.live.remove(container) else { return };
        live.end_rest().await;
        let ended: Ended = live.ended(&self.node, &self.pod, container, code);
        // The next start says how a run ended that only the end of the node has ended.
        if !self.is_shut_down()
            && let Err(error) = self.records.end(container, &ended)
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot note the end of a run"
            );
        }
        self.known.ended(container, ended);
    }
}

/// The API counts its versions.
fn version(pod: &Pod) -> u64 {
    let version = pod.metadata.resource_version.as_deref();
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}
