//! The runtime config that an object runs with: by name, the namespace before the cluster.

use windlass_api::aim::DEFAULT_RUNTIME_CONFIG;
use windlass_api::aim::reference::{ResolvedReference, Scope};
use windlass_api::aim::runtime_config::{
    AimClusterRuntimeConfig, AimRuntimeConfig, AimRuntimeConfigSpec, Routing, RuntimeConfigSpec,
};
use windlass_engine::error::Error;
use windlass_engine::fetch::{Fetched, Reader, get};

use super::settings::Resolution;

/// Answers of the API as they came.
#[derive(Clone, Debug)]
pub(super) struct Configs {
    /// What was asked for.
    pub(super) name: String,
    pub(super) namespaced: Fetched<AimRuntimeConfig>,
    pub(super) cluster: Fetched<AimClusterRuntimeConfig>,
}

/// What the answers mean.
#[derive(Clone, Debug)]
pub(super) enum Resolved {
    Found(Box<Config>),
    /// Nobody has to provide the one named `default`.
    Nothing,
    /// One of this name was asked for, and there is none.
    Missing {
        name: String,
    },
    Failed(Error),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Config {
    pub(super) spec: AimRuntimeConfigSpec,
    /// The one that decides.
    pub(super) reference: ResolvedReference,
    /// Whether one of the cluster fills what that leaves open.
    pub(super) is_filled: bool,
}

/// The name to look for; absent and blank mean the default.
pub(super) fn effective_name(name: Option<&str>) -> &str {
    name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(DEFAULT_RUNTIME_CONFIG)
}

pub(super) async fn fetch(reader: &dyn Reader, namespace: &str, name: Option<&str>) -> Configs {
    let name = effective_name(name);
    Configs {
        namespaced: get(reader, Some(namespace), name).await,
        cluster: get(reader, None, name).await,
        name: name.to_owned(),
    }
}

impl Configs {
    pub(super) fn resolve(&self, resolution: Resolution) -> Resolved {
        if let Some(error) = self.namespaced.error().or(self.cluster.error()) {
            return Resolved::Failed(error.clone());
        }
        match (self.namespaced.found(), self.cluster.found()) {
            (Some(own), cluster) => found(Config {
                spec: match (resolution, cluster) {
                    (Resolution::Merge, Some(cluster)) => merge(&cluster.spec.common, &own.spec),
                    _ => own.spec.clone(),
                },
                is_filled: resolution == Resolution::Merge && cluster.is_some(),
                reference: ResolvedReference {
                    namespace: own.metadata.namespace.clone(),
                    scope: Some(Scope::Namespace.as_str().to_owned()),
                    kind: Some("AIMRuntimeConfig".to_owned()),
                    uid: own.metadata.uid.clone(),
                    name: Some(self.name.clone()),
                },
            }),
            (None, Some(cluster)) => found(Config {
                spec: AimRuntimeConfigSpec {
                    common: cluster.spec.common.clone(),
                    ..Default::default()
                },
                is_filled: false,
                reference: ResolvedReference {
                    scope: Some(Scope::Cluster.as_str().to_owned()),
                    kind: Some("AIMClusterRuntimeConfig".to_owned()),
                    uid: cluster.metadata.uid.clone(),
                    name: Some(self.name.clone()),
                    namespace: None,
                },
            }),
            (None, None) if self.name == DEFAULT_RUNTIME_CONFIG => Resolved::Nothing,
            (None, None) => Resolved::Missing { name: self.name.clone() },
        }
    }
}

impl Resolved {
    pub(super) fn config(&self) -> Option<&Config> {
        match self {
            Self::Found(config) => Some(config),
            _ => None,
        }
    }

    /// What is to be said of a config that was asked for by name and does not exist.
    pub(super) fn missing(&self) -> Option<String> {
        match self {
            Self::Missing { name } => {
                Some(format!("runtime config \"{name}\" not found: runtime config not found"))
            }
            _ => None,
        }
    }
}

fn found(config: Config) -> Resolved {
    Resolved::Found(Box::new(config))
}

fn merge(cluster: &RuntimeConfigSpec, own: &AimRuntimeConfigSpec) -> AimRuntimeConfigSpec {
    let common = RuntimeConfigSpec {
        default_storage_class_name: own
            .common
            .default_storage_class_name
            .clone()
            .or_else(|| cluster.default_storage_class_name.clone()),
        routing: match (&own.common.routing, &cluster.routing) {
            (Some(own), Some(cluster)) => Some(merge_routing(cluster, own)),
            (own, cluster) => own.clone().or_else(|| cluster.clone()),
        },
    };
    AimRuntimeConfigSpec { common, ..own.clone() }
}

/// A reference replaces a reference whole.
fn merge_routing(cluster: &Routing, own: &Routing) -> Routing {
    Routing {
        enabled: own.enabled.or(cluster.enabled),
        gateway_ref: own.gateway_ref.clone().or_else(|| cluster.gateway_ref.clone()),
        route_template: own.route_template.clone().or_else(|| cluster.route_template.clone()),
    }
}

#[cfg(test)]
mod tests;
