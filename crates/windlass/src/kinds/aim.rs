//! Flags of the AIM kinds.

use std::time::Duration;

use clap::{Args, ValueEnum};
use windlass_domains::aim::{
    DEFAULT_DISCOVERY_PATIENCE, DEFAULT_OPERATOR_NAMESPACE, Resolution, Settings,
};

const HEADING: &str = "AIM";

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = HEADING)]
#[group(id = "aim")]
pub(crate) struct Flags {
    /// Namespace of the discovery Jobs of AIMClusterServiceTemplates
    // Under this name the Go original reads it, and there nothing means the default.
    #[arg(
        long,
        env = "AIM_OPERATOR_NAMESPACE",
        default_value = DEFAULT_OPERATOR_NAMESPACE,
        value_parser = namespace
    )]
    pub(crate) aim_operator_namespace: String,
    /// What becomes of an AIMClusterRuntimeConfig where the namespace has a config of the same name:
    /// it is overridden as a whole, or fills what that leaves open
    #[arg(long, env = "WINDLASS_RUNTIME_CONFIG_RESOLUTION", default_value = "override")]
    pub(crate) runtime_config_resolution: ResolutionFlag,
    /// Give up a discovery Job after this many seconds
    #[arg(
        long,
        env = "WINDLASS_AIM_DISCOVERY_DEADLINE_SECONDS",
        value_name = "SECONDS",
        default_value_t = DEFAULT_DISCOVERY_PATIENCE.as_secs(),
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub(crate) aim_discovery_deadline_seconds: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResolutionFlag {
    Override,
    Merge,
}

fn namespace(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Ok(DEFAULT_OPERATOR_NAMESPACE.to_owned());
    }
    crate::names::dns_label(text)
}

impl Default for Flags {
    /// As on a command line without any; the environment has no say.
    fn default() -> Self {
        Self {
            aim_operator_namespace: DEFAULT_OPERATOR_NAMESPACE.to_owned(),
            runtime_config_resolution: ResolutionFlag::Override,
            aim_discovery_deadline_seconds: DEFAULT_DISCOVERY_PATIENCE.as_secs(),
        }
    }
}

impl Flags {
    pub(crate) fn merges(&self) -> bool {
        self.runtime_config_resolution == ResolutionFlag::Merge
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            operator_namespace: self.aim_operator_namespace.clone(),
            resolution: match self.runtime_config_resolution {
                ResolutionFlag::Override => Resolution::Override,
                ResolutionFlag::Merge => Resolution::Merge,
            },
            discovery_patience: Duration::from_secs(self.aim_discovery_deadline_seconds),
        }
    }
}
