//! The endpoints of a pool as they are at one moment.

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::{ArcSwap, Guard};

use super::{Endpoint, State};

/// An endpoint of the pool.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) endpoint: Endpoint,
    pub(crate) state: Arc<State>,
}

#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) members: Vec<Arc<Member>>,
}

#[derive(Debug, Default)]
pub(crate) struct Pool {
    current: ArcSwap<Snapshot>,
    /// Held while the endpoints change.
    free: Mutex<Slots>,
}

/// Numbers that no endpoint has.
#[derive(Debug, Default)]
struct Slots {
    free: BTreeSet<usize>,
    end: usize,
}

impl Slots {
    fn take(&mut self) -> usize {
        self.free.pop_first().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        })
    }
}

impl Pool {
    pub(crate) fn snapshot(&self) -> Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Endpoints that stay keep their state. `forget` is called for those that have gone, before
    /// their slot is used again. Says whether anything has changed.
    pub(crate) fn replace(&self, endpoints: Vec<Endpoint>, forget: impl Fn(&Arc<State>)) -> bool {
        let mut slots = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.current.load_full();
        if before.members.iter().map(|member| &member.endpoint).eq(&endpoints) {
            return false;
        }
        let mut known: HashMap<_, _> =
            before.members.iter().map(|member| (key(&member.endpoint), member)).collect();
        let mut seen = BTreeSet::new();
        let mut members = Vec::new();
        for endpoint in endpoints {
            let key = key(&endpoint);
            let state = match known.remove(&key) {
                Some(member) => member.state.clone(),
                None if seen.contains(&key) => continue,
                None => Arc::new(State::new(slots.take())),
            };
            seen.insert(key);
            members.push(Arc::new(Member { endpoint, state }));
        }
        self.current.store(Arc::new(Snapshot { members }));
        for member in known.into_values() {
            member.state.set_gone();
            forget(&member.state);
            slots.free.insert(member.state.slot);
        }
        true
    }
}

/// With another address it is another pod of the same name.
fn key(endpoint: &Endpoint) -> (String, SocketAddr, SocketAddr) {
    (endpoint.full_name(), endpoint.address, endpoint.metrics)
}
