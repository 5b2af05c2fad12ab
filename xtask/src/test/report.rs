//! Counts per tier, and the lines a run ends with.

use std::{
    collections::BTreeMap,
    fmt,
    ops::{Add, AddAssign},
};

/// What a test needs, which decides where it can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    Pure,
    RealApi,
    Embedded,
    RealPods,
}

impl Tier {
    const ALL: [Tier; 4] = [Tier::Pure, Tier::RealApi, Tier::Embedded, Tier::RealPods];

    /// The tier of a test binary, named as nextest does: `package` or `package::binary`.
    pub(super) fn of(binary: &str) -> Tier {
        match binary {
            "windlass-tests::real_api"
            | "xtask::control_plane"
            | "xtask::bench"
            | "xtask::chart"
            | "xtask::demo" => Tier::RealApi,
            "windlass-tests::conformance" | "windlass-tests::embedded" | "windlass-tests::pods" => {
                Tier::Embedded
            }
            _ => Tier::Pure,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Tier::Pure => "pure",
            Tier::RealApi => "real API",
            Tier::Embedded => "embedded",
            Tier::RealPods => "real pods",
        }
    }

    fn why_none(self) -> &'static str {
        match self {
            Tier::RealPods => "not asked",
            _ => "no such tests yet",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        *self = *self + other;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// The end of a run. Its last line is the sum of all tiers.
#[derive(Default)]
pub(super) struct Report {
    counts: BTreeMap<Tier, Counts>,
    left_out: BTreeMap<Tier, String>,
    /// How many tests of a tier found that they cannot run, by reason.
    not_run: BTreeMap<Tier, BTreeMap<String, usize>>,
}

impl Report {
    pub(super) fn add(&mut self, tier: Tier, counts: Counts) {
        *self.counts.entry(tier).or_default() += counts;
    }

    /// Takes in what tests have written down about themselves: a line for each that did not run, of
    /// its binary, its name and the reason. To nextest it has passed.
    pub(super) fn take_notes(&mut self, notes: &str) {
        for line in notes.lines() {
            let mut parts = line.splitn(3, '\t');
            let (Some(binary), Some(_), Some(reason)) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let tier = Tier::of(binary);
            let Some(counts) = self.counts.get_mut(&tier).filter(|counts| counts.passed > 0) else {
                continue;
            };
            counts.passed -= 1;
            counts.skipped += 1;
            *self.not_run.entry(tier).or_default().entry(reason.to_owned()).or_default() += 1;
        }
    }

    /// Notes that a whole tier could not run, which is a failure if it was required.
    pub(super) fn leave_out(&mut self, tier: Tier, tests: usize, required: bool, reason: &str) {
        let (counts, word) = if required {
            // At least one, so that the last line shows it even if the tests were not counted.
            (Counts { failed: tests.max(1), ..Counts::default() }, "required but not run")
        } else {
            (Counts { skipped: tests, ..Counts::default() }, "skipped")
        };
        self.add(tier, counts);
        self.left_out.insert(tier, format!("{word} ({reason})"));
    }

    /// Notes that tests were chosen by hand, so a tier without any was not asked for.
    pub(super) fn chosen(&mut self) {
        for tier in Tier::ALL.into_iter().filter(|tier| !self.counts.contains_key(tier)) {
            self.left_out.insert(tier, "skipped (not asked)".into());
        }
    }

    pub(super) fn total(&self) -> Counts {
        self.counts.values().copied().fold(Counts::default(), Counts::add)
    }

    fn part(&self, tier: Tier) -> String {
        let part = match (self.left_out.get(&tier), self.counts.get(&tier)) {
            (Some(words), _) => words.clone(),
            (None, Some(counts)) if counts.failed == 0 => format!("{} passed", counts.passed),
            (None, Some(counts)) => format!("{} passed, {} failed", counts.passed, counts.failed),
            (None, None) => format!("skipped ({})", tier.why_none()),
        };
        format!("{}: {part}{}", tier.name(), self.reasons(tier))
    }

    fn reasons(&self, tier: Tier) -> String {
        let Some(reasons) = self.not_run.get(&tier) else { return String::new() };
        let total: usize = reasons.values().sum();
        let each: Vec<String> =
            reasons.iter().map(|(reason, count)| format!("{reason}: {count}")).collect();
        format!(", {total} not run ({})", each.join("; "))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", Tier::ALL.map(|tier| self.part(tier)).join("; "))?;
        writeln!(f, "{}", self.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::default();
        report.add(Tier::of("windlass-engine"), Counts { passed: 3, failed: 0, skipped: 0 });
        report.add(Tier::of("windlass::it"), Counts { passed: 1, failed: 0, skipped: 0 });
        report
    }

    #[test]
    fn a_run_ends_with_its_tiers_and_their_sum() {
        let mut report = report();
        report.leave_out(Tier::RealApi, 2, false, "there is no `go`");
        assert_eq!(
            report.to_string(),
            "pure: 4 passed; real API: skipped (there is no `go`); \
             embedded: skipped (no such tests yet); real pods: skipped (not asked)\n\
             4 passed, 0 failed, 2 skipped\n"
        );
    }

    #[test]
    fn a_required_tier_that_cannot_run_fails() {
        let mut report = report();
        report.leave_out(Tier::RealApi, 0, true, "there is no `go`");
        assert!(report.to_string().contains("real API: required but not run (there is no `go`)"));
        assert_eq!(report.total().to_string(), "4 passed, 1 failed");
    }

    #[test]
    fn a_tier_left_out_by_choice_is_not_called_empty() {
        let mut report = report();
        report.chosen();
        assert!(report.to_string().contains("real API: skipped (not asked)"), "{report}");
    }

    #[test]
    fn a_test_that_did_not_run_has_not_passed() {
        let mut report = report();
        report.add(Tier::of("windlass-tests::embedded"), Counts { passed: 5, ..Counts::default() });
        let note =
            |test: &str, reason: &str| format!("windlass-tests::embedded\t{test}\t{reason}\n");
        report.take_notes(&[note("a", "no x"), note("b", "no y"), note("c", "no x")].concat());
        let text = report.to_string();
        assert!(text.contains("embedded: 2 passed, 3 not run (no x: 2; no y: 1);"), "{text}");
        assert_eq!(report.total().to_string(), "6 passed, 0 failed, 3 skipped");
    }

    #[test]
    fn the_binary_decides_the_tier() {
        for (binary, want) in [
            ("windlass-tests::real_api", Tier::RealApi),
            ("xtask::control_plane", Tier::RealApi),
            ("xtask::bench", Tier::RealApi),
            ("xtask::chart", Tier::RealApi),
            ("windlass-tests::embedded", Tier::Embedded),
            ("windlass-tests::pods", Tier::Embedded),
            ("windlass-tests", Tier::Pure),
            ("windlass-domains::it", Tier::Pure),
        ] {
            assert_eq!(Tier::of(binary), want, "{binary}");
        }
    }
}
