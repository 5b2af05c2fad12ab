//! The registry of a local cluster: artifacts for its pods and for any other client of this machine.
//!
//! Its port stands in the names of what is pushed, so it is remembered with what was pushed.

use std::{
    fmt,
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_kit::registry::{Registry as Kept, Settings};
use windlass_local::auth::private_dir;

use super::home::Home;
use crate::registry;

const PORTS: RangeInclusive<u16> = 5000..=5019;

#[derive(Debug, Clone, Args)]
#[group(id = "registry")]
pub(super) struct Flags {
    /// Port of the registry on 127.0.0.1; if not given, the one of the last time, or else 5000 or the
    /// next free one
    #[arg(long, value_name = "PORT")]
    registry_port: Option<u16>,
    /// Serve no registry; what is in it stays
    #[arg(long, conflicts_with = "registry_port")]
    no_registry: bool,
}

/// A port that nobody is answered on yet.
pub(super) struct Registry {
    socket: TcpListener,
    address: SocketAddr,
    /// Where it was to be, if somebody else is there.
    missed: Option<u16>,
    kept: Arc<Kept>,
    lock: File,
}

impl Registry {
    /// A port that the user names has to be free; otherwise any will do. None where none is wanted.
    pub(super) async fn bind(flags: &Flags, home: &Home) -> anyhow::Result<Option<Self>> {
        if flags.no_registry {
            return Ok(None);
        }
        let root = home.registry();
        private_dir(&root).context("cannot keep artifacts")?;
        let settings = Settings { root: root.clone(), only_here: true, ..Settings::default() };
        let (kept, lock) = registry::open(settings)?;
        let memory = Memory(root.join("port"));
        let last = memory.port();
        let socket = match flags.registry_port {
            Some(port) => bind(port)
                .await
                .with_context(|| format!("cannot listen on 127.0.0.1:{port} (--registry-port)"))?,
            None => bind_any(last).await.context("cannot listen on 127.0.0.1")?,
        };
        let address = socket.local_addr()?;
        let wanted = flags.registry_port.is_none().then(|| last.unwrap_or(*PORTS.start()));
        let missed = wanted.filter(|wanted| *wanted != address.port());
        // Somebody who is there today is no reason to forget where it usually is.
        if flags.registry_port.is_some() || last.is_none() {
            memory.set(address.port())?;
        }
        Ok(Some(Self { socket, address, missed, kept, lock }))
    }

    /// Answers, and removes what nothing leads to, until told to stop.
    pub(super) fn start(self, stop: CancellationToken) {
        let Self { socket, kept, lock, .. } = self;
        let working = async move {
            tokio::select! {
                ended = axum::serve(socket, kept.router()) => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "the registry cannot listen any more");
                    }
                }
                () = registry::tidy_up(&kept) => {}
            }
            drop(lock);
        };
        tokio::spawn(async move { stop.run_until_cancelled(working).await });
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the registry is at http://{}", self.address)?;
        match self.missed {
            Some(port) => write!(f, ", as port {port} is in use"),
            None => Ok(()),
        }
    }
}

async fn bind(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
}

async fn bind_any(last: Option<u16>) -> std::io::Result<TcpListener> {
    for port in last.into_iter().chain(PORTS) {
        if let Ok(socket) = bind(port).await {
            return Ok(socket);
        }
    }
    bind(0).await
}

/// The file that knows the port of the last time.
struct Memory(PathBuf);

impl Memory {
    /// Whatever else stands there is as good as nothing.
    fn port(&self) -> Option<u16> {
        fs::read_to_string(&self.0).ok()?.trim().parse().ok().filter(|port| *port != 0)
    }

    fn set(&self, port: u16) -> anyhow::Result<()> {
        let Self(path) = self;
        if self.port() == Some(port) {
            return Ok(());
        }
        write(path, port).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Whole or not at all: half a number is a number too.
fn write(path: &Path, port: u16) -> std::io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, format!("{port}\n"))?;
    fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_port_is_not_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let memory = Memory(dir.path().join("port"));
        assert_eq!(memory.port(), None);
        memory.set(5007).unwrap();
        assert_eq!(memory.port(), Some(5007));
        for text in ["", "0", "70000", "-1", "five thousand"] {
            fs::write(&memory.0, text).unwrap();
            assert_eq!(memory.port(), None, "{text:?}");
        }
    }
}
