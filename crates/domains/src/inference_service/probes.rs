//! From durations to the whole seconds and counts that Kubernetes probes take.

use windlass_api::serving::zerfoo_inference_service::HealthCheck;

#[cfg(test)]
mod tests;

/// The server's own paths: `/readyz` turns bad when the model is unloaded, `/healthz` does not.
const READY_PATH: &str = "/readyz";
const ALIVE_PATH: &str = "/healthz";

/// Time on top of the startup timeout for scheduling and pulling the image.
const ROLLOUT_SLACK_SECONDS: i32 = 600;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// Durations of the spec in nanoseconds, known to be positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub interval: i64,
    pub timeout: i64,
    pub startup: i64,
}

/// Probe settings of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probes {
    pub path: String,
    pub liveness_path: String,
    pub period_seconds: i32,
    pub timeout_seconds: i32,
    /// The port opens only after the model is loaded, so this many refusals are no failure.
    pub startup_failures: i32,
    pub progress_deadline_seconds: i32,
}

impl Probes {
    pub(super) fn new(health_check: &HealthCheck, times: Times) -> Self {
        let path = health_check.path.clone();
        let liveness_path = match &health_check.liveness_path {
            Some(own) => own.clone(),
            // An unloaded model must take the pod out of service, not restart it.
            None if path == READY_PATH => ALIVE_PATH.to_owned(),
            None => path.clone(),
        };
        let period_seconds = whole_seconds(times.interval);
        let period = i64::from(period_seconds) * NANOSECONDS_PER_SECOND;
        Self {
            path,
            liveness_path,
            period_seconds,
            timeout_seconds: whole_seconds(times.timeout),
            startup_failures: saturate(times.startup.div_ceil_by(period)),
            progress_deadline_seconds: whole_seconds(times.startup)
                .saturating_add(ROLLOUT_SLACK_SECONDS),
        }
    }
}

/// Rounded up, and at least one: Kubernetes takes zero for "use the default".
fn whole_seconds(nanoseconds: i64) -> i32 {
    saturate(nanoseconds.div_ceil_by(NANOSECONDS_PER_SECOND))
}

fn saturate(number: i64) -> i32 {
    i32::try_from(number.max(1)).unwrap_or(i32::MAX)
}

trait DivCeil {
    fn div_ceil_by(self, divisor: Self) -> Self;
}

impl DivCeil for i64 {
    /// For positive divisors; the standard library has this for unsigned numbers only.
    fn div_ceil_by(self, divisor: Self) -> Self {
        self.div_euclid(divisor) + Self::from(self.rem_euclid(divisor) != 0)
    }
}
