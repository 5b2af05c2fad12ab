//! The line of JSON and the table that a run ends with.

use std::{fmt, time::Duration};

use serde::{Serialize, Serializer};

use super::{
    client::{self, Client, Row},
    limits::Limits,
    others::{Small, Text},
    program::Ran,
};
use crate::bench::report::round;

/// Of the time of hashing and copying: what packing and pushing may take at most is 1 / 0.7 of it.
const PACK_AND_PUSH: f64 = 0.7;
const MEMORY_MB: f64 = 64.0;
/// Of one command that leaves no copy in the store: lists and digests, and no layer.
const WRITTEN: f64 = 0.01;
/// Of an import: the files themselves, and once.
const IMPORTED: f64 = 1.01;
const AGAIN_SECONDS: f64 = 0.1;
const START_SECONDS: f64 = 0.01;
/// Of the model, when a push is killed shortly before its end.
const RESENT_LATE: f64 = 0.12;
/// Of the time that gzip takes, at no larger size.
const ZSTD: f64 = 0.2;
/// What is acknowledged at once, and how many are under way, unless the command is told otherwise.
const CHUNK: u64 = 64 << 20;
const STREAMS: u64 = 5;

/// Rounded to so many digits where it is seen, and nowhere before: what is judged is what was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figure<const DIGITS: i32>(pub(super) f64);

impl<const DIGITS: i32> fmt::Display for Figure<DIGITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&round(self.0, DIGITS), f)
    }
}

impl<const DIGITS: i32> Serialize for Figure<DIGITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(round(self.0, DIGITS))
    }
}

/// What a field means is said in CONTRIBUTING.md.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) megabytes: Figure<1>,
    pub(super) files: u32,
    pub(super) rounds: u32,
    pub(super) hash_mb_per_second: Figure<1>,
    pub(super) copy_mb_per_second: Figure<1>,
    pub(super) pack: Step,
    pub(super) push: Step,
    pub(super) pull: Step,
    pub(super) unpack: Step,
    /// Straight from the registry, without a copy in the store.
    pub(super) unpack_remote: Step,
    /// In one command, without a copy in the store.
    pub(super) pack_push: Step,
    /// The same to Debian's registry, where that is installed.
    pub(super) pack_push_debian: Option<Step>,
    /// Of the time of hashing once and copying once, by that of one command that does both.
    pub(super) pack_push_of_limit: Figure<2>,
    /// The same command once more, with nothing to do.
    pub(super) again_seconds: Figure<3>,
    pub(super) start_seconds: Figure<3>,
    pub(super) resent_mb: Figure<1>,
    pub(super) resent_mb_wanted: Figure<1>,
    pub(super) resent_late_mb: Figure<1>,
    pub(super) resent_late_mb_wanted: Figure<1>,
    pub(super) small: Small,
    pub(super) text: Text,
    pub(super) client: Client,
}

#[derive(Debug, Serialize)]
pub(super) struct Step {
    pub(super) mb_per_second: Figure<1>,
    /// By the slower one of hashing and copying.
    pub(super) of_slowest: Figure<2>,
    pub(super) peak_memory_mb: Figure<1>,
    /// Of all processors, user and system.
    pub(super) cpu_seconds: Figure<3>,
    /// To the disk, by the size of the model.
    pub(super) written: Figure<4>,
}

/// The rounds of everything.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) limits: Vec<Limits>,
    pub(super) pack: Vec<Ran>,
    pub(super) push: Vec<Ran>,
    pub(super) pull: Vec<Ran>,
    pub(super) unpack: Vec<Ran>,
    pub(super) unpack_remote: Vec<Ran>,
    pub(super) pack_push: Vec<Ran>,
    /// None where it is not installed.
    pub(super) pack_push_debian: Vec<Ran>,
    pub(super) again: Vec<Ran>,
    pub(super) start: Vec<Ran>,
    /// Beside what had to be sent once, when half of it was sent.
    pub(super) resent: u64,
    /// When nine tenths were.
    pub(super) resent_late: u64,
    pub(super) small: Small,
    pub(super) text: Text,
    pub(super) client: client::Measured,
}

