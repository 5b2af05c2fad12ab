//! The embedded API server inside the test's process, with its controllers, without a node, and with
//! its store in a folder of its own.
//!
//! A store that has all the definitions is made once and copied for each test: reading them
//! takes longer than most tests.

mod kubelets;
mod prepared;
mod record;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use tokio::{net::TcpListener, runtime::Runtime, sync::Mutex};
use windlass_local::{
    auth::{Certificates, Tokens, kubeconfig, private_dir},
    controllers,
    http::{Access, Listener, Server, serve_within},
    registry::{Registry, Settings, tend},
    store::Store,
};

use crate::wait::pass;

/// An ended server closes its store in a moment.
const PATIENCE: Duration = Duration::from_secs(10);
const STORE: &str = "store.redb";

/// Ends with its last holder.
pub(crate) struct Embedded {
    folder: tempfile::TempDir,
    port: u16,
    /// Of its own, so that ending it ends every connection, as the end of a process does.
    runtime: Option<Runtime>,
}

impl Embedded {
    /// The one of this process, with the definitions of others. Each test has a namespace of its own
    /// in it, if it shares the process with others at all.
    pub(crate) async fn shared(crds: &[&str]) -> Result<Arc<Self>, String> {
        static SHARED: Mutex<Weak<Embedded>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        if let Some(running) = shared.upgrade() {
            return Ok(running);
        }
        let started = Arc::new(Self::start(crds).await?);
        *shared = Arc::downgrade(&started);
        Ok(started)
    }

    /// With our definitions and those of others.
    pub(crate) async fn start(crds: &[&str]) -> Result<Self, String> {
        let prepared = prepared::store(crds).await?;
        let mut embedded = Self::empty();
        std::fs::copy(prepared, embedded.state().join(STORE)).unwrap();
        embedded.open().await;
        Ok(embedded)
    }

    /// Without any definitions.
    pub(crate) async fn bare() -> Self {
        let mut embedded = Self::empty();
        embedded.open().await;
        embedded
    }

    fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let embedded = Self { folder, port: 0, runtime: None };
        private_dir(&embedded.state()).unwrap();
        embedded
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.state().join("kubeconfig")
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }

    /// At once: nothing of what was going on is finished.
    pub(crate) fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Starts it on the port and the store that it had.
    pub(crate) async fn open(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let opened = runtime.spawn(open(self.state(), self.audit_log(), self.port));
        self.port = opened.await.unwrap();
        self.runtime = Some(runtime);
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn open(state: PathBuf, audit_log: PathBuf, port: u16) -> u16 {
    let certificates = Certificates::load_or_create(&state, Timestamp::now()).unwrap();
    let tokens = Tokens::load_or_create(&state).unwrap();
    let socket = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let port = socket.local_addr().unwrap().port();
    let (url, authority) = (format!("https://127.0.0.1:{port}"), &certificates.authority);
    kubeconfig::write(&state.join("kubeconfig"), &url, authority, tokens.admin()).unwrap();
    let settings =
        Settings { root_certificate: authority.clone(), port: Some(port), ..Settings::default() };
    let registry = Registry::start(open_store(&state).await, settings).await.unwrap();
    tokio::spawn(tend(registry.clone()));
    let server = Server::new(registry, Access { tokens: Some(tokens) });
    server.set_logs(kubelets::Kubelets::of(&server));
    let listener = Listener::new(socket, &certificates).unwrap();
    // Tests bind pods themselves, as on the real API server.
    let settings = controllers::Settings { without_scheduler: true, ..<_>::default() };
    tokio::spawn(controllers::run(server.clone(), settings));
    tokio::spawn(serve_within(server, listener, move |router| record::writes(router, &audit_log)));
    port
}

async fn open_store(state: &Path) -> Store {
    let started = Instant::now();
    loop {
        match Store::open(&state.join(STORE), Arc::new(Timestamp::now)) {
            Ok(store) => return store,
            Err(error) if started.elapsed() > PATIENCE => panic!("{error}"),
            Err(_) => pass(Duration::from_millis(20)).await,
        }
    }
}
