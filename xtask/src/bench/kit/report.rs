//! The line of JSON and the table that a run ends with.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::{limits::Limits, program::Ran};
use crate::bench::report::{megabytes, round};

/// Of the time of hashing and copying: what packing and pushing may take at most is 1 / 0.7 of it.
const PACK_AND_PUSH: f64 = 0.7;
const MEMORY_MB: f64 = 64.0;
/// What is acknowledged at once, and how many are under way, unless the command is told otherwise.
const CHUNK: u64 = 64 << 20;
const STREAMS: u64 = 5;

/// What a field means is said in CONTRIBUTING.md.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) megabytes: f64,
    pub(super) files: u32,
    pub(super) rounds: u32,
    pub(super) hash_mb_per_second: f64,
    pub(super) copy_mb_per_second: f64,
    pub(super) pack: Step,
    pub(super) push: Step,
    pub(super) pull: Step,
    pub(super) unpack: Step,
    /// In one command, without a copy in the store.
    pub(super) pack_push: Step,
    /// Of the time of hashing once and copying once, by that of one command that does both.
    pub(super) pack_push_of_limit: f64,
    pub(super) resent_mb: f64,
    pub(super) resent_mb_wanted: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Step {
    pub(super) mb_per_second: f64,
    /// By the slower one of hashing and copying.
    pub(super) of_slowest: f64,
    pub(super) peak_memory_mb: f64,
}

/// The rounds of everything.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) limits: Vec<Limits>,
    pub(super) pack: Vec<Ran>,
    pub(super) push: Vec<Ran>,
    pub(super) pull: Vec<Ran>,
    pub(super) unpack: Vec<Ran>,
    pub(super) pack_push: Vec<Ran>,
    /// Beside what had to be sent once.
    pub(super) resent: u64,
}

impl Report {
    pub(super) fn of(bytes: u64, files: u32, measured: &Measured) -> Self {
        let hash = median(measured.limits.iter().map(|limits| limits.hash));
        let copy = median(measured.limits.iter().map(|limits| limits.copy));
        let slowest = hash.max(copy);
        let step = |rounds: &[Ran]| {
            let time = median(rounds.iter().map(|ran| ran.time));
            let peak = rounds.iter().map(|ran| ran.peak).max().unwrap_or_default();
            Step {
                mb_per_second: rate(bytes, time),
                of_slowest: ratio(slowest, time),
                peak_memory_mb: megabytes(peak),
            }
        };
        let both = median(measured.pack_push.iter().map(|ran| ran.time));
        Self {
            megabytes: megabytes(bytes),
            files,
            rounds: u32::try_from(measured.limits.len()).unwrap_or(u32::MAX),
            hash_mb_per_second: rate(bytes, hash),
            copy_mb_per_second: rate(bytes, copy),
            pack: step(&measured.pack),
            push: step(&measured.push),
            pull: step(&measured.pull),
            unpack: step(&measured.unpack),
            pack_push: step(&measured.pack_push),
            pack_push_of_limit: ratio(hash + copy, both),
            resent_mb: megabytes(measured.resent),
            resent_mb_wanted: megabytes(CHUNK * STREAMS.min(files.into())),
        }
    }

    fn peak_memory_mb(&self) -> f64 {
        let steps = [&self.pack, &self.push, &self.pull, &self.unpack, &self.pack_push];
        steps.iter().map(|step| step.peak_memory_mb).fold(0.0, f64::max)
    }

    /// What is wanted and was not reached, in words.
    pub(super) fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        if self.pack_push_of_limit < PACK_AND_PUSH {
            let got = self.pack_push_of_limit;
            missed
                .push(format!("pack and push: {got} of hashing and copying, not {PACK_AND_PUSH}"));
        }
        if self.peak_memory_mb() >= MEMORY_MB {
            missed.push(format!("memory: {} MB, not under {MEMORY_MB}", self.peak_memory_mb()));
        }
        if self.resent_mb > self.resent_mb_wanted {
            let (got, want) = (self.resent_mb, self.resent_mb_wanted);
            missed.push(format!("sent again after a kill: {got} MB, not at most {want}"));
        }
        missed
    }
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn rate(bytes: u64, time: Duration) -> f64 {
    round(megabytes(bytes) / time.as_secs_f64(), 1)
}

fn ratio(limit: Duration, time: Duration) -> f64 {
    round(limit.as_secs_f64() / time.as_secs_f64(), 2)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:16}{:>10}{:>14}{:>12}", "", "MB/s", "of slowest", "memory, MB")?;
        writeln!(f, "{:16}{:>10}", "hash alone", self.hash_mb_per_second)?;
        writeln!(f, "{:16}{:>10}", "copy alone", self.copy_mb_per_second)?;
        for (what, step) in [
            ("pack", &self.pack),
            ("push", &self.push),
            ("pull", &self.pull),
            ("unpack", &self.unpack),
            ("pack --push", &self.pack_push),
        ] {
            let Step { mb_per_second, of_slowest, peak_memory_mb } = step;
            writeln!(f, "{what:16}{mb_per_second:>10}{of_slowest:>14}{peak_memory_mb:>12}")?;
        }
        writeln!(
            f,
            "pack --push by hash and copy: {}, wanted at least {PACK_AND_PUSH}",
            self.pack_push_of_limit
        )?;
        writeln!(
            f,
            "sent again after a kill at half: {} MB, wanted at most {}",
            self.resent_mb, self.resent_mb_wanted
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(both: u64, peak: u64, resent: u64) -> Report {
        let ran = |millis| vec![Ran { time: Duration::from_millis(millis), peak }];
        let limits = Limits { hash: Duration::from_secs(1), copy: Duration::from_millis(500) };
        let measured = Measured {
            limits: vec![limits],
            pack: ran(2000),
            push: ran(1000),
            pull: ran(1000),
            unpack: ran(500),
            pack_push: ran(both),
            resent,
        };
        Report::of(1_000_000_000, 2, &measured)
    }

    #[test]
    fn steps_stand_beside_what_the_machine_can_do() {
        let report = report(2000, 20_000_000, 0);
        assert_eq!((report.hash_mb_per_second, report.copy_mb_per_second), (1000.0, 2000.0));
        assert_eq!((report.pack.mb_per_second, report.pack.of_slowest), (500.0, 0.5));
        assert_eq!((report.unpack.of_slowest, report.pack_push_of_limit), (2.0, 0.75));
        assert!(report.missed().is_empty(), "{:?}", report.missed());
    }

    #[test]
    fn what_is_not_reached_is_told() {
        let report = report(3000, 64_000_000, 200_000_000);
        assert_eq!(
            report.missed(),
            [
                "pack and push: 0.5 of hashing and copying, not 0.7",
                "memory: 64 MB, not under 64",
                "sent again after a kill: 200 MB, not at most 134.2",
            ]
        );
    }
}
