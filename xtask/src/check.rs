//! What must hold before a commit: format, lints, our own rules, generated files, dependencies.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use xshell::{Shell, cmd};

use crate::{
    generate, tidy,
    workspace::{project_root, shell_in},
};

/// Runs all steps, the later ones too when one fails, and fails if any did.
pub fn run() -> Result<()> {
    let shell = shell_in(&project_root())?;
    let steps: [(&str, &dyn Fn() -> Result<Step>); 5] = [
        ("format", &|| format(&shell)),
        ("tidy", &|| tidy::check(&project_root()).map(|()| Step::Held)),
        ("lints", &|| lints(&shell)),
        ("generated files", &|| generate::check().map(|()| Step::Held)),
        ("dependencies", &|| dependencies(&shell)),
    ];
    let mut failed = Vec::new();
    for (name, step) in steps {
        let started = Instant::now();
        match step() {
            Ok(Step::Skipped(reason)) => println!("{name}: skipped ({reason})"),
            Ok(Step::Held) => println!("{name}: ok ({:.1} s)", started.elapsed().as_secs_f32()),
            Err(error) => {
                println!("{name}: FAILED: {error:#}");
                failed.push(name);
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("check failed: {}", failed.join(", "))
}

enum Step {
    Held,
    Skipped(&'static str),
}

fn format(shell: &Shell) -> Result<Step> {
    let check = cmd!(shell, "cargo fmt --all --check").quiet().run();
    check.map(|()| Step::Held).context("run `cargo fmt --all`")
}

fn lints(shell: &Shell) -> Result<Step> {
    cmd!(shell, "cargo clippy --quiet --workspace --all-targets --locked -- -D warnings")
        .quiet()
        .run()
        .map(|()| Step::Held)
        .context("clippy is not content")
}

/// Licences, sources and duplicates, by the rules in `deny.toml`.
fn dependencies(shell: &Shell) -> Result<Step> {
    let installed = cmd!(shell, "cargo deny --version").quiet().ignore_stdout().ignore_stderr();
    if installed.run().is_err() {
        return Ok(Step::Skipped("cargo-deny is not installed"));
    }
    // Advisories change without us and need a network: not a matter of this commit.
    cmd!(shell, "cargo deny --log-level error check bans licenses sources")
        .quiet()
        .run()
        .map(|()| Step::Held)
        .context("cargo-deny is not content")
}
