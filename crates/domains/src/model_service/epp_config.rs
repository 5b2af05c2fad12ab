//! The endpoint picker's configuration file.
//!
//! The files of the older dialect are kept byte for byte as they have always been: their hash stands
//! in the picker's pod template, and another one would restart every picker.

use windlass_engine::names::hash;

#[cfg(test)]
mod tests;

/// Which pickers a configuration is for; the newer ones have renamed their plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `inference.networking.x-k8s.io/v1alpha1`, of the scheduler up to v0.8.
    #[default]
    InferenceExtension,
    /// `llm-d.ai/v1alpha1`, of the router from v0.9 on.
    LlmD,
}

/// A file of the picker's ConfigMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConfigFile {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

impl ConfigFile {
    /// `split` tells whether prompts are read by pods of their own.
    pub(super) fn new(dialect: Dialect, split: bool) -> Self {
        let name = if split { "pd-config.yaml" } else { "default-plugins.yaml" };
        let text = match (dialect, split) {
            (Dialect::InferenceExtension, false) => {
                include_str!("epp_config/default-plugins.yaml")
            }
            (Dialect::InferenceExtension, true) => include_str!("epp_config/pd-config.yaml"),
            (Dialect::LlmD, false) => include_str!("epp_config/default-plugins.llm-d.yaml"),
            (Dialect::LlmD, true) => include_str!("epp_config/pd-config.llm-d.yaml"),
        };
        Self { name, text }
    }

    /// Over name and content; a change of it restarts the picker.
    pub(super) fn hash(self) -> String {
        hash(&format!("{}{}", self.name, self.text), 64)
    }
}
