//! The keys of objects that somebody has to look at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::Key;

/// The pause after the first failure; it is doubled by each further one.
const FIRST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_secs(60);

/// Each key is in it once at most, with the earliest time that was asked for, and is given out to
/// one at a time: what comes meanwhile is given out again afterwards.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    due: BTreeMap<Key, Instant>,
    running: BTreeSet<Key>,
    failures: BTreeMap<Key, u32>,
}

impl Queue {
    pub fn add(&self, key: Key) {
        self.add_at(key, Instant::now());
    }

    pub fn add_after(&self, key: Key, pause: Duration) {
        // Far beyond any pause that objects ask for, and still a time that clocks can show.
        const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
        self.add_at(key, Instant::now() + pause.min(CENTURY));
    }

    fn add_at(&self, key: Key, time: Instant) {
        self.state().due.entry(key).and_modify(|due| *due = (*due).min(time)).or_insert(time);
        self.changed.notify_one();
    }

    /// The next key that is due. It has to be given back by `done` or `failed`.
    pub(super) async fn next(&self) -> Key {
        loop {
            let changed = self.changed.notified();
            let first = {
                let mut state = self.state();
                let now = Instant::now();
                match state.first() {
                    Some((key, time)) if time <= now => {
                        state.due.remove(&key);
                        state.running.insert(key.clone());
                        return key;
                    }
                    first => first.map(|(_, time)| time),
                }
            };
            match first {
                Some(time) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(time) => {}
                },
                None => changed.await,
            }
        }
    }

    /// It went well; it is given out again at the latest after this time, if any.
    pub(super) fn done(&self, key: &Key, again: Option<Duration>) {
        {
            let mut state = self.state();
            state.failures.remove(key);
            state.running.remove(key);
        }
        if let Some(pause) = again {
            self.add_after(key.clone(), pause);
        }
        self.changed.notify_one();
    }

    /// It is given out again after a pause, whatever else comes for it.
    pub(super) fn failed(&self, key: &Key) {
        let pause = {
            let mut state = self.state();
            state.running.remove(key);
            let failures = state.failures.entry(key.clone()).or_default();
            *failures = failures.saturating_add(1);
            pause_after(*failures)
        };
        self.add_after(key.clone(), pause);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Of the keys that nobody works on.
    fn first(&self) -> Option<(Key, Instant)> {
        let idle = self.due.iter().filter(|(key, _)| !self.running.contains(key));
        idle.min_by_key(|(_, time)| **time).map(|(key, time)| (key.clone(), *time))
    }
}

fn pause_after(failures: u32) -> Duration {
    let factor = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST.saturating_mul(factor).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("ns", name)
    }

    #[test]
    fn pauses_double_up_to_a_minute() {
        for (failures, want) in [(0, 5), (1, 5), (2, 10), (3, 20), (14, 40_960), (15, 60_000)] {
            assert_eq!(pause_after(failures), Duration::from_millis(want), "{failures}");
        }
        assert_eq!(pause_after(u32::MAX), LONGEST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_given_out_once_and_again_for_what_came_meanwhile() {
        let queue = Queue::default();
        queue.add(key("a"));
        queue.add(key("a"));
        queue.add(key("b"));
        assert_eq!((queue.next().await, queue.next().await), (key("a"), key("b")));
        queue.add(key("a"));
        let pause = Duration::from_secs(1);
        assert!(tokio::time::timeout(pause, queue.next()).await.is_err(), "a is worked on");
        queue.done(&key("a"), None);
        assert_eq!(queue.next().await, key("a"));
        queue.done(&key("a"), None);
        assert!(tokio::time::timeout(pause, queue.next()).await.is_err(), "nothing is left");
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_time_counts_and_success_ends_the_back_off() {
        let queue = Queue::default();
        let start = Instant::now();
        queue.add_after(key("a"), Duration::from_secs(9));
        queue.add_after(key("a"), Duration::from_secs(3));
        queue.add_after(key("a"), Duration::from_secs(5));
        assert_eq!((queue.next().await, start.elapsed().as_secs()), (key("a"), 3));
        for _ in 0..3 {
            queue.failed(&key("a"));
            assert_eq!(queue.next().await, key("a"));
        }
        queue.done(&key("a"), Some(Duration::MAX));
        queue.add(key("a"));
        queue.next().await;
        let start = Instant::now();
        queue.failed(&key("a"));
        queue.next().await;
        assert_eq!(start.elapsed(), FIRST);
    }
}
