//! What a benchmark is to reach, and what becomes of a run that does not.

use std::fmt;

use anyhow::{Result, bail};

/// What a figure is held against.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    AtLeast(f64),
    AtMost(f64),
    Under(f64),
}

/// One of the figures of a run.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) what: String,
    pub(super) reached: f64,
    pub(super) wanted: Limit,
}

impl Limit {
    /// What could not be measured is not within any.
    fn holds(self, reached: f64) -> bool {
        match self {
            Self::AtLeast(limit) => reached >= limit,
            Self::AtMost(limit) => reached <= limit,
            Self::Under(limit) => reached < limit,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(limit) => write!(f, "at least {limit}"),
            Self::AtMost(limit) => write!(f, "at most {limit}"),
            Self::Under(limit) => write!(f, "under {limit}"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, reached, wanted } = self;
        write!(f, "{what}: {reached}, wanted {wanted}")
    }
}

/// An error that names every target that was missed.
pub(super) fn judge(targets: &[Target]) -> Result<()> {
    let missed = targets.iter().filter(|target| !target.wanted.holds(target.reached));
    let missed: Vec<String> = missed.map(Target::to_string).collect();
    if missed.is_empty() {
        return Ok(());
    }
    bail!("missed {}", missed.join("; missed "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missed_is_named_and_what_could_not_be_measured_is_missed() {
        use Limit::{AtLeast, AtMost, Under};
        let judged = |targets: &[(&str, f64, Limit)]| {
            let target = |&(what, reached, wanted): &(&str, f64, Limit)| Target {
                what: what.to_owned(),
                reached,
                wanted,
            };
            let targets: Vec<Target> = targets.iter().map(target).collect();
            judge(&targets).map_err(|error| error.to_string())
        };
        let good = [("a", 5.0, AtLeast(5.0)), ("b", 0.2, AtMost(0.2)), ("c", 299.9, Under(300.0))];
        assert_eq!(judged(&good), Ok(()));
        let bad = [
            ("a", 4.9, AtLeast(5.0)),
            ("b", 0.1, AtMost(0.2)),
            ("c", 300.0, Under(300.0)),
            ("d", f64::NAN, AtMost(1.0)),
        ];
        let want = "missed a: 4.9, wanted at least 5; missed c: 300, wanted under 300; \
                    missed d: NaN, wanted at most 1";
        assert_eq!(judged(&bad), Err(want.to_owned()));
    }
}
