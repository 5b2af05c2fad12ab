//! Limits of memory where the system does not keep them: the processes of a run are looked at again and
//! again, and a run that has more than it may have is ended, as the system would do it.

use std::{
    collections::BTreeMap,
    fs,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Container;

use super::{limits, mark::Mark, processes};

/// Between two looks.
pub const PAUSE: Duration = Duration::from_secs(1);
/// A process that has just been made has all that its parent has, until it runs a program of its own. A
/// single look may see that; it does not last from one to the next, and so not for that many.
const LOOKS: u32 = 3;
/// All who ask at about the same time are told the same.
const FRESH: Duration = Duration::from_millis(500);

/// What the limits of containers are kept by.
#[derive(Debug, Default)]
pub struct Memory {
    seen: Mutex<Option<Seen>>,
}

/// The last look at the machine.
#[derive(Debug)]
struct Seen {
    at: Instant,
    /// The marked processes, by the limit that marks them.
    runs: BTreeMap<u64, Vec<i32>>,
}

impl Memory {
    /// Whether a run has more than so many bytes. It reads a lot, so it is not for a thread that
    /// others wait for.
    pub fn is_over(&self, mark: &Mark, limit: u64) -> bool {
        let pids = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = seen.take().filter(|seen| seen.at.elapsed() < FRESH);
            let look =
                fresh.unwrap_or_else(|| Seen { at: Instant::now(), runs: processes::runs() });
            let pids = mark.limit().and_then(|limit| look.runs.get(&limit)).cloned();
            let pids = pids.unwrap_or_default();
            *seen = Some(look);
            pids
        };
        let read = |pid: i32, file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
        exceeds(limit, &pids, read)
    }
}

/// How often in a row a run was seen with too much.
#[derive(Debug, Default)]
pub struct Doubt(u32);

impl Doubt {
    /// Whether it is believed by now.
    pub fn is_over(&mut self, seen: bool) -> bool {
        self.0 = if seen { self.0.saturating_add(1) } else { 0 };
        self.0 >= LOOKS
    }
}

/// What a container may have, if that is limited.
pub fn limit(container: &Container) -> Option<u64> {
    let nano = limits::limit(container, "memory")?;
    u64::try_from(nano / 1_000_000_000).ok()
}

/// Pages that several processes share are in the rough figure more than once, and the exact one takes
/// its time. Who does not show the exact one counts by the rough one, and has nothing if it has ended:
/// that must not make the others larger than they are.
fn exceeds(limit: u64, pids: &[i32], read: impl Fn(i32, &str) -> Option<String>) -> bool {
    let rough = |pid: &i32| read(*pid, "status").map_or(0, |status| own(&status));
    let exact = |pid: &i32| {
        let rollup = read(*pid, "smaps_rollup");
        rollup.and_then(|rollup| part(&rollup)).unwrap_or_else(|| rough(pid))
    };
    pids.iter().map(rough).sum::<u64>() > limit && pids.iter().map(exact).sum::<u64>() > limit
}

/// What a process has for itself, in bytes. Files that it maps can be read again and do not count.
fn own(status: &str) -> u64 {
    ["RssAnon:", "RssShmem:"].iter().filter_map(|name| field(status, name)).sum()
}

/// Its part of that, where others have some of it too.
fn part(rollup: &str) -> Option<u64> {
    Some(field(rollup, "Pss_Anon:")? + field(rollup, "Pss_Shmem:").unwrap_or(0))
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\ta\nVmRSS:\t    900 kB\nRssAnon:\t     100 kB\nRssFile:\t     \
                          770 kB\nRssShmem:\t      30 kB\n";
    const ROLLUP: &str = "0-1 ---p 0 00:00 0   [rollup]\nRss:       900 kB\nPss:       500 kB\n\
                          Pss_Anon:        50 kB\nPss_File:       440 kB\nPss_Shmem:       10 kB\n";

    #[test]
    fn memory_that_could_be_read_again_does_not_count() {
        assert_eq!(own(STATUS), 130 * 1024);
        assert_eq!(part(ROLLUP), Some(60 * 1024));
        assert_eq!((own(""), part("")), (0, None));
    }

    #[test]
    fn too_much_is_believed_when_it_is_seen_three_times_in_a_row() {
        let mut doubt = Doubt::default();
        let looks = [true, true, false, true, false, true, true, true, true, false];
        let believed = looks.map(|seen| doubt.is_over(seen));
        assert_eq!(believed.iter().position(|sure| *sure), Some(7));
        assert_eq!(believed[7..], [true, true, false]);
    }

    /// Three that share pages, one that has ended and was not waited for, one that is gone, and one
    /// that does not let itself be looked into.
    fn read(pid: i32, file: &str) -> Option<String> {
        match (pid, file) {
            (1..=3 | 6, "status") => Some(STATUS.to_owned()),
            (1..=3, "smaps_rollup") => Some(ROLLUP.to_owned()),
            (4, "status") => Some("Name:\ta\nState:\tZ (zombie)\n".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn what_is_shared_counts_once_where_that_can_be_known() {
        for (pids, kib, want) in [
            (&[1, 2, 3][..], 390, false),
            (&[1, 2, 3], 180, false),
            (&[1, 2, 3], 179, true),
            (&[4, 1, 5, 2, 3], 180, false),
            (&[4, 1, 5, 2, 3], 179, true),
            (&[1, 6], 190, false),
            (&[1, 6], 189, true),
            (&[4, 5], 0, false),
        ] {
            assert_eq!(exceeds(kib * 1024, pids, read), want, "{pids:?} {kib}");
        }
    }
}
