//! The embedded server, asked in this process.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use kube::Client;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use windlass_local::{
    auth::User,
    http::{self, Access},
    registry::{Registry, Settings, tend},
    store::Store,
};

/// An ended server closes its store in a moment.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Embedded {
    path: PathBuf,
    running: Option<Running>,
}

struct Running {
    server: Arc<http::Server>,
    janitor: JoinHandle<()>,
}

impl Embedded {
    /// A server with its store in this folder.
    pub(super) async fn start(folder: &Path) -> Self {
        let mut embedded = Self { path: folder.join("store.redb"), running: None };
        embedded.open().await;
        embedded
    }

    /// Not reachable from outside yet.
    pub(super) fn kubeconfig(&self) -> Option<PathBuf> {
        None
    }

    pub(super) fn client(&self) -> Client {
        let running = self.running.as_ref().expect("it runs but for the time of a restart");
        let admin = User {
            name: "admin".to_owned(),
            groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
            ..User::default()
        };
        Client::new(running.server.service(admin), "default")
    }

    pub(super) fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.janitor.abort();
        }
    }

    pub(super) async fn open(&mut self) {
        let started = Instant::now();
        let store = loop {
            match Store::open(&self.path, Arc::new(Timestamp::now)) {
                Ok(store) => break store,
                Err(error) if started.elapsed() > PATIENCE => panic!("{error}"),
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        };
        let registry = Registry::start(store, Settings::default()).await.unwrap();
        let janitor = tokio::spawn(tend(registry.clone()));
        let server = http::Server::new(registry, Access::default());
        self.running = Some(Running { server, janitor });
    }
}
