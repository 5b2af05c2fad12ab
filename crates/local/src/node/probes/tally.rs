//! How often in a row.

use k8s_openapi::api::core::v1::Probe;

/// Counts answers until they make a difference.
#[derive(Clone, Debug)]
pub struct Tally {
    failures: u32,
    successes: u32,
    last: Option<bool>,
    row: u32,
    verdict: Option<bool>,
}

impl Tally {
    pub fn new(spec: &Probe) -> Self {
        let count = |value: Option<i32>, default: u32| {
            value
                .and_then(|value| u32::try_from(value).ok())
                .filter(|value| *value > 0)
                .unwrap_or(default)
        };
        Self {
            failures: count(spec.failure_threshold, 3),
            successes: count(spec.success_threshold, 1),
            last: None,
            row: 0,
            verdict: None,
        }
    }

    /// The verdict, if this answer has changed it.
    pub fn count(&mut self, passed: bool) -> Option<bool> {
        self.row = if self.last == Some(passed) { self.row.saturating_add(1) } else { 1 };
        self.last = Some(passed);
        let enough = if passed { self.successes } else { self.failures };
        if self.row < enough || self.verdict == Some(passed) {
            return None;
        }
        self.verdict = Some(passed);
        self.verdict
    }
}
