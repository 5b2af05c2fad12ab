//! The two servers, each with a store on the same disk and nothing in it but one definition.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use kube::Client;

use super::objects;
use crate::{
    bench::{
        operator::{Memory, cpu_of, memory_of},
        site,
    },
    cluster::{Assets, ControlPlane, Lifetime, Options, Process, wait_until},
    program::Profile,
    workspace::{cargo, project_root, target_folder},
};

const READY_WITHIN: Duration = Duration::from_secs(30);
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) client: Client,
    running: Running,
}

/// Ends with it.
enum Running {
    Real(Box<ControlPlane>),
    Embedded(Process),
}

impl Server {
    /// With the settings that kube-apiserver and etcd have unless told otherwise, so every answer is
    /// on the disk.
    pub(super) async fn real(assets: &Assets, dir: &Path) -> Result<Self> {
        let options = Options { controller_manager: false, fsync: true, ..Options::in_dir(dir) };
        let plane = ControlPlane::start(assets, options)?;
        let client = site::connect(&plane.kubeconfig()).await?;
        Ok(Self { name: "real", client, running: Running::Real(Box::new(plane)) })
    }

    pub(super) async fn embedded(program: &Path, dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let state = dir.join("state");
        let arguments = vec![state.clone().into_os_string()];
        let mut process = Process::start("embedded", program, arguments, dir, Lifetime::Bound)?;
        let kubeconfig = state.join("kubeconfig");
        wait_until("the embedded API server starts", READY_WITHIN, || {
            process.check_running()?;
            Ok(kubeconfig.exists().then_some(()))
        })?;
        let client = site::connect(&kubeconfig).await?;
        Ok(Self { name: "embedded", client, running: Running::Embedded(process) })
    }

    /// Adds the definition and the namespaces, and returns when both can be used.
    pub(super) async fn furnish(&self, namespaces: &[String]) -> Result<()> {
        self.wait_for("/readyz").await?;
        let definition = objects::definition()?;
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let request = objects::apply(DEFINITIONS, name, &definition)?;
        self.client.request_text(request).await.context("cannot apply the definition")?;
        for namespace in namespaces {
            let object = serde_json::json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": namespace}});
            let request = objects::apply("/api/v1/namespaces", namespace, &object)?;
            self.client.request_text(request).await.context("cannot make a namespace")?;
            for kind in objects::kinds()? {
                self.wait_for(&kind.path(namespace)).await?;
            }
        }
        Ok(())
    }

    async fn wait_for(&self, path: &str) -> Result<()> {
        const TRIES: u32 = 300;
        for _ in 0..TRIES {
            let request = http::Request::get(path).body(Vec::new());
            let request = request.context("cannot make a request")?;
            if self.client.request_text(request).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("the {} API server does not answer {path}", self.name)
    }

    fn processes(&self) -> Vec<u32> {
        match &self.running {
            Running::Real(plane) => plane.processes().into_iter().map(|(_, pid)| pid).collect(),
            Running::Embedded(process) => vec![process.pid()],
        }
    }

    /// Bytes in memory now, of all its processes.
    pub(super) fn memory(&self) -> Option<u64> {
        self.processes().into_iter().map(|process| memory_of(process, Memory::Now)).sum()
    }

    pub(super) fn cpu(&self) -> Duration {
        self.processes().into_iter().filter_map(cpu_of).sum()
    }
}

/// The embedded API server as a program of its own.
pub(super) fn build(profile: Profile) -> Result<PathBuf> {
    let (folder, flags): (_, &[&str]) = match profile {
        // Not of its package alone: features would come out otherwise than for the tests, and
        // everything below would be compiled a second time.
        Profile::Debug => ("debug", &["--workspace"]),
        Profile::Release => ("release", &["--package", "windlass-local", "--release"]),
    };
    let status = cargo()
        .args(["build", "--locked", "--example", "serve"])
        .args(flags)
        .current_dir(project_root())
        .status()
        .context("cannot run `cargo build`")?;
    if !status.success() {
        bail!("cannot build the embedded API server ({status})");
    }
    Ok(target_folder()?.join(folder).join("examples/serve"))
}
