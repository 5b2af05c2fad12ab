//! The work of one controller: which objects to look at, when, and never one of them twice at once.
//!
//! A key waits in at most one place. Adding a key that is being worked on makes it run again
//! afterwards, so no event is lost; adding a key that waits for later brings it forward.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    future::Future,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::{cache::Version, kind::ObjectKey};

#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<ObjectKey>,
    queued: HashSet<ObjectKey>,
    /// Being worked on, with why it was added again meanwhile.
    running: HashMap<ObjectKey, Vec<Cause>>,
    later: BTreeSet<(Instant, ObjectKey)>,
    due: HashMap<ObjectKey, Instant>,
    attempts: HashMap<ObjectKey, u32>,
}

/// Why a key is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    Any,
    /// An object of it has got this version.
    Version(Version),
}

/// When to look at a key again after a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// When something happens.
    OnEvent,
    After(Duration),
    /// Something failed that may pass: soon at first, then less and less often.
    Backoff,
    /// The same, but not later than this: the judgement changes by then without any event.
    BackoffWithin(Duration),
    /// Only a person can mend it, and not every mending is an event: now and then.
    Slowly,
}

/// The delays of [`Again::Backoff`] and [`Again::Slowly`].
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    pub first: Duration,
    pub longest: Duration,
    pub slow: (Duration, Duration),
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(200),
            longest: Duration::from_secs(120),
            slow: (Duration::from_secs(30), Duration::from_secs(300)),
        }
    }
}

impl Queue {
    pub fn add(&self, key: ObjectKey) {
        self.add_because(key, Cause::Any);
    }

    /// An object of the key has got this version.
    pub fn add_for(&self, key: ObjectKey, version: Version) {
        self.add_because(key, Cause::Version(version));
    }

    fn add_because(&self, key: ObjectKey, cause: Cause) {
        let mut state = self.lock();
        state.forget_later(&key);
        if let Some(causes) = state.running.get_mut(&key) {
            causes.push(cause);
        } else if state.queued.insert(key.clone()) {
            state.ready.push_back(key);
            drop(state);
            self.changed.notify_one();
        }
    }

    pub fn add_after(&self, key: ObjectKey, delay: Duration) {
        let mut state = self.lock();
        let due = Instant::now() + delay;
        let sooner = state.due.get(&key).is_some_and(|known| *known <= due);
        if sooner || state.queued.contains(&key) {
            return;
        }
        state.forget_later(&key);
        state.due.insert(key.clone(), due);
        state.later.insert((due, key));
        drop(state);
        // The next sleeper may have to wake earlier than planned.
        self.changed.notify_one();
    }

    /// The next key; it counts as running until [`Queue::done`].
    pub async fn next(&self) -> ObjectKey {
        loop {
            let wake = {
                let mut state = self.lock();
                state.promote(Instant::now());
                if let Some(key) = state.take() {
                    let more = !state.ready.is_empty() || !state.later.is_empty();
                    drop(state);
                    // Somebody else must watch the rest and the clock while this one is busy.
                    if more {
                        self.changed.notify_one();
                    }
                    return key;
                }
                state.later.first().map(|(due, _)| *due)
            };
            self.wait(wake).await;
        }
    }

    fn wait(&self, wake: Option<Instant>) -> impl Future<Output = ()> {
        let changed = self.changed.notified();
        async move {
            match wake {
                Some(due) => {
                    let _ = tokio::time::timeout_at(due, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// A version that `is_own` is what the pass itself has written, and no reason for another.
    pub fn done(
        &self,
        key: &ObjectKey,
        again: Again,
        delays: &Delays,
        is_own: impl Fn(&Version) -> bool,
    ) {
        let mut state = self.lock();
        let causes = state.running.remove(key).unwrap_or_default();
        let dirty = causes.iter().any(|cause| match cause {
            Cause::Any => true,
            Cause::Version(version) => !is_own(version),
        });
        let attempt = match again {
            Again::Backoff | Again::BackoffWithin(_) | Again::Slowly => {
                let attempts = state.attempts.entry(key.clone()).or_default();
                *attempts += 1;
                *attempts
            }
            Again::OnEvent | Again::After(_) => {
                state.attempts.remove(key);
                0
            }
        };
        drop(state);
        let backoff =
            |most: Duration| self.add_after(key.clone(), delays.backoff(key, attempt).min(most));
        match again {
            // What happened while it ran may be the cure, but must not turn back-off into a hot loop.
            Again::Backoff | Again::BackoffWithin(_) if dirty => backoff(Duration::from_secs(1)),
            Again::Backoff => backoff(Duration::MAX),
            Again::BackoffWithin(most) => backoff(most),
            _ if dirty => self.add(key.clone()),
            Again::OnEvent => {}
            Again::After(delay) => self.add_after(key.clone(), delay),
            Again::Slowly => self.add_after(key.clone(), delays.slowly(key, attempt)),
        }
    }

    /// Keys waiting for a worker; those waiting for a time do not count.
    pub fn depth(&self) -> usize {
        self.lock().ready.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget_later(&mut self, key: &ObjectKey) {
        if let Some(due) = self.due.remove(key) {
            self.later.remove(&(due, key.clone()));
        }
    }

    fn promote(&mut self, now: Instant) {
        while let Some((due, _)) = self.later.first()
            && *due <= now
            && let Some((_, key)) = self.later.pop_first()
        {
            self.due.remove(&key);
            if let Some(causes) = self.running.get_mut(&key) {
                causes.push(Cause::Any);
            } else if self.queued.insert(key.clone()) {
                self.ready.push_back(key);
            }
        }
    }

    fn take(&mut self) -> Option<ObjectKey> {
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
        self.running.insert(key.clone(), Vec::new());
        Some(key)
    }
}

impl Delays {
    /// Doubles with each attempt up to the longest, less up to a quarter of jitter.
    fn backoff(&self, key: &ObjectKey, attempt: u32) -> Duration {
        let doubled = self.first.saturating_mul(1_u32 << attempt.saturating_sub(1).min(20));
        jittered(doubled.min(self.longest), key, attempt)
    }

    fn slowly(&self, key: &ObjectKey, attempt: u32) -> Duration {
        let (least, most) = self.slow;
        let doubled = least.saturating_mul(1_u32 << attempt.saturating_sub(1).min(10));
        // Upwards, so that the least stays the least.
        jittered((doubled + doubled / 4).min(most), key, attempt).max(least)
    }
}

/// Spreads delays without a source of randomness, so that a run can be replayed.
fn jittered(delay: Duration, key: &ObjectKey, attempt: u32) -> Duration {
    let mut hasher = DefaultHasher::new();
    (key, attempt).hash(&mut hasher);
    let share = u32::try_from(hasher.finish() % 256).unwrap_or(0);
    delay - delay / 1024 * share
}

#[cfg(test)]
mod tests;
