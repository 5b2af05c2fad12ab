//! Flags of `windlass operator`. Names and defaults of the Go originals are kept where they had one.

use std::{env, path::PathBuf};

use clap::{ArgAction, Args};

use super::{logging, server};
use crate::{
    kinds::{self, KindName},
    names,
};

#[derive(Debug, Clone, Args)]
pub(crate) struct Flags {
    /// File with flags as YAML; flags and environment variables win over it
    #[arg(long, env = "WINDLASS_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Kubeconfig to use instead of the current one or the cluster's own
    #[arg(long, env = "WINDLASS_KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Namespaces to watch, comma-separated; all if not given
    #[arg(long, env = "WINDLASS_WATCH_NAMESPACES", value_delimiter = ',', value_parser = names::dns_label)]
    pub(crate) watch_namespaces: Vec<String>,
    #[command(flatten)]
    pub(crate) work: Work,

    /// Act only while holding a Lease, so that several operators can run
    #[arg(
        long, env = "WINDLASS_LEADER_ELECT", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value_t = false, action = ArgAction::Set
    )]
    pub(crate) leader_elect: bool,
    /// Name of that Lease
    #[arg(long, env = "WINDLASS_LEASE_NAME", default_value = "windlass", value_parser = names::dns_subdomain)]
    pub(crate) lease_name: String,
    /// Namespace of that Lease; the operator's own if not given
    #[arg(long, env = "WINDLASS_LEASE_NAMESPACE", value_parser = names::dns_label)]
    pub(crate) lease_namespace: Option<String>,
    /// Leases of operators that this one replaces, as NAME or NAMESPACE/NAME, comma-separated: held too,
    /// so that old and new never act together; empty for none
    #[arg(
        long, env = "WINDLASS_PREDECESSOR_LEASES", value_delimiter = ',', value_name = "LEASES",
        default_value = "model-operator-leader-election", value_parser = lease
    )]
    pub(crate) predecessor_leases: Vec<LeaseRef>,

    #[command(flatten)]
    pub(super) metrics: server::MetricsFlags,
    /// Address for /healthz and /readyz; 0 for none
    #[arg(long, env = "WINDLASS_HEALTH_PROBE_BIND_ADDRESS", default_value = ":8081")]
    pub(crate) health_probe_bind_address: String,

    #[command(flatten)]
    pub(super) logging: logging::Flags,
    #[command(flatten)]
    pub(super) zap: logging::Zap,
}

/// What the controllers do, wherever they run.
#[derive(Debug, Clone, Args)]
#[group(id = "work")]
pub(crate) struct Work {
    /// Kinds to reconcile, comma-separated; all if not given
    #[arg(long, env = "WINDLASS_ENABLE_KINDS", value_delimiter = ',', ignore_case = true)]
    enable_kinds: Vec<KindName>,
    /// Objects of one kind that are reconciled at once
    #[arg(long, env = "WINDLASS_CONCURRENCY", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) concurrency: u16,

    #[command(flatten)]
    pub(super) kinds: kinds::Flags,
}

/// A Lease, by default in the namespace of the operator's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseRef {
    namespace: Option<String>,
    /// Empty in an empty list, which arrives as one empty text.
    name: String,
}

fn lease(text: &str) -> Result<LeaseRef, String> {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(names::dns_label(namespace)?), name),
        None => (None, text),
    };
    let name = if text.is_empty() { String::new() } else { names::dns_subdomain(name)? };
    Ok(LeaseRef { namespace, name })
}

impl Flags {
    /// Namespace and name of each Lease to hold; `None` if leadership does not matter.
    pub(crate) fn leases(&self, operator_namespace: &str) -> Option<Vec<(String, String)>> {
        let home = self.lease_namespace.as_deref().unwrap_or(operator_namespace);
        let own = (home.to_owned(), self.lease_name.clone());
        let others = self.predecessor_leases.iter().filter(|lease| !lease.name.is_empty());
        let others = others.map(|lease| {
            (lease.namespace.clone().unwrap_or_else(|| home.to_owned()), lease.name.clone())
        });
        let mut all: Vec<_> = [own].into_iter().chain(others).collect();
        // In the same order for everyone, and no lease twice.
        all.sort();
        all.dedup();
        self.leader_elect.then_some(all)
    }
}

impl Work {
    pub(super) fn enabled(&self) -> Vec<KindName> {
        let mut kinds = self.enable_kinds.clone();
        if kinds.is_empty() {
            kinds.extend(KindName::ALL);
        }
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}

/// This process, unlike any other that runs or ever ran.
pub(super) fn identity() -> String {
    let host = env::var("POD_NAME").or_else(|_| env::var("HOSTNAME")).unwrap_or_else(|_| {
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .map_or_else(|_| "windlass".to_owned(), |name| name.trim().to_owned())
    });
    let started = jiff::Timestamp::now().as_millisecond();
    format!("{host}_{}_{started:x}", std::process::id())
}