impl Step {
    pub(super) fn of(bytes: u64, limits: &[Limits], rounds: &[Ran]) -> Self {
        Self {
            mb_per_second: rate(bytes, median(rounds.iter().map(|ran| ran.time))),
            of_slowest: by_round(limits, rounds, |limits| limits.hash.max(limits.copy)),
            peak_memory_mb: megabytes(rounds.iter().map(|ran| ran.peak).max().unwrap_or_default()),
            cpu_seconds: seconds(median(rounds.iter().map(|ran| ran.cpu))),
            written: Figure(
                rounds.iter().map(|ran| ran.written).max().unwrap_or_default() as f64
                    / bytes as f64,
            ),
        }
    }
}

impl Report {
    pub(super) fn of(bytes: u64, files: u32, measured: &Measured) -> Self {
        let hash = median(measured.limits.iter().map(|limits| limits.hash));
        let copy = median(measured.limits.iter().map(|limits| limits.copy));
        let step = |rounds: &[Ran]| Step::of(bytes, &measured.limits, rounds);
        let time = |rounds: &[Ran]| median(rounds.iter().map(|ran| ran.time));
        let debian = &measured.pack_push_debian;
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
            unpack_remote: step(&measured.unpack_remote),
            pack_push: step(&measured.pack_push),
            pack_push_debian: (!debian.is_empty()).then(|| step(debian)),
            pack_push_of_limit: by_round(&measured.limits, &measured.pack_push, |limits| {
                limits.hash + limits.copy
            }),
            again_seconds: seconds(time(&measured.again)),
            start_seconds: seconds(time(&measured.start)),
            resent_mb: megabytes(measured.resent),
            resent_mb_wanted: megabytes(CHUNK * STREAMS.min(files.into())),
            resent_late_mb: megabytes(measured.resent_late),
            resent_late_mb_wanted: Figure(megabytes(bytes).0 * RESENT_LATE),
            small: measured.small,
            text: measured.text,
            client: measured.client.report(bytes),
        }
    }

    fn steps(&self) -> impl Iterator<Item = (&'static str, &Step)> {
        let always = [
            ("pack", &self.pack),
            ("push", &self.push),
            ("pull", &self.pull),
            ("unpack", &self.unpack),
            ("unpack, remote", &self.unpack_remote),
            ("pack --push", &self.pack_push),
        ];
        let debian = self.pack_push_debian.as_ref();
        always.into_iter().chain(debian.map(|step| ("... to Debian's", step)))
    }

    fn peak_memory_mb(&self) -> f64 {
        let others = [self.small.peak_memory_mb, self.text.peak_memory_mb];
        let steps = self.steps().map(|(_, step)| step.peak_memory_mb);
        let alone = self.client.rows().map(|(_, row)| row.step.peak_memory_mb);
        steps.chain(others).chain(alone).map(|figure| figure.0).fold(0.0, f64::max)
    }

    /// What is wanted and was not reached, in words.
    pub(super) fn missed(&self) -> Vec<String> {
        let Text { zstd_of_gzip, zstd_mb, gzip_mb, .. } = self.text;
        let figures = [
            (
                "pack and push, of hashing and copying",
                self.pack_push_of_limit.0,
                AtLeast(PACK_AND_PUSH),
            ),
            ("memory in MB", self.peak_memory_mb(), Under(MEMORY_MB)),
            ("pack and push, written of the model", self.pack_push.written.0, AtMost(WRITTEN)),
            ("import, written of the model", self.client.import.step.written.0, AtMost(IMPORTED)),
            ("nothing to push, in seconds", self.again_seconds.0, AtMost(AGAIN_SECONDS)),
            ("start, in seconds", self.start_seconds.0, AtMost(START_SECONDS)),
            (
                "sent again after a kill at half, in MB",
                self.resent_mb.0,
                AtMost(self.resent_mb_wanted.0),
            ),
            (
                "sent again after a kill at nine tenths, in MB",
                self.resent_late_mb.0,
                AtMost(self.resent_late_mb_wanted.0),
            ),
            ("zstd of text, by the time of gzip", zstd_of_gzip.0, AtMost(ZSTD)),
            ("zstd of text, in MB", zstd_mb.0, AtMost(gzip_mb.0)),
        ];
        let missed = figures.into_iter().filter(|(_, got, wanted)| !wanted.is_reached_by(*got));
        missed.map(|(what, got, wanted)| format!("{what}: {got}, not {wanted}")).collect()
    }
}

use Wanted::{AtLeast, AtMost, Under};

#[derive(Clone, Copy)]
enum Wanted {
    AtLeast(f64),
    AtMost(f64),
    Under(f64),
}

