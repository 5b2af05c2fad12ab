//! The line of JSON and the table that a run ends with.

use std::{fmt, time::Duration};

use serde::Serialize;

use crate::bench::{
    report::{megabytes, round},
    target::{Limit, Target},
};

/// What a field means is said in CONTRIBUTING.md.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) objects: u32,
    pub(super) applies: u32,
    pub(super) watchers: u32,
    pub(super) samples: u32,
    pub(super) rounds: u32,
    pub(super) real: Figures,
    pub(super) embedded: Figures,
    /// Of the embedded server by the real one.
    pub(super) ratio: Ratios,
}

#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) applies_per_second: f64,
    pub(super) applies_per_second_by_round: Vec<f64>,
    pub(super) fanout_median_ms: f64,
    pub(super) fanout_p99_ms: f64,
    pub(super) memory_mb: f64,
    pub(super) cpu_seconds: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Ratios {
    pub(super) applies_per_second: f64,
    pub(super) fanout_median: f64,
    pub(super) fanout_p99: f64,
    pub(super) memory: f64,
}

/// What was measured on one server.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Of each round: how many applies, and how long they took.
    pub(super) applied: Vec<(u32, Duration)>,
    pub(super) fanout: Vec<Duration>,
    /// In bytes, after the last round.
    pub(super) memory: u64,
    pub(super) cpu: Duration,
}

impl Figures {
    pub(super) fn of(mut measured: Measured) -> Self {
        let per_second = |applies: u32, time: Duration| f64::from(applies) / time.as_secs_f64();
        let applies = measured.applied.iter().map(|(applies, _)| applies).sum();
        let time = measured.applied.iter().map(|(_, time)| *time).sum();
        let by_round = measured.applied.iter();
        let by_round = by_round.map(|(applies, time)| round(per_second(*applies, *time), 1));
        measured.fanout.sort();
        Self {
            applies_per_second: round(per_second(applies, time), 1),
            applies_per_second_by_round: by_round.collect(),
            fanout_median_ms: milliseconds(quantile(&measured.fanout, 50)),
            fanout_p99_ms: milliseconds(quantile(&measured.fanout, 99)),
            memory_mb: megabytes(measured.memory),
            cpu_seconds: round(measured.cpu.as_secs_f64(), 2),
        }
    }
}

impl Ratios {
    pub(super) fn of(embedded: &Figures, real: &Figures) -> Self {
        let ratio = |pick: fn(&Figures) -> f64| round(pick(embedded) / pick(real), 2);
        Self {
            applies_per_second: ratio(|figures| figures.applies_per_second),
            fanout_median: ratio(|figures| figures.fanout_median_ms),
            fanout_p99: ratio(|figures| figures.fanout_p99_ms),
            memory: ratio(|figures| figures.memory_mb),
        }
    }
}

/// Of sorted times: the smallest that so many of a hundred do not exceed.
fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

fn milliseconds(time: Duration) -> f64 {
    round(time.as_secs_f64() * 1e3, 3)
}

/// A figure of both servers, whose ratio has to be within a limit.
struct Row {
    what: &'static str,
    real: f64,
    embedded: f64,
    ratio: f64,
    wanted: Limit,
}

impl Report {
    fn rows(&self) -> [Row; 4] {
        let row = |what, figure: fn(&Figures) -> f64, ratio, wanted| Row {
            what,
            real: figure(&self.real),
            embedded: figure(&self.embedded),
            ratio,
            wanted,
        };
        let Ratios { applies_per_second, fanout_median, fanout_p99, memory } = self.ratio;
        let (faster, no_worse, smaller) =
            (Limit::AtLeast(5.0), Limit::AtMost(1.0), Limit::AtMost(0.2));
        [
            row("applies per second", |of| of.applies_per_second, applies_per_second, faster),
            row("fan-out, median, ms", |of| of.fanout_median_ms, fanout_median, no_worse),
            row("fan-out, p99, ms", |of| of.fanout_p99_ms, fanout_p99, no_worse),
            row("memory, MB", |of| of.memory_mb, memory, smaller),
        ]
    }

    pub(super) fn targets(&self) -> Vec<Target> {
        // Not by the ratio that is shown: 4.996 is shown as 5.
        let target = |row: Row| Target {
            what: format!("{}, ratio", row.what),
            reached: row.embedded / row.real,
            wanted: row.wanted,
        };
        self.rows().into_iter().map(target).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:24}{:>12}{:>12}{:>8}  wanted", "", "real", "embedded", "ratio")?;
        for Row { what, real, embedded, ratio, wanted } in self.rows() {
            writeln!(f, "{what:24}{real:>12}{embedded:>12}{ratio:>8}  {wanted}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::target::judge;

    fn figures(factor: u32) -> Figures {
        Figures::of(Measured {
            applied: vec![
                (100 * factor, Duration::from_secs(1)),
                (100 * factor, Duration::from_secs(3)),
            ],
            fanout: (1..=100).rev().map(Duration::from_millis).collect(),
            memory: 100_000_000,
            cpu: Duration::from_millis(1500),
        })
    }

    fn report(real: Figures, embedded: Figures) -> Report {
        let ratio = Ratios::of(&embedded, &real);
        Report { objects: 1, applies: 1, watchers: 1, samples: 1, rounds: 2, real, embedded, ratio }
    }

    #[test]
    fn rounds_add_up_and_times_are_sorted() {
        let figures = figures(1);
        assert_eq!(figures.applies_per_second, 50.0);
        assert_eq!(figures.applies_per_second_by_round, [100.0, 33.3]);
        assert_eq!((figures.fanout_median_ms, figures.fanout_p99_ms), (50.0, 99.0));
        assert_eq!((figures.memory_mb, figures.cpu_seconds), (100.0, 1.5));
    }

    #[test]
    fn the_table_has_a_line_for_each_target() {
        let (real, embedded) = (figures(1), figures(6));
        let ratio = Ratios::of(&embedded, &real);
        assert_eq!((ratio.applies_per_second, ratio.memory), (6.0, 1.0));
        let report = report(real, embedded);
        assert_eq!(report.to_string().lines().count(), 5, "{report}");
        let missed = judge(&report.targets()).unwrap_err().to_string();
        assert_eq!(missed, "missed memory, MB, ratio: 1, wanted at most 0.2");
    }
    #[test]
    fn a_ratio_that_is_rounded_up_to_its_target_has_missed_it() {
        let (real, mut embedded) = (figures(1), figures(1));
        embedded.applies_per_second = 249.8;
        embedded.memory_mb = 20.0;
        let report = report(real, embedded);
        assert_eq!(report.ratio.applies_per_second, 5.0);
        let missed = judge(&report.targets()).unwrap_err().to_string();
        assert_eq!(missed, "missed applies per second, ratio: 4.996, wanted at least 5");
    }
}
