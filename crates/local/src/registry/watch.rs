//! Changes as they happen.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::{Registry, Served, Target, list::forbidden, read::Selection};
use crate::{
    error::Error,
    store::{Change, Cursor, Expired, Object},
};

/// How often a watch that wants bookmarks is told how far it is.
const BOOKMARKS: Duration = Duration::from_secs(60);
/// And how long before its end.
const FAREWELL: Duration = Duration::from_secs(2);
/// For those who would go on longer than time can be counted.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    pub selection: Selection,
    pub version: Option<u64>,
    pub bookmarks: bool,
    pub initial_events: Option<bool>,
    pub not_older_than: bool,
    /// How long it goes on; none: half an hour to an hour.
    pub timeout: Option<Duration>,
}

#[derive(Debug)]
pub enum Event {
    Added(Arc<Object>),
    Modified(Arc<Object>),
    /// The last content, with the version at which it went.
    Deleted(Arc<Object>, u64),
    Bookmark {
        version: u64,
        initial_end: bool,
    },
    Error(Error),
}

pub struct Watch {
    target: Target,
    options: WatchOptions,
    cursor: Cursor,
    ready: VecDeque<Event>,
    end: Instant,
    next_bookmark: Instant,
    /// The farewell has been said.
    leaving: bool,
    over: bool,
}

impl Registry {
    pub async fn watch(&self, target: Target, options: WatchOptions) -> Result<Watch, Error> {
        check(&options)?;
        let not_yet = match options.version.filter(|_| options.initial_events == Some(true)) {
            Some(version) => self.wait_for(version).await.err(),
            None => None,
        };
        let mut watch = self.open_watch(target, options);
        if let Some(error) = not_yet {
            watch.ready = [Event::Error(error)].into();
            watch.over = true;
        }
        Ok(watch)
    }

    fn open_watch(&self, target: Target, options: WatchOptions) -> Watch {
        let state = self.store.read();
        let from_start = options.version.is_none_or(|version| version == 0);
        let with_state = options.initial_events.unwrap_or(from_start);
        let mut ready = VecDeque::new();
        let mut start = options.version.filter(|version| *version != 0);
        if with_state {
            start = Some(state.version());
            let all = state.list(&target.served.stored_as, "");
            let prefix = target.prefix();
            let wanted = all.filter(|(key, object)| {
                key.starts_with(&prefix) && options.selection.matches(&target.served, object)
            });
            ready.extend(wanted.map(|(_, object)| Event::Added(object.clone())));
            // A watch from nowhere is told nothing of where its first events end.
            if options.bookmarks && (options.initial_events.is_some() || options.version.is_some())
            {
                ready.push_back(Event::Bookmark { version: state.version(), initial_end: true });
            }
        }
        let start = start.unwrap_or(state.version());
        drop(state);
        let now = Instant::now();
        let length = options.timeout.unwrap_or_else(random_length);
        Watch {
            cursor: self.store.follow(start),
            end: now.checked_add(length).unwrap_or(now + LONGEST),
            next_bookmark: now + BOOKMARKS,
            leaving: false,
            over: false,
            target,
            options,
            ready,
        }
    }
}

fn check(options: &WatchOptions) -> Result<(), Error> {
    match (options.initial_events, options.not_older_than) {
        (Some(_), false) => Err(forbidden(
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )),
        (None, true) => Err(forbidden(
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )),
        _ => Ok(()),
    }
}

fn random_length() -> Duration {
    let mut bytes = [0; 2];
    // Without randomness all watches just end at the same time.
    let _ = getrandom::fill(&mut bytes);
    Duration::from_secs(1800 + u64::from(u16::from_le_bytes(bytes)) % 1800)
}

impl Watch {
    pub fn served(&self) -> &Arc<Served> {
        &self.target.served
    }

    /// `None` at the end. Nothing is lost when this is dropped while it waits.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.over {
                return None;
            }
            let wake = self.wake();
            let resource = self.target.served.stored_as.clone();
            match timeout_at(wake, self.cursor.next(Some(&resource))).await {
                Ok(Ok(changes)) if changes.is_empty() => self.over = true,
                Ok(Ok(changes)) => {
                    let events = changes.into_iter().filter_map(|change| self.event(change));
                    let events: Vec<_> = events.collect();
                    self.ready.extend(events);
                    // Where something changes all the time, the clock would never be looked at.
                    if Instant::now() >= wake {
                        self.on_time();
                    }
                }
                Ok(Err(expired)) => {
                    self.over = true;
                    return Some(Event::Error(too_old(expired)));
                }
                Err(_) => self.on_time(),
            }
        }
    }

    fn wake(&self) -> Instant {
        match (self.options.bookmarks, self.leaving) {
            (false, _) | (_, true) => self.end,
            (true, false) => self.next_bookmark.min(self.farewell()),
        }
    }

    fn farewell(&self) -> Instant {
        self.end.checked_sub(FAREWELL).unwrap_or(self.end)
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        if now >= self.end {
            self.over = true;
            return;
        }
        self.leaving = now >= self.farewell();
        self.next_bookmark = now + BOOKMARKS;
        if self.options.bookmarks {
            let version = self.cursor.at();
            self.ready.push_back(Event::Bookmark { version, initial_end: false });
        }
    }

    /// What a change means to this watch: objects enter and leave its selection.
    fn event(&self, change: Change) -> Option<Event> {
        if !change.key.name.starts_with(&self.target.prefix()) {
            return None;
        }
        let selected =
            |object: &Arc<Object>| self.options.selection.matches(&self.target.served, object);
        let old = change.old.filter(selected);
        let new = change.new.filter(selected);
        match (old, new) {
            (None, None) => None,
            (None, Some(new)) => Some(Event::Added(new)),
            (Some(_), Some(new)) => Some(Event::Modified(new)),
            (Some(old), None) => Some(Event::Deleted(old, change.version)),
        }
    }
}

fn too_old(expired: Expired) -> Error {
    let Expired { wanted, oldest } = expired;
    let text = format!("too old resource version: {wanted} ({oldest})");
    Error::Expired { text, go_on: None }
}