impl Wanted {
    fn is_reached_by(self, got: f64) -> bool {
        match self {
            AtLeast(wanted) => got >= wanted,
            AtMost(wanted) => got <= wanted,
            Under(wanted) => got < wanted,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AtLeast(wanted) => write!(f, "at least {wanted}"),
            AtMost(wanted) => write!(f, "at most {wanted}"),
            Under(wanted) => write!(f, "under {wanted}"),
        }
    }
}

/// The machine may be slower in one round than in another, so each round is measured by its own limits.
fn by_round(limits: &[Limits], rounds: &[Ran], limit: impl Fn(&Limits) -> Duration) -> Figure<2> {
    let ratios = limits.iter().zip(rounds);
    let mut ratios: Vec<f64> =
        ratios.map(|(limits, ran)| ratio(limit(limits), ran.time).0).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    Figure(ratios.get(ratios.len() / 2).copied().unwrap_or_default())
}

pub(super) fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

pub(super) fn seconds(time: Duration) -> Figure<3> {
    Figure(time.as_secs_f64())
}

pub(super) fn megabytes(bytes: u64) -> Figure<1> {
    Figure(bytes as f64 / 1e6)
}

pub(super) fn rate(bytes: u64, time: Duration) -> Figure<1> {
    Figure(megabytes(bytes).0 / time.as_secs_f64())
}

pub(super) fn ratio(limit: Duration, time: Duration) -> Figure<2> {
    Figure(limit.as_secs_f64() / time.as_secs_f64())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["MB/s", "of slowest", "memory, MB", "cpu, s", "written"];
        let [rate, slowest, memory, cpu, written] = heads;
        writeln!(f, "{:16}{rate:>10}{slowest:>12}{memory:>12}{cpu:>9}{written:>9}", "")?;
        writeln!(f, "{:16}{:>10}", "hash alone", self.hash_mb_per_second)?;
        writeln!(f, "{:16}{:>10}", "copy alone", self.copy_mb_per_second)?;
        for (what, step) in self.steps() {
            let Step { mb_per_second, of_slowest, peak_memory_mb, cpu_seconds, written } = step;
            write!(f, "{what:16}{mb_per_second:>10}{of_slowest:>12}{peak_memory_mb:>12}")?;
            writeln!(f, "{cpu_seconds:>9}{written:>9}")?;
        }
        writeln!(
            f,
            "pack --push by hash and copy: {}, wanted at least {PACK_AND_PUSH}",
            self.pack_push_of_limit
        )?;
        writeln!(
            f,
            "written by pack --push: {} of the model, wanted at most {WRITTEN}",
            self.pack_push.written
        )?;
        writeln!(f, "the same again: {} s, wanted at most {AGAIN_SECONDS}", self.again_seconds)?;
        writeln!(f, "start: {} s, wanted at most {START_SECONDS}", self.start_seconds)?;
        writeln!(
            f,
            "sent again after a kill at half: {} MB, wanted at most {}",
            self.resent_mb, self.resent_mb_wanted
        )?;
        writeln!(
            f,
            "sent again after a kill at nine tenths: {} MB, wanted at most {}",
            self.resent_late_mb, self.resent_late_mb_wanted
        )?;
        self.alone(f)?;
        let Small { files, pack_seconds, unpack_seconds, peak_memory_mb } = self.small;
        writeln!(
            f,
            "{files} small files: packed in {pack_seconds} s, unpacked in {unpack_seconds} s, {peak_memory_mb} MB of memory"
        )?;
        let Text { megabytes, gzip_seconds, zstd_seconds, zstd_of_gzip, gzip_mb, zstd_mb, .. } =
            self.text;
        writeln!(
            f,
            "{megabytes} MB of text: gzip {gzip_seconds} s and {gzip_mb} MB, zstd {zstd_seconds} s and {zstd_mb} MB, {zstd_of_gzip} of the time, wanted at most {ZSTD}"
        )
    }
}

