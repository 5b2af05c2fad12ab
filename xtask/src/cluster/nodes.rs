//! Fake nodes: kube-scheduler places pods, kwok reports them ready, and nothing runs.

use std::{path::Path, process::Command};

use anyhow::Result;

use super::{
    ControlPlane, NodeAssets,
    build::yaml_files,
    control_plane::{Arguments, apply_text, free_port},
    process::{Lifetime, Process},
};

const COUNT: usize = 2;

/// Fake nodes of a control plane. Dropping them ends their programs.
pub struct Nodes {
    _processes: [Process; 2],
}

impl Nodes {
    /// Adds two nodes with GPUs, whose programs write their logs into the control plane's folder.
    pub fn add_to(plane: &ControlPlane, assets: &NodeAssets) -> Result<Nodes> {
        let processes = start(assets, plane.dir(), Lifetime::Bound, plane.kubectl())?;
        Ok(Nodes { _processes: processes })
    }
}

/// Starts scheduler and kwok in the folder of a running control plane and adds the nodes.
pub(super) fn start(
    assets: &NodeAssets,
    dir: &Path,
    lifetime: Lifetime,
    kubectl: Command,
) -> Result<[Process; 2]> {
    let kubeconfig = dir.join("kubeconfig");
    let mut arguments = Arguments::default();
    arguments
        .path("--kubeconfig", &kubeconfig)
        .text("--leader-elect", "false")
        .text("--secure-port", "0");
    let program = &assets.kube_scheduler;
    let scheduler = Process::start("kube-scheduler", program, arguments.0, dir, lifetime)?;

    let port = free_port()?;
    let mut arguments = Arguments::default();
    arguments
        .path("--kubeconfig", &kubeconfig)
        .text("--manage-all-nodes", "true")
        .text("--server-address", &format!("127.0.0.1:{port}"))
        .text("--node-port", &port.to_string());
    for stage in yaml_files(&assets.stages)? {
        arguments.path("--config", &stage);
    }
    let kwok = Process::start("kwok", &assets.kwok, arguments.0, dir, lifetime)?;
    let nodes: Vec<String> = (1..=COUNT).map(node).collect();
    apply_text(kubectl, "nodes", &nodes.join("---\n"))?;
    Ok([scheduler, kwok])
}

/// A machine with eight GPUs of 80 GB, as the GPU operator labels it.
fn node(number: usize) -> String {
    let room = r#"{cpu: "64", memory: 512Gi, pods: "110", nvidia.com/gpu: "8"}"#;
    format!(
        r#"apiVersion: v1
kind: Node
metadata:
  name: node{number}
  annotations:
    kwok.x-k8s.io/node: fake
  labels:
    kubernetes.io/hostname: node{number}
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    nvidia.com/gpu.memory: "81559"
status:
  capacity: {room}
  allocatable: {room}
"#
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_node_offers_its_gpus() {
        let node: Value = serde_saphyr::from_str(&node(1)).unwrap();
        assert_eq!(node["status"]["allocatable"]["nvidia.com/gpu"], "8");
        assert_eq!(node["metadata"]["labels"]["nvidia.com/gpu.memory"], "81559");
    }
}
