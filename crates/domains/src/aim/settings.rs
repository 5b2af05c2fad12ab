//! What the operator's administrator decides for all objects of the catalogue.

use std::time::Duration;

/// Where the cluster-wide objects have what must lie in a namespace.
pub const DEFAULT_OPERATOR_NAMESPACE: &str = "kaiwo-system";

/// Enough to pull a large image.
pub const DEFAULT_DISCOVERY_PATIENCE: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Namespace of the discovery Jobs of cluster templates, and of their namespaced runtime config.
    pub operator_namespace: String,
    pub resolution: Resolution,
    /// A discovery Job that has not ended by then has failed.
    pub discovery_patience: Duration,
}

/// What becomes of the cluster's runtime config where the namespace has one of the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// That of the namespace counts alone.
    #[default]
    Override,
    /// It fills what that of the namespace leaves open.
    Merge,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            operator_namespace: DEFAULT_OPERATOR_NAMESPACE.to_owned(),
            resolution: Resolution::default(),
            discovery_patience: DEFAULT_DISCOVERY_PATIENCE,
        }
    }
}
