//! The one writer: changes run one after another and are committed together.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{Arc, PoisonError},
};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{
    Change, Error, Key, Mode, Object, Shared, State,
    disk::{self, Disk},
    state::{Entry, Objects},
};

/// How many changes share one commit at most, so that the first does not wait for ever.
const BATCH: usize = 512;

/// Runs the change and returns what tells its sender the outcome.
pub(super) type Job = Box<dyn FnOnce(&mut Transaction<'_>) -> Reply + Send>;
type Reply = Box<dyn FnOnce(Committed) + Send>;

#[derive(Clone)]
pub(super) enum Committed {
    Yes,
    /// There is no room for it, in these words.
    Full(String),
    No,
}

pub(super) fn job<T, E>(
    mode: Mode,
    change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    answer: oneshot::Sender<Result<Result<T, E>, Error>>,
) -> Job
where
    T: Send + 'static,
    E: Send + 'static,
{
    Box::new(move |transaction| {
        let start = transaction.changes.len();
        // A mistake in one change must not end the writer. What it did is undone, and it has
        // nothing else to leave behind.
        let outcome = catch_unwind(AssertUnwindSafe(|| change(transaction)));
        if mode == Mode::Try || !matches!(outcome, Ok(Ok(_))) {
            transaction.undo(start);
        }
        let outcome = outcome.map_err(|_| Error::Panicked);
        Box::new(move |committed| {
            let outcome = match committed {
                Committed::Yes => outcome,
                Committed::Full(why) => Err(Error::Full { why }),
                Committed::No => Err(Error::Stopped),
            };
            // Who asked may have gone away.
            let _ = answer.send(outcome);
        })
    })
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    /// `None` after there was no room: redb writes no more to a file on which it has failed, so that
    /// has to be opened anew.
    disk: Option<Disk>,
    /// Where the file is, if there is one.
    path: Option<PathBuf>,
    jobs: mpsc::UnboundedReceiver<Job>,
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        disk: Disk,
        path: Option<PathBuf>,
        jobs: mpsc::UnboundedReceiver<Job>,
    ) -> Self {
        Self { shared, disk: Some(disk), path, jobs }
    }

    pub(super) fn run(mut self) {
        while let Some(first) = self.jobs.blocking_recv() {
            let mut waiting = vec![first];
            while waiting.len() < BATCH
                && let Ok(job) = self.jobs.try_recv()
            {
                waiting.push(job);
            }
            let (changes, replies) = self.stage(waiting);
            // redb panics over some of what it finds in a file. A writer that ended by that would leave
            // a store that looks alive.
            let committed = catch_unwind(AssertUnwindSafe(|| self.commit(&changes)));
            let panicked = |_| Err(redb::Error::Corrupted("a commit failed inside".into()));
            match committed.unwrap_or_else(panicked) {
                Ok(()) => {}
                Err(error) if self.path.is_some() && disk::is_full(&error) => {
                    tracing::warn!(%error, "changes are refused until there is room");
                    let full = Committed::Full(error.to_string());
                    replies.into_iter().for_each(|reply| reply(full.clone()));
                    continue;
                }
                Err(error) => {
                    tracing::error!(%error, "the store cannot write and stops");
                    self.shared.newest.send_replace(None);
                    replies.into_iter().for_each(|reply| reply(Committed::No));
                    return;
                }
            }
            if let Some(last) = changes.last().map(|change| change.version) {
                let mut state = self.shared.state.write().unwrap_or_else(PoisonError::into_inner);
                state.publish(changes);
                drop(state);
                self.shared.newest.send_replace(Some(last));
            }
            replies.into_iter().for_each(|reply| reply(Committed::Yes));
        }
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), redb::Error> {
        if changes.is_empty() {
            return Ok(());
        }
        let disk = match (self.disk.take(), &self.path) {
            (Some(disk), _) => disk,
            (None, Some(path)) => Disk::reopen(path, &self.shared.read())?,
            (None, None) => return Err(redb::Error::DatabaseClosed),
        };
        disk.commit(changes)?;
        self.disk = Some(disk);
        Ok(())
    }

    fn stage(&self, jobs: Vec<Job>) -> (Vec<Change>, Vec<Reply>) {
        let state = self.shared.read();
        let mut transaction = Transaction {
            state: &state,
            now: (self.shared.clock)(),
            changes: Vec::new(),
            staged: HashMap::new(),
        };
        let replies = jobs.into_iter().map(|job| job(&mut transaction)).collect();
        (transaction.changes, replies)
    }
}

/// The newest state with what this batch has changed so far.
pub struct Transaction<'a> {
    state: &'a State,
    now: Timestamp,
    changes: Vec<Change>,
    /// Where in `changes` the newest of a key is.
    staged: HashMap<Key, usize>,
}

impl Transaction<'_> {
    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn version(&self) -> u64 {
        self.changes.last().map_or(self.state.version(), |change| change.version)
    }

    /// What was there before this batch: enough where a moment's delay does no harm.
    pub fn state(&self) -> &State {
        self.state
    }

    pub fn get(&self, key: &Key) -> Option<Arc<Object>> {
        match self.staged.get(key).and_then(|at| self.changes.get(*at)) {
            Some(change) => change.new.clone(),
            None => self.state.get(key).cloned(),
        }
    }

    /// In the order of the keys; see [`State::list`].
    pub fn list(&self, resource: &str, prefix: &str) -> Vec<Entry> {
        let found = self.state.list(resource, prefix);
        let mut all: Objects = found.map(|(key, object)| (key.clone(), object.clone())).collect();
        for change in &self.changes {
            if *change.key.resource == *resource && change.key.name.starts_with(prefix) {
                match &change.new {
                    Some(object) => all.insert(change.key.name.clone(), object.clone()),
                    None => all.remove(&change.key.name),
                };
            }
        }
        all.into_iter().collect()
    }

    pub fn put(&mut self, key: &Key, value: Value) -> Arc<Object> {
        let object = Arc::new(Object::new(value, self.version() + 1));
        self.stage(key, Some(object.clone()));
        object
    }

    /// The version of the removal, if there was something to remove.
    pub fn remove(&mut self, key: &Key) -> Option<u64> {
        self.get(key)?;
        self.stage(key, None);
        Some(self.version())
    }

    fn stage(&mut self, key: &Key, new: Option<Arc<Object>>) {
        let (old, version) = (self.get(key), self.version() + 1);
        self.staged.insert(key.clone(), self.changes.len());
        self.changes.push(Change { version, key: key.clone(), old, new, at: self.now });
    }

    fn undo(&mut self, start: usize) {
        if self.changes.len() == start {
            return;
        }
        self.changes.truncate(start);
        self.staged = HashMap::new();
        for (at, change) in self.changes.iter().enumerate() {
            self.staged.insert(change.key.clone(), at);
        }
    }
}
