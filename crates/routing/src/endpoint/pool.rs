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

    /// Endpoints that stay keep their state. `forget` is called for those that go, before their
    /// slot is used again.
    pub(crate) fn replace(&self, endpoints: Vec<Endpoint>, forget: impl Fn(&Arc<State>)) {
        let mut slots = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.current.load_full();
        let mut known: HashMap<_, _> =
            before.members.iter().map(|member| (key(&member.endpoint), member)).collect();
        let mut kept = Vec::new();
        let mut seen = BTreeSet::new();
        for endpoint in endpoints {
            let key = key(&endpoint);
            let state = known.remove(&key).map(|member| member.state.clone());
            if !seen.insert(key) {
                continue;
            }
            kept.push((endpoint, state));
        }
        let gone: Vec<_> = known.into_values().collect();
        let staying = |(endpoint, state): &(Endpoint, Option<Arc<State>>)| {
            let state = state.clone()?;
            Some(Arc::new(Member { endpoint: endpoint.clone(), state }))
        };
        // First without those that go, so that few requests still see them while they are forgotten.
        self.current
            .store(Arc::new(Snapshot { members: kept.iter().filter_map(staying).collect() }));
        for member in gone {
            member.state.set_gone();
            forget(&member.state);
            slots.free.insert(member.state.slot);
        }
        let member = |(endpoint, state): (Endpoint, Option<Arc<State>>)| {
            let state = state.unwrap_or_else(|| Arc::new(State::new(slots.take())));
            Arc::new(Member { endpoint, state })
        };
        let members = kept.into_iter().map(member).collect();
        self.current.store(Arc::new(Snapshot { members }));
    }
}

fn key(endpoint: &Endpoint) -> (String, SocketAddr) {
    (endpoint.full_name(), endpoint.address)
}
