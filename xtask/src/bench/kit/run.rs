//! One run: the machine, the commands one by one, and a push that is killed.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use super::{
    Arguments,
    data::Model,
    hub,
    limits::Limits,
    others,
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
    let hub = hub::start(&model)?;
    for at in 1..=arguments.rounds {
        eprintln!("round {at} of {}", arguments.rounds);
        let limits = round(&kit, &model, &mut measured)?;
        measured.client.round(&kit, &model, hub, limits)?;
    }
    eprintln!("pushes that are killed");
    measured.resent = resent(&kit, &model, 5)?;
    measured.resent_late = resent(&kit, &model, 9)?;
    clear(kit.scratch, &["model"])?;
    eprintln!("{} small files", arguments.small_files);
    measured.small = others::small(&kit, arguments)?;
    eprintln!("{} MB of text", arguments.text_megabytes);
    measured.text = others::text(&kit, arguments)?;
    let report = Report::of(model.bytes, arguments.files, &measured);
    eprint!("{report}");
    println!("{}", serde_json::to_string(&report).context("cannot write the report")?);
    let missed = report.missed();
    for miss in &missed {
        eprintln!("missed: {miss}");
    }
    Ok(arguments.debug || missed.is_empty())
}

fn round(kit: &Kit<'_>, model: &Model, measured: &mut Measured) -> Result<Limits> {
    let limits = Limits::measure(model, &kit.scratch.join("copies"))?;
    measured.limits.push(limits);
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
    clear(kit.scratch, &["here", "there", "unpacked"])?;
    let arguments = ["unpack", &reference, "--dir", &to, "--plain-http"];
    measured.unpack_remote.push(kit.run("elsewhere", &arguments)?);
    same(model, &target)?;
    drop(registry);
    clear(kit.scratch, &["registry", "elsewhere", "unpacked"])?;

    let registry = kit.registry("registry")?;
    let reference = format!("{}/bench/model:two", registry.address);
    let arguments = ["pack", &from, "--tag", &reference, "--push", "--plain-http"];
    measured.pack_push.push(kit.run("here", &arguments)?);
    measured.again.push(kit.run("here", &arguments)?);
    measured.start.push(kit.run("here", &["version"])?);
    drop(registry);
    clear(kit.scratch, &["registry", "here"])?;

    if let Some(registry) = kit.debian("registry")? {
        let reference = format!("{}/bench/model:two", registry.address);
        let arguments = ["pack", &from, "--tag", &reference, "--push", "--plain-http"];
        measured.pack_push_debian.push(kit.run("here", &arguments)?);
        drop(registry);
        clear(kit.scratch, &["registry", "here"])?;
    }
    Ok(limits)
}

/// How much more than the model goes over the wire when a push is killed after so many tenths of it, and
/// run again.
fn resent(kit: &Kit<'_>, model: &Model, tenths: u64) -> Result<u64> {
    let registry = kit.registry("registry")?;
    let wire = Wire::to(registry.address)?;
    let reference = format!("{}/bench/model:three", wire.address);
    kit.run("here", &["pack", &model.folder.to_string_lossy(), "--tag", &reference])?;
    let push = ["push", &reference, "--plain-http"];
    kit.run_until("here", &push, || wire.sent() * 10 >= model.bytes * tenths)?;
    kit.run("here", &push)?;
    drop(registry);
    clear(kit.scratch, &["registry", "here"])?;
    Ok(wire.sent().saturating_sub(model.bytes))
}

/// By size: each command has checked the digests, and a benchmark is no test.
pub(super) fn same(model: &Model, unpacked: &Path) -> Result<()> {
    for file in &model.files {
        let copy = unpacked.join(file.file_name().unwrap_or_default());
        let sizes =
            fs::metadata(file).and_then(|from| Ok((from.len(), fs::metadata(&copy)?.len())));
        let (from, to) = sizes.with_context(|| format!("cannot look at {}", copy.display()))?;
        anyhow::ensure!(from == to, "{} has {to} bytes instead of {from}", copy.display());
    }
    Ok(())
}

pub(super) fn clear(scratch: &Path, names: &[&str]) -> Result<()> {
    for name in names {
        let folder = scratch.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
    }
    Ok(())
}
