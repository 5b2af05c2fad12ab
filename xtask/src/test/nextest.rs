//! cargo-nextest: found or installed once, run with a profile, read by its report.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{
    junit::{self, Suite},
    report::Tier,
};
use crate::{cache, workspace::project_root};

const VERSION: &str = "0.9.151";

/// Profiles in `.config/nextest.toml`.
pub(super) const EVERYTHING: &str = "default";
pub(super) const WITHOUT_REAL_API: &str = "without-real-api";

pub(super) struct Nextest {
    program: PathBuf,
}

pub(super) struct Outcome {
    pub(super) passed: bool,
    pub(super) suites: Vec<Suite>,
    pub(super) failures: Vec<String>,
}

/// The user's own nextest, or one of ours in the cache, which is built the first time.
pub(super) fn find_or_install() -> Result<Nextest> {
    let own = Nextest { program: "cargo-nextest".into() };
    if own.works() {
        return Ok(own);
    }
    let tools = cache::dir()?.join("tools");
    let ours = Nextest { program: tools.join("bin/cargo-nextest") };
    if ours.works() {
        return Ok(ours);
    }
    let _lock = cache::Lock::take("tools")?;
    if !ours.works() {
        install(&tools)?;
    }
    Ok(ours)
}

fn install(tools: &Path) -> Result<()> {
    let started = Instant::now();
    eprintln!("xtask: installing cargo-nextest {VERSION}; this takes minutes");
    let status = Command::new("cargo")
        .args(["install", "--quiet", "--locked", "cargo-nextest", "--version", VERSION])
        .args(["--no-default-features", "--features", "default-no-update", "--root"])
        .arg(tools)
        // It waits for tests most of the time; building it fast is worth more.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .current_dir(project_root())
        .status()
        .context("cannot run `cargo install cargo-nextest`")?;
    if !status.success() {
        bail!("cannot install cargo-nextest {VERSION} into {}", tools.display());
    }
    eprintln!("xtask: installed cargo-nextest in {} s", started.elapsed().as_secs());
    Ok(())
}

impl Nextest {
    fn works(&self) -> bool {
        let mut command = self.command("--version");
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["nextest", subcommand]).current_dir(project_root());
        command
    }

    pub(super) fn run(
        &self,
        profile: &str,
        arguments: &[String],
        environment: &[(&str, PathBuf)],
    ) -> Result<Outcome> {
        // nextest's own folder stays in the checkout, wherever the target folder is.
        let report = project_root().join("target/nextest").join(profile).join("junit.xml");
        // One from an earlier run must not be taken for this one's.
        let _ = fs::remove_file(&report);
        let status = self
            .command("run")
            .args(["--workspace", "--locked", "--profile", profile])
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .status()
            .context("cannot run cargo-nextest")?;
        let report = fs::read_to_string(&report).unwrap_or_default();
        let suites = junit::suites(&report);
        if suites.is_empty() {
            bail!("cannot count the tests: cargo-nextest ran none ({status})");
        }
        let failures = junit::failures(&report);
        Ok(Outcome { passed: status.success(), suites, failures })
    }

    /// How many tests of the tier there are.
    pub(super) fn count_real_api(&self) -> Result<usize> {
        let output = self
            .command("list")
            .args(["--workspace", "--locked", "--message-format", "json"])
            .stderr(Stdio::null())
            .output()
            .context("cannot run `cargo nextest list`")?;
        let list: Value = serde_json::from_slice(&output.stdout)
            .context("cannot read the answer of `cargo nextest list`")?;
        Ok(count(&list, Tier::RealApi))
    }
}

fn count(list: &Value, tier: Tier) -> usize {
    let suites = list["rust-suites"].as_object().into_iter().flatten();
    let of_tier = suites.filter(|(name, _)| Tier::of(name) == tier);
    of_tier.map(|(_, suite)| suite["testcases"].as_object().map_or(0, |tests| tests.len())).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tests_of_a_tier_are_counted_from_the_list() {
        let list = json!({"rust-suites": {
            "xtask": {"testcases": {"a": {}, "b": {}}},
            "xtask::control_plane": {"testcases": {"c": {}}},
            "windlass-tests::real_api": {"testcases": {"d": {}, "e": {}}},
        }});
        assert_eq!(count(&list, Tier::RealApi), 3);
    }
}
