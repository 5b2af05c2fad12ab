//! `cargo xtask fuzz`: whatever reads foreign input, fed with input that looks for new ways through it.
//!
//! The targets are in `fuzz/`, a workspace of its own. What is found is kept in the cache folder, so
//! that the next run begins where this one ended.

mod outcome;
mod seeds;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use self::{outcome::Outcome, seeds::Seed};
use crate::{
    cache,
    program::run_to_end,
    workspace::{cargo, project_root, target_folder},
};

pub const HELP: &str = "\
cargo xtask fuzz [TARGET] [--seconds N]

Runs each target of `fuzz/`, or the one that is named, and prints how many inputs it has run, how
much of the code they have covered and whether one of them broke it. Exit 1 if one did; its file is
named then. Needs `cargo-fuzz` (`cargo install cargo-fuzz`) and a C++ compiler, but no nightly
toolchain. What was found is kept in the cache folder, and the next run begins with it.

  --seconds N   for how long each; default: 60

Targets
  request    whole requests to the embedded API server
  body       bodies in JSON, YAML and protobuf, read by their kind
  token      the tokens by which long lists are continued
  patch      merge, JSON and strategic patches
  apply      server-side apply
  tar        archives
  unpack     layers on their way to a folder
  manifest   manifests and configs of artifacts
  kitfile    Kitfiles, ignore files and references
";

const TARGETS: [&str; 9] =
    ["request", "body", "token", "patch", "apply", "tar", "unpack", "manifest", "kitfile"];
/// Longer than any input should take, even on a machine that does much else.
const SLOWEST: Duration = Duration::from_secs(30);
/// Most of what is foreign is small; long inputs find little and take long.
const LONGEST_INPUT: usize = 1 << 14;

#[derive(Debug, PartialEq)]
struct Arguments {
    targets: Vec<&'static str>,
    time: Duration,
}

impl Arguments {
    fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut parsed = Self { targets: TARGETS.to_vec(), time: Duration::from_secs(60) };
        let mut rest = arguments.iter();
        while let Some(&argument) = rest.next() {
            if argument == "--seconds" {
                let seconds = rest.next().and_then(|text| text.parse().ok());
                let seconds = seconds.filter(|seconds| *seconds > 0);
                let seconds = seconds.ok_or("--seconds needs a number after it")?;
                parsed.time = Duration::from_secs(seconds);
                continue;
            }
            let known = TARGETS.into_iter().find(|known| *known == argument);
            let known = known.ok_or_else(|| format!("there is no target {argument:?}"))?;
            if parsed.targets.len() == 1 {
                return Err("name one target or none".into());
            }
            parsed.targets = vec![known];
        }
        Ok(parsed)
    }
}

/// True if no input broke anything.
pub fn run(arguments: &[&str]) -> Result<bool> {
    let arguments = Arguments::parse(arguments)
        .map_err(|problem| anyhow::anyhow!("{problem}; see `cargo xtask fuzz --help`"))?;
    let folder = cache::dir()?.join("fuzz");
    let seeds = seeds::from_cases(&project_root().join("tests/conformance/cases"))?;
    let built = build(&arguments.targets)?;
    let mut is_sound = true;
    for target in arguments.targets {
        let work = Work { target, program: built.join(target), folder: folder.join(target) };
        work.sow(seeds.iter().filter(|seed| seed.target == target))?;
        let outcome = work.run(arguments.time)?;
        println!("{target}: {outcome}");
        is_sound &= outcome.crash.is_none();
    }
    Ok(is_sound)
}

/// Builds the targets with the compiler of the project and returns the folder that they are in.
///
/// Without a sanitizer, which only nightly compilers have: the project has no unsafe code for it to watch.
fn build(targets: &[&str]) -> Result<PathBuf> {
    let installed = cargo().args(["fuzz", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        bail!("cargo-fuzz is not installed; `cargo install cargo-fuzz` gets it");
    }
    let folder = target_folder()?.join("fuzz");
    let status = cargo()
        .args(["fuzz", "build", "--sanitizer", "none", "--fuzz-dir", "fuzz", "--target-dir"])
        .arg(&folder)
        // None is all of them, at once.
        .args(targets.first().filter(|_| targets.len() == 1))
        .current_dir(project_root())
        .status()
        .context("cannot run `cargo fuzz build`")?;
    if !status.success() {
        bail!("cannot build the targets; libFuzzer needs a C++ compiler");
    }
    let version = run_to_end(Command::new("rustc").arg("-vV"), "rustc -vV")?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("cannot read the host from `rustc -vV`")?;
    Ok(folder.join(host).join("release"))
}

/// A target and where it keeps its findings.
struct Work {
    target: &'static str,
    program: PathBuf,
    folder: PathBuf,
}

impl Work {
    /// Replaces the seeds of former runs.
    fn sow<'a>(&self, seeds: impl Iterator<Item = &'a Seed>) -> Result<()> {
        let folder = self.folder.join("seeds");
        drop(fs::remove_dir_all(&folder));
        for part in ["seeds", "corpus", "crashes"] {
            let part = self.folder.join(part);
            let made = fs::create_dir_all(&part);
            made.with_context(|| format!("cannot create {}", part.display()))?;
        }
        for (number, seed) in seeds.enumerate() {
            let path = folder.join(number.to_string());
            let written = fs::write(&path, &seed.bytes);
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    fn run(&self, time: Duration) -> Result<Outcome> {
        let crashes = format!("-artifact_prefix={}/", self.folder.join("crashes").display());
        let words = project_root().join("fuzz/words.txt");
        let output = Command::new(&self.program)
            .arg(self.folder.join("corpus"))
            .arg(self.folder.join("seeds"))
            .args(existing(&project_root().join("fuzz/seeds").join(self.target)))
            .args(["-print_final_stats=1", &crashes])
            .arg(format!("-dict={}", words.display()))
            .arg(format!("-max_total_time={}", time.as_secs()))
            .arg(format!("-timeout={}", SLOWEST.as_secs()))
            .arg(format!("-max_len={LONGEST_INPUT}"))
            .output()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        Ok(Outcome::read(output.status.success(), &String::from_utf8_lossy(&output.stderr)))
    }
}

fn existing(folder: &Path) -> Option<&Path> {
    folder.is_dir().then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_and_time_are_read() {
        let parse = |text: &str| Arguments::parse(&text.split_whitespace().collect::<Vec<_>>());
        let seconds = Duration::from_secs;
        assert_eq!(parse(""), Ok(Arguments { targets: TARGETS.to_vec(), time: seconds(60) }));
        let given = Arguments { targets: vec!["tar"], time: seconds(5) };
        assert_eq!(parse("tar --seconds 5"), Ok(given));
        for wrong in ["--seconds", "--seconds x", "--seconds 0", "--minutes 1", "tars", "tar body"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_target_can_be_named_and_is_told() {
        let manifest = fs::read_to_string(project_root().join("fuzz/Cargo.toml")).unwrap();
        let bins = manifest.split("[[bin]]").skip(1);
        let names: Vec<&str> = bins.filter_map(|bin| bin.split('"').nth(1)).collect();
        assert_eq!(names, TARGETS);
        for target in TARGETS {
            assert!(HELP.contains(&format!("\n  {target} ")), "{target}");
        }
    }
}
