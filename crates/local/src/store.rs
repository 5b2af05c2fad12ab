//! Objects, their versions and their history, durable on disk.
//!
//! Everything is in memory; the file is only read at the start. One writer runs the changes that
//! wait as one batch and commits them together, and nothing is seen or answered before that.

mod disk;
mod history;
mod mark;
mod object;
mod overlay;
mod state;
mod writer;

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::{self, Arc, Mutex, PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

pub use history::{Change, Cursor, Expired};
pub use object::{Key, Object};
pub use state::{Entry, State};
pub use writer::Transaction;

/// What time it is. Tests bring their own.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open the store {path}")]
    Open { path: String, source: Box<redb::Error> },
    #[error("cannot read the store {path}: it is damaged")]
    Damaged { path: String },
    #[error("another process uses the store {path}")]
    InUse { path: String },
    #[error("cannot read the store")]
    Read(#[source] Box<redb::Error>),
    #[error("the store holds {key}, which is not an object")]
    Unreadable { key: String, source: serde_json::Error },
    #[error("the store has format {found}, this program reads {known}")]
    Format { found: u64, known: u64 },
    #[error("cannot make the store {path}")]
    Create { path: String, source: std::io::Error },
    #[error("cannot start the store's writer")]
    Writer(#[source] std::io::Error),
    /// There is no room. Nothing of the change is stored; a later one may be.
    #[error("there is no room in the store: {why}")]
    Full { why: String },
    /// The store cannot be used any more.
    #[error("the store cannot write")]
    Stopped,
    /// The change itself went wrong in a way nobody foresaw. Nothing of it is stored.
    #[error("a change failed inside")]
    Panicked,
}

/// Whether a change is to happen or only to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Store,
    Try,
}

#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    jobs: mpsc::UnboundedSender<writer::Job>,
    /// Hung up when the writer has let go of the file.
    ended: Arc<Mutex<sync::mpsc::Receiver<Infallible>>>,
}

/// What the writer and the readers have in common.
struct Shared {
    state: RwLock<State>,
    /// The newest version; `None` once the store cannot write.
    newest: watch::Sender<Option<u64>>,
    clock: Clock,
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        // The state is changed by single assignments that cannot leave it half done.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// The file is made if it is missing, readable by its owner only.
    pub fn open(path: &Path, clock: Clock) -> Result<Self, Error> {
        let (disk, found) = disk::Disk::open(path)?;
        if found.is_undone {
            let path = path.display();
            tracing::warn!(%path, "the last change of the store could not be read and was undone");
        }
        if let Some(disk::Lost { was, is }) = found.lost {
            let path = path.display();
            tracing::warn!(%path, was, is, "the store is older than it was: changes are lost");
        }
        Self::start(disk, Some(path.to_owned()), found.state, clock)
    }

    /// The same code on memory, gone when dropped.
    pub fn in_memory(clock: Clock) -> Result<Self, Error> {
        let disk = disk::Disk::in_memory()?;
        let state = disk.load()?;
        Self::start(disk, None, state, clock)
    }

    fn start(
        disk: disk::Disk,
        path: Option<PathBuf>,
        state: State,
        clock: Clock,
    ) -> Result<Self, Error> {
        let newest = watch::Sender::new(Some(state.version()));
        let shared = Arc::new(Shared { state: RwLock::new(state), newest, clock });
        let (jobs, waiting) = mpsc::unbounded_channel();
        let writer = writer::Writer::new(shared.clone(), disk, path, waiting);
        let (running, ended) = sync::mpsc::channel();
        std::thread::Builder::new()
            .name("store".into())
            .spawn(move || {
                writer.run();
                drop(running);
            })
            .map_err(Error::Writer)?;
        Ok(Self { shared, jobs, ended: Arc::new(Mutex::new(ended)) })
    }

    /// Waits until the file is closed, which it is once no other handle is left; whether that came
    /// to pass in time. Nothing that was answered depends on it.
    pub fn close(self, patience: Duration) -> bool {
        let Self { jobs, ended, .. } = self;
        drop(jobs);
        let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.recv_timeout(patience) == Err(sync::mpsc::RecvTimeoutError::Disconnected)
    }

    pub fn now(&self) -> Timestamp {
        (self.shared.clock)()
    }

    /// The newest state. Hold it shortly: the writer waits for it.
    pub fn read(&self) -> RwLockReadGuard<'_, State> {
        self.shared.read()
    }

    /// Runs `change` against the newest state, alone. It is durable when this returns.
    ///
    /// An `Err` of the change undoes what it did, as does [`Mode::Try`].
    pub async fn write<T, E>(
        &self,
        mode: Mode,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<Result<T, E>, Error>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job = writer::job(mode, change, answer);
        self.jobs.send(job).map_err(|_| Error::Stopped)?;
        answered.await.map_err(|_| Error::Stopped)?
    }

    /// Everything after `version`. See [`Cursor::next`].
    pub fn follow(&self, version: u64) -> Cursor {
        Cursor::new(self.shared.clone(), version)
    }

    /// Returns once the store cannot write any more.
    pub async fn stopped(&self) {
        let mut newest = self.shared.newest.subscribe();
        // The sender lives as long as `self`.
        let _ = newest.wait_for(Option::is_none).await;
    }

    pub fn is_stopped(&self) -> bool {
        self.shared.newest.borrow().is_none()
    }

    /// Waits until `version` is there.
    pub async fn reached(&self, version: u64) {
        let mut newest = self.shared.newest.subscribe();
        let _ = newest.wait_for(|newest| newest.is_none_or(|newest| newest >= version)).await;
    }
}

#[cfg(test)]
mod tests;
