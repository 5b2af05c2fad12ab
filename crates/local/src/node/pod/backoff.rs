//! How long a container waits before it is started again.

use jiff::{SignedDuration, Timestamp};

const FIRST: SignedDuration = SignedDuration::from_secs(10);
const MOST: SignedDuration = SignedDuration::from_secs(300);
/// A run of this length makes up for all failures before.
const FORGET: SignedDuration = SignedDuration::from_secs(600);

/// The waits of one container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff(Option<(SignedDuration, Timestamp)>);

impl Backoff {
    /// The wait after a run that ended at that time. The first restart has none.
    pub fn wait(&self, ended: Timestamp) -> SignedDuration {
        match self.0 {
            Some((wait, start)) if ended.duration_since(start) <= FORGET => wait,
            _ => SignedDuration::ZERO,
        }
    }

    /// Notes a restart.
    pub fn restart(&mut self, ended: Timestamp, now: Timestamp) {
        let wait = self.wait(ended);
        let next = if wait.is_zero() { FIRST } else { doubled(wait, MOST) };
        self.0 = Some((next, now));
    }
}

/// Twice as long, within a limit.
pub(super) fn doubled(wait: SignedDuration, most: SignedDuration) -> SignedDuration {
    wait.saturating_mul(2).min(most)
}

/// `tries` failures in a row: the first wait, doubled for each after the first.
pub(super) fn growing(first: SignedDuration, most: SignedDuration, tries: u32) -> SignedDuration {
    (1..tries.min(32)).fold(first.min(most), |wait, _| doubled(wait, most))
}

/// As texts write it: `1m20s`.
pub(super) fn text(wait: SignedDuration) -> String {
    let seconds = wait.as_secs();
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}
