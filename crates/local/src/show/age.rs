//! How long ago something was, in as few letters as kubectl needs.

use jiff::Timestamp;
use serde_json::Value;

/// `<unknown>` for what never happened.
pub(super) fn since(time: Option<&Value>, now: Timestamp) -> String {
    match time.and_then(Value::as_str).and_then(|time| time.parse::<Timestamp>().ok()) {
        Some(time) => short(now.as_second() - time.as_second()),
        None => "<unknown>".to_owned(),
    }
}

/// Seconds as `5s`, `3m20s`, `7h5m`, `30d` and so on.
pub(super) fn short(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |big: i64, unit: &str, small: i64, below: &str| match small {
        0 => format!("{big}{unit}"),
        small => format!("{big}{unit}{small}{below}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => pair(days, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{days}d"),
        _ if hours < 24 * 365 * 8 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}
