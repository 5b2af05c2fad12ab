//! What has changed lately, and the readers that follow it.

use std::{collections::VecDeque, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use super::{Key, Object, Shared};

/// A change is kept for at least this long and among at least this many, but never in more room.
const AGE: SignedDuration = SignedDuration::from_mins(5);
const COUNT: usize = 10_000;
const ROOM: usize = 64 << 20;
/// What a reader takes at once, in number and in room, so that a slow one does not hold much.
const BATCH: usize = 256;
const BATCH_ROOM: usize = 1 << 20;

#[derive(Clone, Debug)]
pub struct Change {
    pub version: u64,
    pub key: Key,
    pub old: Option<Arc<Object>>,
    pub new: Option<Arc<Object>>,
    pub(super) at: Timestamp,
}

impl Change {
    fn size(&self) -> usize {
        // The old one is the new one of an earlier change.
        self.new.as_ref().or(self.old.as_ref()).map_or(0, |object| object.size())
    }
}

/// The wanted version is older than what is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    pub wanted: u64,
    pub oldest: u64,
}

pub(super) struct History {
    /// One for every version after `start`, without a gap.
    changes: VecDeque<Change>,
    start: u64,
    size: usize,
}

impl History {
    pub(super) fn new(start: u64) -> Self {
        Self { changes: VecDeque::new(), start, size: 0 }
    }

    pub(super) fn push(&mut self, change: Change) {
        let now = change.at;
        self.size += change.size();
        self.changes.push_back(change);
        while let Some(first) = self.changes.front() {
            let old = now.duration_since(first.at) > AGE && self.changes.len() > COUNT;
            if !old && self.size <= ROOM {
                break;
            }
            self.size -= first.size();
            self.start = first.version;
            self.changes.pop_front();
        }
    }

    /// The changes after `version`, newest first.
    pub(super) fn undo(&self, version: u64) -> Result<impl Iterator<Item = &Change>, Expired> {
        Ok(self.after(version)?.rev())
    }

    fn after(&self, version: u64) -> Result<impl DoubleEndedIterator<Item = &Change>, Expired> {
        let Some(skip) = version.checked_sub(self.start) else {
            return Err(Expired { wanted: version, oldest: self.start + 1 });
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(self.changes.len());
        Ok(self.changes.range(skip..))
    }
}

/// A place in the history. It holds no queue: who reads slowly may find that it has fallen off.
pub struct Cursor {
    shared: Arc<Shared>,
    newest: watch::Receiver<Option<u64>>,
    at: u64,
}

impl Cursor {
    pub(super) fn new(shared: Arc<Shared>, at: u64) -> Self {
        let newest = shared.newest.subscribe();
        Self { shared, newest, at }
    }

    /// Everything up to here has been handed out or was of no interest.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Some of the changes that wait, those of one resource or of all. It may be none.
    pub fn take(&mut self, resource: Option<&str>) -> Result<Vec<Change>, Expired> {
        let state = self.shared.read();
        let mut found = Vec::new();
        let mut room = 0;
        for change in state.history().after(self.at)? {
            if resource.is_none_or(|resource| *change.key.resource == *resource) {
                room += change.size();
                found.push(change.clone());
            }
            self.at = change.version;
            if found.len() == BATCH || room >= BATCH_ROOM {
                break;
            }
        }
        Ok(found)
    }

    /// Waits for changes of the resource; an empty answer means that the store has stopped.
    /// Nothing is lost when this is dropped while it waits.
    pub async fn next(&mut self, resource: Option<&str>) -> Result<Vec<Change>, Expired> {
        loop {
            let seen = *self.newest.borrow_and_update();
            let found = self.take(resource)?;
            if !found.is_empty() || seen.is_none() {
                return Ok(found);
            }
            let at = self.at;
            let later = |newest: &Option<u64>| newest.is_none_or(|newest| newest > at);
            if self.newest.wait_for(later).await.is_err() {
                return Ok(Vec::new());
            }
        }
    }
}
