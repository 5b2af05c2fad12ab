//! `cargo xtask churn`: a local cluster under changes and crashes at random, for as long as one likes.
//!
//! The test of that name does it, for a short while in every run of the tests.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::{
    program::{self, Profile},
    workspace::{cargo, project_root},
};

pub const HELP: &str = "\
cargo xtask churn [OPTIONS]

Runs `windlass up` in a directory of its own and, at random, applies, scales, changes and deletes
workloads, kills their processes, and kills and restarts `windlass up` itself. Then it waits until
all is at rest and compares: exactly the wanted processes must run, counted on the machine, and no
directory, port or object of others may be left. Exit 1 if not; then the last steps are told.

  --seed N      the same seed takes the same steps; default: another one each time, which is printed
  --minutes N   for how long; default: 10
";

const TEST: &str = "churn::at_rest_exactly_the_wanted_processes_run";

#[derive(Debug, PartialEq)]
struct Arguments {
    seed: Option<u64>,
    time: Duration,
}

impl Arguments {
    fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut parsed = Self { seed: None, time: Duration::from_secs(600) };
        let mut rest = arguments.iter();
        while let Some(&flag) = rest.next() {
            let value = rest.next().and_then(|text| text.parse().ok());
            let value = value.ok_or_else(|| format!("{flag} needs a number after it"));
            match flag {
                "--seed" => parsed.seed = Some(value?),
                "--minutes" => parsed.time = Duration::from_secs(value?.saturating_mul(60)),
                _ => return Err(format!("cannot understand {flag:?}")),
            }
        }
        Ok(parsed)
    }
}

/// True if everything was as wanted in the end.
pub fn run(arguments: &[&str]) -> Result<bool> {
    let arguments = Arguments::parse(arguments)
        .map_err(|problem| anyhow::anyhow!("{problem}; see `cargo xtask churn --help`"))?;
    let windlass = program::build(Profile::Debug)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seed = arguments.seed.unwrap_or(now);
    println!("churn: seed {seed}, {} minutes", arguments.time.as_secs() / 60);
    let status = cargo()
        .args(["test", "--quiet", "--locked", "--package", "windlass-tests", "--test", "pods"])
        .args(["--", "--exact", TEST, "--nocapture"])
        .env("WINDLASS_BIN", windlass)
        .env("WINDLASS_CHURN_SEED", seed.to_string())
        .env("WINDLASS_CHURN_SECONDS", arguments.time.as_secs().to_string())
        .current_dir(project_root())
        .status()
        .context("cannot run `cargo test`")?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_and_time_are_read() {
        let parse = |text: &str| Arguments::parse(&text.split_whitespace().collect::<Vec<_>>());
        let minutes = |count: u64| Duration::from_secs(count * 60);
        assert_eq!(parse(""), Ok(Arguments { seed: None, time: minutes(10) }));
        let given = Arguments { seed: Some(7), time: minutes(2) };
        assert_eq!(parse("--minutes 2 --seed 7"), Ok(given));
        for wrong in ["--seed", "--seed x", "--minutes -1", "--hours 1", "7"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
