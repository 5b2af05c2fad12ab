//! Who answers for a backend at the moment.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::Arc,
    time::Instant,
};

use super::route::Backend;
use crate::{Picker, picker::Counters};

pub(super) const POOLS: [&str; 2] =
    ["inference.networking.k8s.io", "inference.networking.x-k8s.io"];

/// One look at Services, pools and what may refer to them from elsewhere.
#[derive(Clone, Default)]
pub struct Backends {
    pub services: HashMap<Key, Service>,
    pub pools: HashMap<PoolKey, Pool>,
    pub grants: Vec<Grant>,
    /// Of the pickers of all pools, also of those that are gone.
    pub counters: Counters,
}

/// Namespace and name.
pub type Key = (String, String);

/// Pools of both groups may have the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolKey {
    pub group: String,
    pub namespace: String,
    pub name: String,
}

#[derive(Clone, Debug, Default)]
pub struct Service {
    /// The ready endpoints of each port.
    pub ports: HashMap<u16, Vec<SocketAddr>>,
}

#[derive(Clone)]
pub struct Pool {
    pub picker: Picker,
    /// What the picker was made of, if somebody has said how it should choose.
    pub config: Option<Arc<str>>,
    /// Whether what the pool names as its picker is there.
    pub has_picker: bool,
    /// Whether any ready endpoint will do where the picker cannot choose.
    pub fails_open: bool,
    pub endpoints: Vec<SocketAddr>,
}

/// That routes of a namespace may refer to backends of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub namespace: String,
    pub from: String,
    pub group: String,
    pub kind: String,
    /// `None`: all of the kind.
    pub name: Option<String>,
}

pub enum Answering<'a> {
    /// Any of them.
    Endpoints(&'a [SocketAddr]),
    Pool(&'a Pool),
}

/// Why a backend's share of the requests is not served, in the words of the route's condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    BackendNotFound,
    RefNotPermitted,
    InvalidKind,
}

impl Unresolved {
    pub fn reason(self) -> &'static str {
        match self {
            Self::BackendNotFound => "BackendNotFound",
            Self::RefNotPermitted => "RefNotPermitted",
            Self::InvalidKind => "InvalidKind",
        }
    }
}

impl Backends {
    /// For a route of the namespace `from`.
    pub fn resolve(&self, from: &str, backend: &Backend) -> Result<Answering<'_>, Unresolved> {
        let pool = backend.pool();
        if pool.is_none() && !backend.is_service() {
            return Err(Unresolved::InvalidKind);
        }
        if backend.namespace != from && !self.permits(from, backend) {
            return Err(Unresolved::RefNotPermitted);
        }
        let found = match pool {
            Some(key) => self.pools.get(&key).map(Answering::Pool),
            None => {
                let service = self.services.get(&(backend.namespace.clone(), backend.name.clone()));
                backend.port.zip(service).and_then(|(port, service)| {
                    service.ports.get(&port).map(|ready| Answering::Endpoints(ready))
                })
            }
        };
        found.ok_or(Unresolved::BackendNotFound)
    }

    /// Of all of them.
    pub fn endpoints(&self) -> HashSet<SocketAddr> {
        let of_services = self.services.values().flat_map(|service| service.ports.values());
        let of_pools = self.pools.values().map(|pool| &pool.endpoints);
        of_services.chain(of_pools).flatten().copied().collect()
    }

    /// What has been counted of requests to pools, in the text form of Prometheus.
    pub fn metrics(&self, now: Instant) -> String {
        let is_alone = |key: &PoolKey| {
            self.pools.keys().filter(|other| other.name == key.name).nth(1).is_none()
        };
        let name = |key: &PoolKey| match is_alone(key) {
            true => key.name.clone(),
            false => format!("{}/{}.{}", key.namespace, key.name, key.group),
        };
        self.counters.text(self.pools.iter().map(|(key, pool)| (name(key), &pool.picker)), now)
    }

    fn permits(&self, from: &str, backend: &Backend) -> bool {
        self.grants.iter().any(|grant| {
            grant.namespace == backend.namespace
                && grant.from == from
                && grant.group == backend.group
                && grant.kind == backend.kind
                && grant.name.as_ref().is_none_or(|name| *name == backend.name)
        })
    }
}

impl Backend {
    pub(super) fn is_service(&self) -> bool {
        self.group.is_empty() && self.kind == "Service"
    }

    pub(super) fn pool(&self) -> Option<PoolKey> {
        let is_pool = POOLS.contains(&self.group.as_str()) && self.kind == "InferencePool";
        is_pool.then(|| PoolKey {
            group: self.group.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
