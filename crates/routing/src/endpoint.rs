//! Who could serve a request, and how busy each is.

mod file;
mod pool;
mod state;

pub use file::{FileError, read_file};
pub(crate) use pool::{Member, Pool};
pub(crate) use state::{Cache, Load, Lora, State};

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

/// One port of one ready pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub namespace: String,
    /// `<pod>-rank-<index of the port>`
    pub name: String,
    pub address: SocketAddr,
    /// Where its metrics are.
    pub metrics: SocketAddr,
    /// Those of the pod.
    pub labels: BTreeMap<String, String>,
}

/// A pod that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    pub namespace: String,
    pub name: String,
    pub ip: IpAddr,
    pub labels: BTreeMap<String, String>,
}

impl Pod {
    /// One endpoint for each target port. The metrics are on the same port, or on `metrics_port`
    /// when there is exactly one.
    pub fn endpoints(&self, ports: &[u16], metrics_port: Option<u16>) -> Vec<Endpoint> {
        let apart = metrics_port.filter(|port| *port != 0 && ports.len() == 1);
        let endpoint = |(rank, port): (usize, &u16)| Endpoint {
            namespace: self.namespace.clone(),
            name: format!("{}-rank-{rank}", self.name),
            address: SocketAddr::new(self.ip, *port),
            metrics: SocketAddr::new(self.ip, apart.unwrap_or(*port)),
            labels: self.labels.clone(),
        };
        ports.iter().enumerate().map(endpoint).collect()
    }
}

impl Endpoint {
    /// What session tokens name.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests;
