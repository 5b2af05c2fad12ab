//! Endpoints from a file instead of a pool.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use serde::Deserialize;

use super::Endpoint;

const MAX_BYTES: usize = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    endpoints: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    address: String,
    port: Port,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Port {
    Number(u16),
    Text(String),
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("the file of endpoints is larger than 1 MiB")]
    TooLarge,
    #[error("cannot read the file of endpoints: {0}")]
    Syntax(String),
    #[error("endpoint {name:?}: {field} must be {rule}")]
    Field { name: String, field: &'static str, rule: &'static str },
    #[error("the endpoint {0:?} is named twice")]
    Duplicate(String),
}

/// The endpoints that a file names, as YAML or JSON.
pub fn read_file(text: &str) -> Result<Vec<Endpoint>, FileError> {
    if text.len() > MAX_BYTES {
        return Err(FileError::TooLarge);
    }
    let file: File =
        serde_saphyr::from_str(text).map_err(|error| FileError::Syntax(error.to_string()))?;
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for entry in file.endpoints {
        let endpoint = entry.endpoint()?;
        if endpoints.iter().any(|other| other.full_name() == endpoint.full_name()) {
            return Err(FileError::Duplicate(endpoint.full_name()));
        }
        endpoints.push(endpoint);
    }
    Ok(endpoints)
}

impl Entry {
    fn endpoint(self) -> Result<Endpoint, FileError> {
        let bad = |field, rule| FileError::Field { name: self.name.clone(), field, rule };
        let address = self.address.trim_start_matches('[').trim_end_matches(']');
        let ip: IpAddr = address.parse().map_err(|_| bad("address", "an IP address"))?;
        let port = match &self.port {
            Port::Number(port) => Some(*port),
            Port::Text(text) => text.parse().ok(),
        };
        let port = port.filter(|port| *port != 0).ok_or_else(|| bad("port", "a port number"))?;
        if self.name.is_empty() {
            return Err(bad("name", "given"));
        }
        Ok(Endpoint {
            namespace: self.namespace.clone().unwrap_or_else(|| "default".into()),
            address: SocketAddr::new(ip, port),
            metrics: SocketAddr::new(ip, port),
            name: self.name,
            labels: self.labels,
        })
    }
}
