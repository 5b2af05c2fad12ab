//! The servers that must agree: the real kube-apiserver and the embedded one.

use std::{path::PathBuf, process::Command, sync::RwLock, time::Duration};

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
        let only = std::env::var("WINDLASS_CONFORMANCE").unwrap_or_default();
        let mut servers = Vec::new();
        if only != "embedded" {
            servers.extend(Server::real().await);
        }
        servers
    }

    async fn real() -> Option<Server> {
        let assets = match Assets::find() {
            Ok(assets) => assets,
            Err(reason) if xtask::test::required("real-api") => panic!("{reason:#}"),
            Err(reason) => {
                eprintln!("skipped: {reason:#}");
                return None;
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let options = Options::in_dir(folder.path().join("plane"));
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

    /// A kubectl that talks to this server, if there is one on this machine.
    pub(crate) fn kubectl(&self) -> Option<Command> {
        let mut command = Command::new(&self.assets.as_ref()?.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command.env("KUBECACHEDIR", self.kubeconfig.with_file_name("kubectl-cache"));
        command.env_remove("KUBECONFIG");
        Some(command)
    }
}

async fn connect(kubeconfig: &std::path::Path) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(file, &options).await.unwrap();
    // A case counts the answers; a silent second try would hide one.
    config.default_retry = false;
    Client::try_from(config).unwrap()
}
