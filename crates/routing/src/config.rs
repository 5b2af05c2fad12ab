//! EndpointPickerConfig.

/// What the picker is made of: plugins, and the profiles they form.
#[derive(Clone, Debug, Default)]
pub struct Config {}

/// Why a configuration is refused; the text names the item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Config {
    /// YAML or JSON.
    pub fn parse(_text: &str) -> Result<Self, Error> {
        Ok(Self {})
    }

    /// What was ignored, for the log.
    pub fn warnings(&self) -> &[String] {
        &[]
    }
}
