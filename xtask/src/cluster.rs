//! A real Kubernetes control plane on one machine: etcd, kube-apiserver, kube-controller-manager.
//!
//! [`Assets`] are the programs, taken from `KUBEBUILDER_ASSETS`, the cache, or built with Go.
//! [`ControlPlane`] runs them on loopback with a folder, keys and a token of its own, and takes
//! them down with itself. [`standing`] keeps one running between commands for work by hand.
//!
//! No admin rights are needed, and nothing is shared between two control planes.

mod assets;
mod build;
mod control_plane;
mod crds;
mod keys;
mod kserve;
mod nodes;
mod process;
pub mod standing;
mod wait;

pub(crate) use assets::KUBERNETES_VERSION;
pub use assets::{
    Assets, NodeAssets, ensure_helm, ensure_kserve, find_helm, find_kserve, find_kubectl,
};
#[cfg(feature = "bench")]
pub(crate) use control_plane::free_port;
pub use control_plane::{ControlPlane, Options};
pub use crds::{CRD_SETS, apply_crds, apply_own_crds, ensure_crds};
pub use kserve::Kserve;
pub use nodes::Nodes;
pub use process::Lifetime;
pub(crate) use process::Process;
pub use wait::wait_until;