impl Report {
    /// The rows of the client alone.
    fn alone(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["s", "of slowest", "memory, MB", "written", "sent"];
        let [time, slowest, memory, written, sent] = heads;
        let what = "to nowhere";
        writeln!(f, "{what:16}{time:>10}{slowest:>12}{memory:>12}{written:>9}{sent:>9}")?;
        for (what, Row { seconds, step, sent }) in self.client.rows() {
            let Step { of_slowest, peak_memory_mb, written, .. } = step;
            write!(f, "{what:16}{seconds:>10}{of_slowest:>12}{peak_memory_mb:>12}")?;
            writeln!(f, "{written:>9}{sent:>9}")?;
        }
        writeln!(f, "hash alone, cold: {} MB/s", self.client.cold_hash_mb_per_second)?;
        writeln!(
            f,
            "no ratio to the kit of Go: this benchmark does not run it, since it is not among what we build or install"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(both: u64, peak: u64, resent: u64) -> Report {
        let ran = |millis| {
            let time = Duration::from_millis(millis);
            vec![Ran { time, peak, written: resent, cpu: time }]
        };
        let limits = Limits { hash: Duration::from_secs(1), copy: Duration::from_millis(500) };
        let (zstd_of_gzip, zstd_mb) =
            (Figure(both as f64 / 10_000.0), Figure(both as f64 / 1000.0));
        let measured = Measured {
            limits: vec![limits],
            pack: ran(2000),
            push: ran(1000),
            pull: ran(1000),
            unpack: ran(500),
            unpack_remote: ran(500),
            pack_push: ran(both),
            pack_push_debian: Vec::new(),
            again: ran(both / 20),
            start: ran(both / 250),
            resent,
            resent_late: resent,
            small: Small::default(),
            text: Text { zstd_of_gzip, zstd_mb, gzip_mb: Figure(2.0), ..Text::default() },
            client: client::Measured::default(),
        };
        Report::of(1_000_000_000, 2, &measured)
    }

    #[test]
    fn steps_stand_beside_what_the_machine_can_do() {
        let report = report(2000, 20_000_000, 0);
        assert_eq!((report.hash_mb_per_second.0, report.copy_mb_per_second.0), (1000.0, 2000.0));
        assert_eq!((report.pack.mb_per_second.0, report.pack.of_slowest.0), (500.0, 0.5));
        assert_eq!((report.unpack.of_slowest.0, report.pack_push_of_limit.0), (2.0, 0.75));
        assert!(report.missed().is_empty(), "{:?}", report.missed());
    }

    #[test]
    fn a_slow_round_is_measured_by_its_own_limits() {
        let limits = |millis| Limits { hash: Duration::from_millis(millis), copy: Duration::ZERO };
        let ran = |millis| {
            let time = Duration::from_millis(millis);
            Ran { time, peak: 0, written: 0, cpu: time }
        };
        let limits = [limits(100), limits(400), limits(100)];
        let rounds = [ran(200), ran(800), ran(210)];
        assert_eq!(by_round(&limits, &rounds, |limits| limits.hash).0, 0.5);
    }

    #[test]
    fn what_is_not_reached_is_told() {
        let report = report(3000, 64_000_000, 200_000_000);
        assert_eq!(
            report.missed(),
            [
                "pack and push, of hashing and copying: 0.5, not at least 0.7",
                "memory in MB: 64, not under 64",
                "pack and push, written of the model: 0.2, not at most 0.01",
                "nothing to push, in seconds: 0.15, not at most 0.1",
                "start, in seconds: 0.012, not at most 0.01",
                "sent again after a kill at half, in MB: 200, not at most 134.217728",
                "sent again after a kill at nine tenths, in MB: 200, not at most 120",
                "zstd of text, by the time of gzip: 0.3, not at most 0.2",
                "zstd of text, in MB: 3, not at most 2",
            ]
        );
    }

    #[test]
    fn what_is_judged_is_not_rounded() {
        // 0.6996 of hashing and copying, 63.96 MB and 0.01004 of the model.
        let report = report(2144, 63_960_000, 10_040_000);
        assert_eq!(report.pack_push_of_limit.to_string(), "0.7");
        assert_eq!(report.pack.peak_memory_mb.to_string(), "64");
        let told = serde_json::to_value(&report).unwrap();
        assert_eq!(told["pack_push_of_limit"], json!(0.7));
        assert_eq!(told["pack_push"]["written"], json!(0.01));
        let missed = report.missed();
        for (what, is_missed) in [
            ("pack and push, of hashing and copying: 0.69", true),
            ("pack and push, written of the model: 0.01004,", true),
            ("memory in MB", false),
        ] {
            let is = missed.iter().any(|miss| miss.starts_with(what));
            assert_eq!(is, is_missed, "{what} {missed:?}");
        }
    }
}
