//! The programs of a cluster and where they are found.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};

use super::build;
use crate::cache;

pub(crate) const KUBERNETES_VERSION: &str = "v1.36.3";
pub(super) const ETCD_VERSION: &str = "v3.6.8";
pub(super) const KWOK_VERSION: &str = "v0.8.0";
pub(super) const HELM_VERSION: &str = "v3.22.0";
/// Of the CRDs as well.
pub(super) const KSERVE_VERSION: &str = "v0.16.0";

/// A program we run and did not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Etcd,
    ApiServer,
    ControllerManager,
    Kubectl,
    Scheduler,
    Kwok,
    Helm,
    Kserve,
}

impl Program {
    /// What a control plane for tests needs.
    pub(super) const CONTROL_PLANE: [Program; 4] =
        [Program::Etcd, Program::ApiServer, Program::ControllerManager, Program::Kubectl];
    /// What fake nodes need on top.
    pub(super) const NODES: [Program; 2] = [Program::Scheduler, Program::Kwok];

    pub(super) fn name(self) -> &'static str {
        match self {
            Program::Etcd => "etcd",
            Program::ApiServer => "kube-apiserver",
            Program::ControllerManager => "kube-controller-manager",
            Program::Kubectl => "kubectl",
            Program::Scheduler => "kube-scheduler",
            Program::Kwok => "kwok",
            Program::Helm => "helm",
            Program::Kserve => "kserve-manager",
        }
    }

    pub(super) fn cached(self, cache: &Path) -> PathBuf {
        let (project, version) = match self {
            Program::Etcd => ("etcd", ETCD_VERSION),
            Program::Kwok => ("kwok", KWOK_VERSION),
            Program::Helm => ("helm", HELM_VERSION),
            Program::Kserve => ("kserve", KSERVE_VERSION),
            _ => ("kubernetes", KUBERNETES_VERSION),
        };
        cache.join(project).join(version).join(self.name())
    }

    /// The program where it lies ready to run, if it does.
    pub(super) fn find(self) -> Result<Option<PathBuf>> {
        let given = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        let given = given.map(|folder| folder.join(self.name()));
        let candidates = [given, Some(self.cached(&cache::dir()?))];
        Ok(candidates.into_iter().flatten().find(|path| path.is_file()))
    }
}

/// The programs of a control plane.
#[derive(Clone, Debug)]
pub struct Assets {
    pub etcd: PathBuf,
    pub kube_apiserver: PathBuf,
    pub kube_controller_manager: PathBuf,
    pub kubectl: PathBuf,
}

impl Assets {
    /// The programs as they lie ready. Builds nothing: the error names the missing ones.
    pub fn find() -> Result<Assets> {
        let [etcd, kube_apiserver, kube_controller_manager, kubectl] =
            find_all(Program::CONTROL_PLANE)?;
        Ok(Assets { etcd, kube_apiserver, kube_controller_manager, kubectl })
    }

    /// The programs, building the missing ones with Go, which takes minutes the first time.
    pub fn ensure() -> Result<Assets> {
        build::programs(&Program::CONTROL_PLANE)?;
        Assets::find()
    }
}

/// The programs of fake nodes: pods are scheduled and become ready, and nothing runs in them.
#[derive(Clone, Debug)]
pub struct NodeAssets {
    pub kube_scheduler: PathBuf,
    pub kwok: PathBuf,
    /// Folder with the files that tell kwok how a node and a pod advance.
    pub stages: PathBuf,
}

impl NodeAssets {
    /// The programs and stage files as they lie ready. Builds nothing.
    pub fn find() -> Result<NodeAssets> {
        let [kube_scheduler, kwok] = find_all(Program::NODES)?;
        let stages = build::stages_folder()?;
        if !stages.is_dir() {
            bail!("cannot find the stage files of kwok; {HOW_TO_GET_THEM_ALL}");
        }
        Ok(NodeAssets { kube_scheduler, kwok, stages })
    }

    /// The programs, building the missing ones with Go.
    pub fn ensure() -> Result<NodeAssets> {
        build::programs(&Program::NODES)?;
        build::stages()?;
        NodeAssets::find()
    }
}

/// kubectl as it lies ready, where no control plane is wanted.
pub fn find_kubectl() -> Result<PathBuf> {
    let [kubectl] = find_all([Program::Kubectl])?;
    Ok(kubectl)
}

/// Helm as it lies ready, for the tests of the chart.
pub fn find_helm() -> Result<PathBuf> {
    let [helm] = find_all([Program::Helm])?;
    Ok(helm)
}

/// Helm, built with Go if it is missing.
pub fn ensure_helm() -> Result<PathBuf> {
    build::programs(&[Program::Helm])?;
    find_helm()
}

/// KServe's controller as it lies ready.
pub fn find_kserve() -> Result<PathBuf> {
    let [kserve] = find_all([Program::Kserve])?;
    Ok(kserve)
}

/// KServe's controller, built with Go if it is missing.
pub fn ensure_kserve() -> Result<PathBuf> {
    build::programs(&[Program::Kserve])?;
    find_kserve()
}

const HOW_TO_GET_THEM: &str = "run `cargo xtask cluster build` (needs Go) or set KUBEBUILDER_ASSETS to a folder that holds them";
const HOW_TO_GET_THEM_ALL: &str = "run `cargo xtask cluster build --all` (needs Go)";

fn find_all<const N: usize>(programs: [Program; N]) -> Result<[PathBuf; N]> {
    let mut paths = [const { PathBuf::new() }; N];
    let mut missing = Vec::new();
    for (program, path) in programs.into_iter().zip(&mut paths) {
        match program.find()? {
            Some(found) => *path = found,
            None => missing.push(program.name()),
        }
    }
    if missing.is_empty() {
        return Ok(paths);
    }
    let extra = |program: &Program| !Program::CONTROL_PLANE.contains(program);
    let how = if programs.iter().any(extra) { HOW_TO_GET_THEM_ALL } else { HOW_TO_GET_THEM };
    bail!("cannot find {}; {how}", missing.join(", "))
}
