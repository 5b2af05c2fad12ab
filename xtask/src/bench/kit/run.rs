//! One run: the machine, the commands one by one, and a push that is killed.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use super::{
    Arguments,
    data::Model,
    limits::Limits,
    program::Kit,
    report::{Measured, Report},
    wire::Wire,
};
use crate::{
    interrupt::Interrupted,
    program::{self, Profile},
    scratch::Folder,
};

/// Prints the report as one line on standard output, and for the eye beside it. False if something
/// that is wanted was not reached; debug builds are not held to it.
pub(in crate::bench) fn run(arguments: &Arguments) -> Result<bool> {
    let profile = if arguments.debug { Profile::Debug } else { Profile::Release };
    let windlass = program::build(profile)?;
    let folder = Folder::new("bench")?;
    let interrupted = Interrupted::listen()?;
    eprintln!("making {} MB in {} files", arguments.megabytes, arguments.files);
    let model = Model::make(folder.path().join("model"), arguments)?;
    let kit = Kit { windlass, scratch: folder.path(), interrupted: &interrupted };
    let mut measured = Measured::default();
    for at in 1..=arguments.rounds {
        eprintln!("round {at} of {}", arguments.rounds);
        round(&kit, &model, &mut measured)?;
    }
    eprintln!("a push that is killed");
    measured.resent = resent(&kit, &model)?;
    let report = Report::of(model.bytes, arguments.files, &measured);
    eprint!("{report}");
    println!("{}", serde_json::to_string(&report).context("cannot write the report")?);
    let missed = report.missed();
    for miss in &missed {
        eprintln!("missed: {miss}");
    }
    Ok(arguments.debug || missed.is_empty())
}

fn round(kit: &Kit<'_>, model: &Model, measured: &mut Measured) -> Result<()> {
    measured.limits.push(Limits::measure(model, &kit.scratch.join("copies"))?);
    let from = model.folder.to_string_lossy();

    let registry = kit.registry("registry")?;
    let reference = format!("{}/bench/model:one", registry.address);
    measured.pack.push(kit.run("here", &["pack", &from, "--tag", &reference])?);
    measured.push.push(kit.run("here", &["push", &reference, "--plain-http"])?);
    measured.pull.push(kit.run("there", &["pull", &reference, "--plain-http"])?);
    let target = kit.scratch.join("unpacked");
    let to = target.to_string_lossy();
    measured.unpack.push(kit.run("there", &["unpack", &reference, "--dir", &to])?);
    same(model, &target)?;
    drop(registry);
    clear(kit.scratch, &["registry", "here", "there", "unpacked"])?;

    let registry = kit.registry("registry")?;
    let reference = format!("{}/bench/model:two", registry.address);
    let arguments = ["pack", &from, "--tag", &reference, "--push", "--plain-http"];
    measured.pack_push.push(kit.run("here", &arguments)?);
    drop(registry);
    clear(kit.scratch, &["registry", "here"])
}

/// How much more than the model goes over the wire when a push is killed at half and run again.
fn resent(kit: &Kit<'_>, model: &Model) -> Result<u64> {
    let registry = kit.registry("registry")?;
    let wire = Wire::to(registry.address)?;
    let reference = format!("{}/bench/model:three", wire.address);
    kit.run("here", &["pack", &model.folder.to_string_lossy(), "--tag", &reference])?;
    let push = ["push", &reference, "--plain-http"];
    kit.run_until("here", &push, || wire.sent() * 2 >= model.bytes)?;
    kit.run("here", &push)?;
    drop(registry);
    clear(kit.scratch, &["registry", "here"])?;
    Ok(wire.sent().saturating_sub(model.bytes))
}

/// By size: each command has checked the digests, and a benchmark is no test.
fn same(model: &Model, unpacked: &Path) -> Result<()> {
    for file in &model.files {
        let copy = unpacked.join(file.file_name().unwrap_or_default());
        let sizes =
            fs::metadata(file).and_then(|from| Ok((from.len(), fs::metadata(&copy)?.len())));
        let (from, to) = sizes.with_context(|| format!("cannot look at {}", copy.display()))?;
        anyhow::ensure!(from == to, "{} has {to} bytes instead of {from}", copy.display());
    }
    Ok(())
}

fn clear(scratch: &Path, names: &[&str]) -> Result<()> {
    for name in names {
        let folder = scratch.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
    }
    Ok(())
}
