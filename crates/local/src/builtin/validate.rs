//! What makes an object unacceptable, in Kubernetes' words.

mod config;
mod container;
mod meta;
pub(super) mod names;
mod pod;
mod rbac;
mod resources;
pub(crate) mod selectors;
mod service;
mod storage;
mod volume;
mod workload;

use serde_json::Value;

use super::{
    Resource,
    causes::{Causes, Path},
    object::at,
    unsupported,
};
use crate::error::Cause;

pub use meta::metadata;
pub(crate) use storage::refused_growth;

/// What is wrong with a new object, or with one that replaces `old`. It has its defaults.
pub fn validate(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Causes::default();
    let core_event = resource.group.is_empty() && resource.kind == "Event";
    if !core_event {
        meta::check(resource, new, old, &mut causes);
    }
    match (&*resource.group, &*resource.kind) {
        ("", "Pod") => pod::pod(new, old, &mut causes),
        ("", "Service") => service::service(new, old, &mut causes),
        ("", "Endpoints") => service::endpoints(new, &mut causes),
        ("", "Namespace") => meta::namespace(new, old, &mut causes),
        ("", "ConfigMap") => config::config_map(new, old, &mut causes),
        ("", "Secret") => config::secret(new, old, &mut causes),
        ("", "PersistentVolumeClaim") => storage::claim(new, old, &mut causes),
        ("", "PersistentVolume") => storage::volume(new, old, &mut causes),
        ("", "Event") => config::event(new, old, false, &mut causes),
        ("events.k8s.io", "Event") => config::event(new, old, true, &mut causes),
        ("apps", "Deployment") => workload::deployment(new, old, &mut causes),
        ("apps", "ReplicaSet") => workload::replica_set(new, old, &mut causes),
        ("batch", "Job") => workload::job(new, old, &mut causes),
        ("autoscaling", _) => workload::autoscaler(new, old, &mut causes),
        ("discovery.k8s.io", _) => service::endpoint_slice(new, old, &mut causes),
        ("coordination.k8s.io", _) => config::lease(new, &mut causes),
        ("storage.k8s.io", _) => storage::class(new, old, &mut causes),
        ("networking.k8s.io", _) => config::network_policy(new, &mut causes),
        ("policy", "PodDisruptionBudget") => config::disruption_budget(new, &mut causes),
        ("scheduling.k8s.io", _) => config::priority_class(new, old, &mut causes),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => {
            rbac::role(new, resource.namespaced, &mut causes);
        }
        ("rbac.authorization.k8s.io", _) => {
            rbac::binding(new, resource.namespaced, old, &mut causes);
        }
        _ => {}
    }
    unsupported::check(resource, new, old, &mut causes);
    causes.0
}

fn immutable(object: &Value, old: &Value, path: &[&str], causes: &mut Causes) {
    let new = at(object, path);
    if new != at(old, path) {
        let value = new.cloned().unwrap_or_default();
        causes.invalid(&Path::new(path.join(".")), value, "field is immutable");
    }
}
