//! The embedded server: asked in this process, and by kubectl on a port. It has no node: who reports
//! of pods is the case itself, as on the real one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use kube::Client;
use tokio::{net::TcpListener, task::JoinHandle, time::Instant};
use windlass_local::{
    auth::{Certificates, Tokens, User, kubeconfig, private_dir},
    controllers,
    http::{self, Access, Listener, serve},
    registry::{Registry, Settings, tend},
    store::Store,
};
use windlass_tests::wait::pass;

/// An ended server closes its store in a moment.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Embedded {
    folder: PathBuf,
    /// Whether anybody acts upon its objects.
    controllers: bool,
    running: Option<Running>,
}

struct Running {
    server: Arc<http::Server>,
    tasks: Vec<JoinHandle<()>>,
}

impl Embedded {
    /// A server with all its files in this folder.
    pub(super) async fn start(folder: &Path, controllers: bool) -> Self {
        let mut embedded = Self { folder: folder.join("state"), controllers, running: None };
        embedded.open().await;
        embedded
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    pub(super) fn client(&self) -> Client {
        let running = self.running.as_ref().expect("it runs but for the time of a restart");
        Client::new(running.server.service(User::admin()), "default")
    }

    pub(super) fn end(&mut self) {
        for task in self.running.take().into_iter().flat_map(|running| running.tasks) {
            task.abort();
        }
    }

    pub(super) async fn open(&mut self) {
        private_dir(&self.folder).unwrap();
        let certificates = Certificates::load_or_create(&self.folder, Timestamp::now()).unwrap();
        let tokens = Tokens::load_or_create(&self.folder).unwrap();
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let url = format!("https://127.0.0.1:{port}");
        let authority = &certificates.authority;
        kubeconfig::write(&self.kubeconfig(), &url, authority, tokens.admin()).unwrap();
        let settings = Settings {
            root_certificate: authority.clone(),
            port: Some(port),
            ..Settings::default()
        };
        let registry = Registry::start(self.open_store().await, settings).await.unwrap();
        let server = http::Server::new(registry.clone(), Access { tokens: Some(tokens) });
        let janitor = tokio::spawn(tend(registry));
        let listener = Listener::new(socket, &certificates).unwrap();
        let served = serve(server.clone(), listener);
        let listener = tokio::spawn(async move { served.await.unwrap() });
        let mut tasks = vec![janitor, listener];
        if self.controllers {
            // The control plane beside it has neither a scheduler nor KServe.
            let settings = controllers::Settings {
                without_scheduler: true,
                without_kserve: true,
                ..controllers::Settings::default()
            };
            tasks.push(tokio::spawn(controllers::run(server.clone(), settings)));
        }
        self.running = Some(Running { server, tasks });
    }

    async fn open_store(&self) -> Store {
        let started = Instant::now();
        loop {
            match Store::open(&self.folder.join("store.redb"), Arc::new(Timestamp::now)) {
                Ok(store) => return store,
                Err(error) if started.elapsed() > PATIENCE => panic!("{error}"),
                Err(_) => pass(Duration::from_millis(20)).await,
            }
        }
    }
}
