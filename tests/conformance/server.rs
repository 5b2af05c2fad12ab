//! The servers that must agree: the real kube-apiserver and the embedded one.

use std::{
    path::{Path, PathBuf},
    sync::RwLock,
    time::Duration,
};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::sync::Mutex;
use xtask::cluster::{Assets, ControlPlane, Options};

/// A server with a store of its own, which ends with it.
pub(crate) struct Server {
    kind: Kind,
    client: RwLock<Client>,
    kubeconfig: PathBuf,
    assets: Option<Assets>,
    _folder: tempfile::TempDir,
}

enum Kind {
    Real(Box<Mutex<ControlPlane>>),
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

    async fn start(controllers: bool) -> Vec<Server> {
        let only = std::env::var("WINDLASS_CONFORMANCE").unwrap_or_default();
        let mut servers = Vec::new();
        if only != "embedded" {
            servers.extend(Server::real(controllers).await);
        }
        servers
    }

    async fn real(controllers: bool) -> Option<Server> {
        let assets = match Assets::find() {
            Ok(assets) => assets,
            Err(reason) if xtask::test::required("real-api") => panic!("{reason:#}"),
            Err(reason) => {
                eprintln!("skipped: {reason:#}");
                return None;
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            controller_manager: controllers,
            ..Options::in_dir(folder.path().join("plane"))
        };
        let plane = ControlPlane::start(&assets, options).unwrap();
        let kubeconfig = plane.kubeconfig();
        let client = RwLock::new(connect(&kubeconfig).await);
        let kind = Kind::Real(Box::new(Mutex::new(plane)));
        Some(Server { kind, client, kubeconfig, assets: Some(assets), _folder: folder })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Real(_) => "real",
        }
    }

    pub(crate) fn client(&self) -> Client {
        self.client.read().unwrap().clone()
    }

    /// Whether Deployments and the like are acted upon.
    pub(crate) fn has_controllers(&self) -> bool {
        match self.kind {
            Kind::Real(_) => true,
        }
    }

    /// How long to wait for what takes the real server its time.
    pub(crate) fn patience(&self, real: Duration) -> Duration {
        match self.kind {
            Kind::Real(_) => real,
        }
    }

    /// Ends the server as a power cut would, and starts it again on the same data.
    pub(crate) async fn restart(&self) {
        match &self.kind {
            Kind::Real(plane) => {
                let mut plane = plane.lock().await;
                plane.kill_apiserver();
                plane.start_apiserver().unwrap();
            }
        }
        // Its connections are dead, and the first requests would find out.
        let client = connect(&self.kubeconfig).await;
        *self.client.write().unwrap() = client;
    }

    /// The real kubectl, if there is one on this machine.
    pub(crate) fn kubectl(&self) -> Option<&Path> {
        self.assets.as_ref().map(|assets| assets.kubectl.as_path())
    }

    /// What kubectl needs to talk to this server as an admin.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
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
