//! What pods use of the processor, measured when somebody asks.

use std::{
    collections::BTreeMap,
    fs,
    sync::{Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};

use super::{places::Places, processes, record::Records};
use crate::controllers::{Sample, Usage};

/// In how many parts Linux counts a second, on all machines we know.
const TICKS: i64 = 100;
/// A shorter time says little.
const SHORTEST: SignedDuration = SignedDuration::from_secs(1);

/// Remembers the last look at each pod.
#[derive(Debug)]
pub struct Meter {
    places: Places,
    seen: Mutex<BTreeMap<String, Look>>,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    ticks: u64,
    at: Timestamp,
    used: Option<Sample>,
}

impl Usage for Meter {
    /// Since the last time somebody asked; the first time nothing is known.
    fn cpu(&self, uid: &str) -> Option<Sample> {
        let ticks = self.ticks(uid);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ticks) = ticks else {
            seen.remove(uid);
            return None;
        };
        let look = next(seen.get(uid).copied(), ticks, Timestamp::now());
        seen.insert(uid.to_owned(), look);
        look.used
    }
}

impl Meter {
    pub fn new(places: Places) -> Self {
        Self { places, seen: Mutex::default() }
    }

    /// Of all processes in the groups of the pod's runs; `None` if none runs.
    fn ticks(&self, uid: &str) -> Option<u64> {
        let records = Records::read(&self.places.pod(uid).ok()?).ok()?;
        let open = records.runs().values().filter(|record| record.ended.is_none());
        let live = open.filter_map(|record| record.process.as_ref());
        let groups: Vec<i32> =
            live.filter(|process| processes::lives(process)).map(|process| process.pid).collect();
        if groups.is_empty() {
            return None;
        }
        let all = fs::read_dir("/proc").ok()?;
        let stats =
            all.filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
        let used = stats.filter_map(|stat| spent(&stat));
        Some(used.filter(|(group, _)| groups.contains(group)).map(|(_, ticks)| ticks).sum())
    }
}

/// The group of a process, and what it and its ended children have used.
fn spent(stat: &str) -> Option<(i32, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let group = fields.get(2)?.parse().ok()?;
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some((group, ticks))
}

fn next(before: Option<Look>, ticks: u64, at: Timestamp) -> Look {
    let Some(before) = before else { return Look { ticks, at, used: None } };
    let window = at.duration_since(before.at);
    if window < SHORTEST {
        return before;
    }
    // Processes that have ended meanwhile are counted no more.
    let spent = i64::try_from(ticks.saturating_sub(before.ticks)).unwrap_or(i64::MAX);
    let millis = i64::try_from(window.as_millis()).unwrap_or(i64::MAX).max(1);
    let milli = spent.saturating_mul(1_000_000 / TICKS) / millis;
    Look { ticks, at, used: Some(Sample { milli, at, window }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_what_was_spent_between_two_looks() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let first = next(None, 1000, start);
        assert_eq!(first.used, None);
        let soon = next(Some(first), 1001, start + SignedDuration::from_millis(10));
        assert_eq!((soon.ticks, soon.used), (1000, None));
        for (ticks, seconds, want) in [(1100, 1, 1000), (1050, 10, 50), (1000, 5, 0), (900, 5, 0)] {
            let look = next(Some(first), ticks, start + SignedDuration::from_secs(seconds));
            assert_eq!(look.used.unwrap().milli, want, "{ticks} in {seconds}");
        }
    }

    #[test]
    fn processes_are_counted_by_their_group() {
        let stat = "7 (a) b) S 1 5 7 0 -1 4194560 1 0 0 0 10 20 3 4 20 0 1 0 4711 0 0";
        assert_eq!(spent(stat), Some((5, 37)));
        assert_eq!(spent("7 (a) S 1"), None);
        assert_eq!(spent(""), None);
    }

    #[test]
    fn a_pod_that_does_not_run_uses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let meter = Meter::new(Places { state: dir.path().into(), runtime: dir.path().into() });
        assert_eq!(meter.cpu("uid"), None);
        assert_eq!(meter.cpu("../uid"), None);
    }
}
