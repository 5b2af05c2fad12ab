//! The servers that must agree: the real kube-apiserver and the embedded one.

mod embedded;

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    sync::RwLock,
};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::sync::Mutex;
use windlass_tests::needs::note;
use xtask::cluster::{Assets, ControlPlane, Options, find_kubectl};

use embedded::Embedded;

/// A server with a store of its own, which ends with it.
pub(crate) struct Server {
    kind: Kind,
    client: RwLock<Client>,
    kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
}

enum Kind {
    Real(Box<Mutex<ControlPlane>>),
    Embedded(Mutex<Embedded>),
}

impl Server {
    /// Both where both can be had; what is missing is said aloud.
    pub(crate) async fn all() -> Vec<Server> {
        Server::start(true).await
    }

    /// Both, and nobody but the caller writes.
    pub(crate) async fn all_without_controllers() -> Vec<Server> {
        Server::start(false).await
    }

    /// Those that `WINDLASS_CONFORMANCE` names. The same one twice shows what a comparison must
    /// not look at.
    async fn start(controllers: bool) -> Vec<Server> {
        let names = std::env::var("WINDLASS_CONFORMANCE").unwrap_or("real,embedded".to_owned());
        let mut servers = Vec::new();
        for name in names.split(',') {
            match name {
                "real" => servers.extend(Server::real(controllers).await),
                "embedded" => servers.push(Server::embedded(controllers).await),
                other => panic!("there is no server called {other}"),
            }
        }
        servers
    }

    async fn real(controllers: bool) -> Option<Server> {
        let assets = assets()?;
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            controller_manager: controllers,
            ..Options::in_dir(folder.path().join("plane"))
        };
        let plane = ControlPlane::start(&assets, options).unwrap();
        let kubeconfig = plane.kubeconfig();
        let client = RwLock::new(connect(&kubeconfig).await);
        let kind = Kind::Real(Box::new(Mutex::new(plane)));
        Some(Server { kind, client, kubeconfig, _folder: folder })
    }

    async fn embedded(controllers: bool) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let embedded = Embedded::start(folder.path(), controllers).await;
        let client = RwLock::new(embedded.client());
        let kubeconfig = embedded.kubeconfig();
        Server { kind: Kind::Embedded(Mutex::new(embedded)), client, kubeconfig, _folder: folder }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Real(_) => "real",
            Kind::Embedded(_) => "embedded",
        }
    }

    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self.kind, Kind::Embedded(_))
    }

    pub(crate) fn client(&self) -> Client {
        self.client.read().unwrap().clone()
    }

    /// Ends the server as a power cut would, and starts it again on the same data.
    pub(crate) async fn restart(&self) {
        let client = match &self.kind {
            Kind::Real(plane) => {
                let mut plane = plane.lock().await;
                plane.kill_apiserver();
                plane.start_apiserver().unwrap();
                // The connections of the old one are dead, and the first requests would find out.
                connect(&plane.kubeconfig()).await
            }
            Kind::Embedded(embedded) => {
                let mut embedded = embedded.lock().await;
                embedded.end();
                // It goes with the last who could ask it.
                *self.client.write().unwrap() = nobody();
                embedded.open().await;
                embedded.client()
            }
        };
        *self.client.write().unwrap() = client;
    }

    /// What kubectl needs to talk to this server as an admin.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

/// The programs of a control plane, if this machine has them.
pub(crate) fn assets() -> Option<Assets> {
    found(Assets::find())
}

/// kubectl, where no real server is wanted.
pub(crate) fn kubectl() -> Option<PathBuf> {
    found(find_kubectl())
}

fn found<T, E: Display>(answer: Result<T, E>) -> Option<T> {
    match answer {
        Ok(found) => Some(found),
        Err(reason) if xtask::test::required("real-api") => panic!("{reason:#}"),
        Err(reason) => {
            // Nothing is compared then, so that it does not count as passed.
            note(&format!("{reason:#}"));
            None
        }
    }
}

async fn connect(kubeconfig: &Path) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(file, &options).await.unwrap();
    // A case counts the answers; a silent second try would hide one.
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// A client without a server.
fn nobody() -> Client {
    Client::new(axum::Router::new(), "default")
}
