//! `windlass manifests`: everything that installs the operator, its rights derived from its code.

mod objects;
mod rights;
mod users;

use clap::{Args, ValueEnum};
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::Value;

use crate::{names, output};

pub(crate) use objects::NAME as ACCOUNT;
pub(crate) use rights::rules_in as rules;

const NAMESPACE: &str = "windlass-system";
/// Where its image is.
macro_rules! repository {
    () => {
        "ghcr.io/windlass/windlass"
    };
}
pub(crate) const REPOSITORY: &str = repository!();
const IMAGE: &str = concat!(repository!(), ":", env!("CARGO_PKG_VERSION"));

#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Namespace that the operator runs in
    #[arg(short, long, default_value = NAMESPACE, value_parser = names::dns_label)]
    pub(crate) namespace: String,
    /// Image of the operator
    #[arg(long, default_value = IMAGE, value_parser = names::image)]
    pub(crate) image: String,
    /// Operators to run; one leads, the others stand by
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) replicas: i32,
    /// Namespaces to watch, comma-separated; the rights are then limited to them. All if not given
    #[arg(long, value_delimiter = ',', value_parser = names::dns_label)]
    pub(crate) watch_namespaces: Vec<String>,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            namespace: NAMESPACE.to_owned(),
            image: IMAGE.to_owned(),
            replicas: 1,
            watch_namespaces: Vec::new(),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RulesFlags {
    /// Where the rules hold
    #[arg(long, default_value = "namespace")]
    pub(crate) scope: Scope,
}

/// Where the operator has rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// Each namespace that it watches
    Namespace,
    /// The cluster as a whole
    Cluster,
    /// Its own namespace
    Leader,
}

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let mut documents = prerequisites(flags)?;
    documents.push(serde_json::to_value(objects::deployment(flags))?);
    output::print_yaml(&documents)
}

/// What people may do with our kinds.
pub(crate) fn user_roles() -> Vec<ClusterRole> {
    windlass_api::crds().iter().flat_map(users::roles).collect()
}

/// All that the operator needs before it runs, in the order in which it may be applied.
pub(crate) fn prerequisites(flags: &Flags) -> serde_json::Result<Vec<Value>> {
    let mut documents: Vec<Value> = vec![serde_json::to_value(objects::namespace(flags))?];
    let mut roles = Vec::new();
    for definition in windlass_api::crds() {
        roles.extend(users::roles(&definition));
        documents.push(serde_json::to_value(definition)?);
    }
    documents.push(serde_json::to_value(objects::service_account(flags))?);
    documents.extend(rights::objects(flags)?);
    for role in roles {
        documents.push(serde_json::to_value(role)?);
    }
    Ok(documents)
}
