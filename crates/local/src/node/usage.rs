//! What pods use of the processor, measured when somebody asks.

use std::{
    collections::{BTreeMap, BTreeSet},
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
/// Who has not been asked about for so long is gone, or nobody cares.
const FORGOTTEN: SignedDuration = SignedDuration::from_mins(10);

/// Remembers the last look at each pod.
#[derive(Debug)]
pub struct Meter {
    places: Places,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// By the uid of the pod.
    looks: BTreeMap<String, Look>,
    /// Of the whole machine, for all who ask at about the same time.
    machine: Option<Machine>,
}

/// What all processes have used until then.
#[derive(Debug)]
struct Machine {
    at: Timestamp,
    all: Vec<Spent>,
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
        let groups = self.groups(uid);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.measure(uid, &groups, Timestamp::now(), machine)
    }
}

impl Meter {
    pub fn new(places: Places) -> Self {
        Self { places, seen: Mutex::default() }
    }

    /// Of the pod's runs that go on.
    fn groups(&self, uid: &str) -> Vec<i32> {
        let dir = self.places.pod(uid).ok();
        let Some(records) = dir.and_then(|dir| Records::read(&dir).ok()) else { return Vec::new() };
        let open = records.runs().values().filter(|record| record.ended.is_none());
        let live = open.filter_map(|record| record.process.as_ref());
        live.filter(|process| processes::lives(process)).map(|process| process.pid).collect()
    }
}

impl Seen {
    /// `read` looks at the whole machine, which takes its time.
    fn measure(
        &mut self,
        uid: &str,
        groups: &[i32],
        now: Timestamp,
        read: impl FnOnce() -> Vec<Spent>,
    ) -> Option<Sample> {
        if groups.is_empty() {
            self.looks.remove(uid);
            return None;
        }
        let fresh = self.machine.take().filter(|known| {
            let age = now.duration_since(known.at);
            !age.is_negative() && age < SHORTEST
        });
        if fresh.is_none() {
            self.looks.retain(|_, look| now.duration_since(look.at) < FORGOTTEN);
        }
        let machine = fresh.unwrap_or_else(|| Machine { at: now, all: read() });
        let ticks = sum(&machine.all, groups);
        let look = next(self.looks.get(uid).copied(), ticks, machine.at);
        self.machine = Some(machine);
        self.looks.insert(uid.to_owned(), look);
        look.used
    }
}

/// Every process of this machine.
fn machine() -> Vec<Spent> {
    let all = fs::read_dir("/proc").into_iter().flatten();
    let stats = all.filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    stats.filter_map(|stat| Spent::parse(&stat)).collect()
}

/// What a process and its ended children have used.
#[derive(Debug)]
struct Spent {
    pid: i32,
    parent: i32,
    group: i32,
    ticks: u64,
}

impl Spent {
    /// The second field is a name in parentheses, which may hold anything.
    fn parse(stat: &str) -> Option<Self> {
        let (first, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse().ok();
        let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok());
        Some(Self {
            pid: first.split_ascii_whitespace().next()?.parse().ok()?,
            parent: number(1)?,
            group: number(2)?,
            ticks: ticks.sum(),
        })
    }
}

/// Of the members of the groups and all that descend from them.
fn sum(all: &[Spent], groups: &[i32]) -> u64 {
    let mut counted: BTreeSet<i32> = BTreeSet::new();
    loop {
        let is_new = |one: &&Spent| {
            !counted.contains(&one.pid)
                && (groups.contains(&one.group) || counted.contains(&one.parent))
        };
        let found: Vec<i32> = all.iter().filter(is_new).map(|one| one.pid).collect();
        if found.is_empty() {
            break;
        }
        counted.extend(found);
    }
    all.iter().filter(|one| counted.contains(&one.pid)).map(|one| one.ticks).sum()
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
    fn processes_are_counted_by_their_group_and_their_parents() {
        let stat = "7 (a) b) S 1 5 7 0 -1 4194560 1 0 0 0 10 20 3 4 20 0 1 0 4711 0 0";
        let spent = Spent::parse(stat).unwrap();
        assert_eq!((spent.pid, spent.parent, spent.group, spent.ticks), (7, 1, 5, 37));
        assert!(Spent::parse("7 (a) S 1").is_none());
        assert!(Spent::parse("").is_none());
        let spent = |pid, parent, group, ticks| Spent { pid, parent, group, ticks };
        let all = [
            spent(9, 8, 9, 1000),
            spent(8, 5, 8, 100),
            spent(5, 1, 5, 1),
            spent(6, 1, 5, 10),
            spent(7, 1, 7, 10_000),
        ];
        assert_eq!(sum(&all, &[5]), 1111);
        assert_eq!(sum(&all, &[4]), 0);
    }

    #[test]
    fn the_machine_is_read_once_for_all_who_ask_and_the_old_are_forgotten() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut seen = Seen::default();
        let reads = std::cell::Cell::new(0);
        let mut measure = |uid: &str, groups: &[i32], millis: i64| {
            let at = start + SignedDuration::from_millis(millis);
            let read = || {
                reads.set(reads.get() + 1);
                let spent = |pid, ticks| Spent { pid, parent: 0, group: pid, ticks };
                vec![spent(1, 100 * reads.get()), spent(2, 50 * reads.get()), spent(3, 7)]
            };
            let used = seen.measure(uid, groups, at, read).map(|sample| sample.milli);
            (used, reads.get(), seen.looks.len())
        };
        for (uid, groups, at, want) in [
            ("a", &[1][..], 0, (None, 1, 1)),
            ("b", &[1, 2], 10, (None, 1, 2)),
            ("a", &[1], 2000, (Some(500), 2, 2)),
            ("b", &[1, 2], 2010, (Some(750), 2, 2)),
            ("b", &[], 4000, (None, 2, 1)),
            ("c", &[4], 700_000, (None, 3, 1)),
        ] {
            assert_eq!(measure(uid, groups, at), want, "{uid} at {at}");
        }
    }

    #[test]
    fn a_pod_that_does_not_run_uses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let meter = Meter::new(Places { state: dir.path().into(), runtime: dir.path().into() });
        assert_eq!(meter.cpu("uid"), None);
        assert_eq!(meter.cpu("../uid"), None);
    }
}
