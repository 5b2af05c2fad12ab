//! One thread that computes a step for all running sequences at once, and who waits for their turn.
//!
//! [`Engine::submit`] hands a request over; its [`Event`]s come one by one. Whoever drops the
//! receiver is no longer computed for.

mod kept;
mod sequence;
mod stats;
#[cfg(test)]
mod tests;
mod work;

use std::{
    sync::{Arc, mpsc as blocking},
    thread,
};

use tokio::sync::{mpsc, watch};

use crate::{Error, Model, network::Shape, sample::Sampling};
pub use stats::Figures;
use stats::Stats;

/// What runs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// So many sequences; others wait.
    pub sequences: usize,
    /// The most tokens that one may have, prompt and answer together.
    pub tokens: usize,
}

/// Memory for the tokens of all sequences. There is always enough for one.
const ROOM: usize = 2 << 30;

impl Limits {
    /// For how many tokens there is room in all, of running sequences and of those that are kept.
    pub fn room(&self, shape: &Shape) -> usize {
        let most = self.sequences.saturating_mul(self.tokens).max(1);
        most.min(self.tokens.max(ROOM / shape.cache_bytes().max(1)))
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    /// Not empty; together with `max_tokens` no longer than the limit.
    pub prompt: Vec<u32>,
    pub max_tokens: usize,
    pub sampling: Sampling,
    /// Texts at which the answer ends; they are not part of it.
    pub stops: Vec<String>,
    /// Go on where the model would end.
    pub ignore_end: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// What `tokens` more tokens mean; may be empty, where the text is not certain yet.
    Text {
        text: String,
        tokens: usize,
    },
    Finished(Reason),
    /// The step has failed; nothing more comes.
    Failed(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The model has ended, or said one of the stops.
    Stop,
    /// There may be no more tokens.
    Length,
}

/// Its thread ends when this is dropped and nothing runs any more.
#[derive(Debug)]
pub struct Engine {
    queue: blocking::Sender<work::Job>,
    stats: Arc<Stats>,
    /// The other end is the thread's, however it ends.
    thread: watch::Receiver<()>,
}

impl Engine {
    pub fn start(model: Arc<Model>, limits: Limits) -> Result<Self, Error> {
        let stats = Arc::new(Stats::new(limits.room(model.network.shape())));
        let told = Arc::clone(&stats);
        Self::run_by(stats, move |jobs| work::Worker::new(&model, limits, &told).run(jobs))
    }

    fn run_by(
        stats: Arc<Stats>,
        work: impl FnOnce(&blocking::Receiver<work::Job>) + Send + 'static,
    ) -> Result<Self, Error> {
        let (queue, jobs) = blocking::channel();
        let (alive, thread) = watch::channel(());
        let run = move || {
            work(&jobs);
            drop(alive);
        };
        thread::Builder::new()
            .name("inference".to_owned())
            .spawn(run)
            .map_err(|source| Error::Thread { source })?;
        Ok(Self { queue, stats, thread })
    }

    /// Whether requests can be answered. What computes may have failed for good.
    pub fn is_alive(&self) -> bool {
        self.thread.has_changed().is_ok()
    }

    /// When it is no longer alive.
    pub async fn ended(&self) {
        let mut thread = self.thread.clone();
        while thread.changed().await.is_ok() {}
    }

    pub fn submit(&self, request: Request) -> mpsc::UnboundedReceiver<Event> {
        let (events, receiver) = mpsc::unbounded_channel();
        if request.prompt.is_empty() {
            // The receiver is ours.
            let _ = events.send(Event::Failed("the prompt is empty".to_owned()));
            return receiver;
        }
        self.stats.waits();
        if let Err(refused) = self.queue.send(work::Job { request, events }) {
            self.stats.leaves_queue();
            let over = "the engine has ended".to_owned();
            // The receiver is ours.
            let _ = refused.0.events.send(Event::Failed(over));
        }
        receiver
    }

    pub fn figures(&self) -> Figures {
        self.stats.figures()
    }
}
