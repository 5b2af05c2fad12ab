//! What is worth another try, and when.

use std::time::Duration;

use http::StatusCode;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);
/// What a server may ask for; more is as good as a refusal.
const PATIENCE: Duration = Duration::from_secs(300);

/// What may be otherwise the next time.
pub(crate) fn is_passing(status: StatusCode) -> bool {
    status == StatusCode::REQUEST_TIMEOUT
        || status == StatusCode::TOO_MANY_REQUESTS
        || status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
}

/// How long to wait after so many failures. `jitter` is from 0 to 255, so that not all come back at once.
pub(crate) fn wait(failures: u32, asked: Option<Duration>, jitter: u8) -> Option<Duration> {
    if let Some(asked) = asked {
        return (asked <= PATIENCE).then_some(asked);
    }
    let doubled =
        FIRST.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
    let longest = doubled.min(LONGEST);
    // From three quarters of it to the whole.
    Some(longest.mul_f64(0.75 + f64::from(jitter) / 1024.0))
}

/// `Retry-After` in seconds; dates are not worth the trouble.
pub(crate) fn asked(header: Option<&str>) -> Option<Duration> {
    header.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_double_and_a_server_may_ask_for_its_own() {
        let seconds = |failures, jitter| wait(failures, None, jitter).unwrap().as_secs_f64();
        assert!((seconds(1, 255) - 0.25).abs() < 0.01 && (seconds(1, 0) - 0.1875).abs() < 0.01);
        assert!((seconds(3, 255) - 1.0).abs() < 0.01);
        assert!(seconds(60, 255) <= 30.0 && seconds(60, 0) >= 20.0);
        assert_eq!(wait(1, asked(Some("2")), 0), Some(Duration::from_secs(2)));
        assert_eq!(wait(1, asked(Some("86400")), 0), None);
        assert_eq!(asked(Some("Fri, 01 Jan 2100 00:00:00 GMT")), None);
    }

    #[test]
    fn only_what_passes_is_tried_again() {
        for (status, want) in [
            (408, true),
            (429, true),
            (500, true),
            (503, true),
            (501, false),
            (400, false),
            (401, false),
            (403, false),
            (404, false),
            (413, false),
        ] {
            assert_eq!(is_passing(StatusCode::from_u16(status).unwrap()), want, "{status}");
        }
    }
}
