//! `cargo xtask demo`: builds the program and shows it at work, on this machine or on a real control
//! plane.

mod on_cluster;
mod picture;

use std::{os::unix::process::CommandExt, path::Path, process::Command};

use anyhow::{Context, Result};

use crate::program::{self, Profile};

pub const HELP: &str = "\
cargo xtask demo [--once] [--release] [FLAGS OF `windlass demo`]

Builds windlass and runs `windlass demo`: a small language model is downloaded once (93 MB), imported,
packed, pushed to a registry on this machine, served by a pod and asked through a gateway. Then it
all keeps running, for you to play with, until Ctrl-C. Needs Rust and a network, the first time.

  --once     end after the answer; exit 1 if there was none
  --release  build it as it is released, which takes longer; what computes is optimised anyway

cargo xtask demo --svg FILE

The same with --once, and what it has said becomes a picture.

cargo xtask demo --cluster [--once]

Starts a private control plane with fake GPU nodes, runs the operator against it, applies two
examples, waits until they are ready and shows what became of them.

  --once     end when the examples have been shown; exit 1 if they did not become ready

Needs Go, the first time, to build what is not in the cache yet (about ten minutes on two cores).
The nodes are fake: pods are scheduled and become ready, but nothing runs in them. Nothing outside
the target folder and the cache is touched, and your own kubeconfig is not read.
";

/// `None` if the arguments are not understood; those of the program are its own to judge.
pub fn run(arguments: &[&str]) -> Option<Result<bool>> {
    Some(match arguments {
        ["--cluster"] => on_cluster::run(false),
        ["--cluster", "--once"] | ["--once", "--cluster"] => on_cluster::run(true),
        ["--svg", file] => picture::draw(Path::new(file)).map(|()| true),
        rest if rest.iter().any(|word| matches!(*word, "--cluster" | "--svg")) => return None,
        rest => on_this_machine(rest).map(|()| true),
    })
}

/// Comes back only if it could not be started: the program takes the place of this one, and so gets
/// Ctrl-C itself.
fn on_this_machine(arguments: &[&str]) -> Result<()> {
    let is_release = arguments.contains(&"--release");
    let profile = if is_release { Profile::Release } else { Profile::Debug };
    let windlass = program::build(profile)?;
    let own = arguments.iter().filter(|word| **word != "--release");
    let error = Command::new(&windlass).arg("demo").args(own).exec();
    Err(error).with_context(|| format!("cannot run {}", windlass.display()))
}
