//! How long a watch that failed waits before it is taken up again.

use std::time::Duration;

use kube::runtime::{utils::Backoff, watcher::DefaultBackoff};
use tokio::time::Instant;

/// An API server that opens the storage of a kind answers 429 until it has, which takes some
/// hundredths of a second. The workers wait for the first listing, so it is asked again at once.
const SOON: [Duration; 5] = [
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
];
/// After so long without a failure there may be such haste again.
const CALM: Duration = Duration::from_secs(120);

/// A few times soon, then as patiently as other clients. A watch that works for a moment and fails
/// again does not get its hurried tries back.
#[derive(Default)]
pub(super) struct SoonThenPatient {
    hurried: usize,
    last: Option<Instant>,
    patient: DefaultBackoff,
}

impl Iterator for SoonThenPatient {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) > CALM) {
            self.hurried = 0;
        }
        self.last = Some(now);
        match SOON.get(self.hurried) {
            Some(delay) => {
                self.hurried += 1;
                Some(*delay)
            }
            None => self.patient.next(),
        }
    }
}

impl Backoff for SoonThenPatient {
    fn reset(&mut self) {
        self.patient.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_failures_are_retried_at_once_and_later_ones_are_not() {
        let mut backoff = SoonThenPatient::default();
        let soon: Vec<Duration> = backoff.by_ref().take(SOON.len()).collect();
        assert_eq!(soon, SOON);
        for _ in 0..3 {
            // Something was seen in between.
            backoff.reset();
            let wait = backoff.next().unwrap();
            assert!(wait >= Duration::from_millis(800), "{wait:?}");
        }
        tokio::time::advance(CALM * 2).await;
        assert_eq!(backoff.next(), Some(SOON[0]));
    }
}
