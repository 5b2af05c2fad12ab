//! Who answers for a backend at the moment.

use std::{collections::HashMap, net::SocketAddr};

use super::route::{Backend, Route};
use crate::Picker;

const POOLS: [&str; 2] = ["inference.networking.k8s.io", "inference.networking.x-k8s.io"];

/// One look at Services, pools and what may refer to them from elsewhere.
#[derive(Clone, Default)]
pub struct Backends {
    pub services: HashMap<Key, Service>,
    pub pools: HashMap<Key, Pool>,
    pub grants: Vec<Grant>,
}

/// Namespace and name.
pub type Key = (String, String);

#[derive(Clone, Debug, Default)]
pub struct Service {
    /// The ready endpoints of each port.
    pub ports: HashMap<u16, Vec<SocketAddr>>,
}

#[derive(Clone)]
pub struct Pool {
    pub picker: Picker,
    /// Whether any ready endpoint will do where the picker cannot choose.
    pub fails_open: bool,
    pub endpoints: Vec<SocketAddr>,
}

/// That routes of a namespace may refer to backends of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub namespace: String,
    pub from: String,
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
    pub fn resolve(&self, route: &Route, backend: &Backend) -> Result<Answering<'_>, Unresolved> {
        let is_service = backend.group.is_empty() && backend.kind == "Service";
        let is_pool = POOLS.contains(&backend.group.as_str()) && backend.kind == "InferencePool";
        if !is_service && !is_pool {
            return Err(Unresolved::InvalidKind);
        }
        if backend.namespace != route.namespace && !self.permits(&route.namespace, backend) {
            return Err(Unresolved::RefNotPermitted);
        }
        let key = (backend.namespace.clone(), backend.name.clone());
        let found = match is_pool {
            true => self.pools.get(&key).map(Answering::Pool),
            false => backend.port.zip(self.services.get(&key)).and_then(|(port, service)| {
                service.ports.get(&port).map(|ready| Answering::Endpoints(ready))
            }),
        };
        found.ok_or(Unresolved::BackendNotFound)
    }

    fn permits(&self, from: &str, backend: &Backend) -> bool {
        self.grants.iter().any(|grant| {
            grant.namespace == backend.namespace
                && grant.from == from
                && grant.kind == backend.kind
                && grant.name.as_ref().is_none_or(|name| *name == backend.name)
        })
    }
}

#[cfg(test)]
mod tests;
